"""A row of a data set: its fields with the types that they should have, and the texts in it, found and joined unparsed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from codea1_env.reading.definitions import put_before


class Row(NamedTuple):
    """One row of a file or data set, and where it stands."""

    fields: Any
    """The values by name, if the row is one at all: any JSON value may stand in a line."""
    where: str
    split: str | None = None
    """The split that the data set files it under; None where the row itself must say."""


def text_of(row: Row, name: str) -> str:
    """Return the field of this name."""
    value = row.fields.get(name)
    if not isinstance(value, str):
        raise TypeError(f"Expect {name!r} to be text, actually: {show(value)}")
    return value.removeprefix("\ufeff")  # a byte order mark


def texts_of(row: Row, name: str) -> list[str]:
    """Return the field of this name; an empty list where there is none."""
    value = row.fields.get(name)
    value = [] if value is None else value
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"Expect {name!r} to be a list of texts, actually: {show(value)}")
    return list(value)


def origin(row: Row, source: str, split: str) -> dict[str, str]:
    """Return the metadata that every problem has."""
    return {"source": source, "split": row.split or split}


def show(value: object) -> str:
    """Return a value in a message."""
    return f"{type(value).__name__} {value!r:.80}"


def prompt_of(signature: str, *paragraphs: str, imports: str = "") -> str:
    """Return a signature with a docstring."""
    text = "\n\n".join(unix(paragraph).strip() for paragraph in paragraphs)
    lines = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').split("\n")
    body = "\n".join(f"    {line}".rstrip() for line in lines).lstrip()
    head = f"{imports.strip()}\n\n\n" if imports.strip() else ""
    return f'{head}{signature.strip().rstrip(":")}:\n    """{body}\n    """\n'


def signature_of(code: str, entry: str) -> str:
    """Return the text of a function's signature, found without parsing the program."""
    name = re.escape(entry)
    pattern = rf"^(?:async )?def {name} *\((?:[^()]|\([^()]*\))*\)(?: *->[^:\n]+)?(?= *:)"
    found = re.search(pattern, code, re.MULTILINE)
    if found is not None:
        return found.group()
    is_class = re.search(rf"^class {name}\b", code, re.MULTILINE)
    return f"class {entry}" if is_class else f"def {entry}(*args)"


def definition_of(entry: str) -> str:
    """Return the pattern of a line that defines the name at the top level."""
    return rf"^(?:(?:async )?(?:def|class) {re.escape(entry)}\b|{re.escape(entry)} *=)"


def imports_for(modules: Iterable[str], text: str, imported: str) -> str:
    """Return import statements for the modules that a text uses and another does not import."""
    lines = ""
    for module in modules:
        short, _, statement = module.partition(": ")
        name = re.escape(short)
        used = re.search(rf"(?<![\w.]){name}\.", text)
        if used and not re.search(rf"^ *(?:import|from)\b.*\b{name}\b", imported, re.MULTILINE):
            lines += f"{statement or f'import {short}'}\n"
    return lines


def with_setup(setup: str, test: str) -> str:
    """Return a test behind what it needs."""
    return f"{setup.strip()}\n{test}" if setup.strip() else test


def unix(text: str) -> str:
    """Return a text with the line ends of Unix."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def above(prompt: str, entry: str) -> str:
    """The part of a prompt above the function that it asks for: imports, helpers, constants.

    Where there is prose as well, which no program could begin with, only its imports are given.
    """
    name = re.escape(entry)
    function = re.search(rf"^(?:async +)?(?:def|class) +{name}\b", prompt, re.MULTILINE)
    if function is None:
        return ""
    given = prompt[: function.start()].strip()
    lines = _LONG_STRING.sub('""', given).split("\n")
    if all(not line or _CODE.match(line) for line in lines):
        return given
    return "\n".join(line for line in lines if _IMPORT.fullmatch(line.rstrip()))


def behind(given: str, code: str) -> str:
    """Return a program behind what is given, see `put_before`, unless it has that itself or there is no program."""
    return code if given in code else put_before(f"{given}\n", code)


_LONG_STRING = re.compile(r"\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}")
_IMPORT = re.compile(
    r"import +[\w.]+(?: +as +\w+)?(?: *, *[\w.]+(?: +as +\w+)?)*"
    r"|from +[\w.]+ +import +(?:\*|\(?[\w, ]+\)?)(?: *#.*)?"
)
_CODE = re.compile(
    # Statements that may stand above a function, what continues one, and lines that are indented.
    rf"(?:{_IMPORT.pattern}) *(?:\($|\($|#|$)|from +[\w.]+ +import +\($"
    r"|(?:async +)?def +\w+ *\(|class +\w+ *[(:]|@\w|\w[\w.\[\]'\"]*(?: *:[^=]+)? *=|#|['\"]{2}|[)\]}]|\s"
)
