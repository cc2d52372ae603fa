"""A tester's answer -> its tests: calls and the values that it predicts. Runs inside `Sandbox.analyse`.

What becomes a test is said in design terms by `codea1_env.responses`; here is how. A text is parsed once. Its
statements are followed as Python would run them, as far as they deal in literals: names keep their values, loops
over literals are unrolled, functions and methods are entered once each, with the rows of their `parametrize`.
"""

from __future__ import annotations

import ast
import itertools
import json
import marshal
import re
from functools import lru_cache
from typing import Any

from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read, write

from .chunks import Chunk, chunks
from .examples import RUN, asserted
from .fences import answer_in, python_in, unfenced
from .inputs import InputSignature, left_by
from .json_texts import listed_statements, strings_with
from .listed import INPUTS, OUTPUTS, listed_tests
from .predictions import Call, Prediction
from .signatures import TOO_LONG, BindingError, Signature
from .statements import ANSWER, MAX_DROPPED, Enough, Statements
from .syntax import PARSE_ERRORS, attempt, message_of, parsed

MAX_CHARS = 65_536
"""Of an answer; also of the tests in it, all together."""
MAX_SHOWN = 200
_ASSERTION = re.compile(
    r"[ \t]*+(?:assert\b|self\.assert|(?:with[ \t]++)?(?:pytest|self)\.(?:raises|assertRaises))"
)
_INLINE = re.compile(r"`(assert [^`\n]++)`")
_BULLET = re.compile(
    # "- ", "1. ", "a) ", "Test 1: ", also one behind the other; then marks of emphasis
    r"[ \t]*+(?:(?:[-*+•✅✔☑]|[0-9]{1,3}[.)]|[a-zA-Z][.)]|[*_]*+[a-zA-Z][\w ,()'-]{0,60}+[*]*+:[*]*+)[ \t]++)*+"
    r"(?P<mark>[*_]{0,3}+)(?=assert\b)"
)
_REASON = re.compile(
    r"(?<!\s)\s++(?:(?:[-\u2013\u2014\u2192]{1,2}+>?|//|=>|because|since|as|for)(?=\s)|\((?=[a-zA-Z]))|[,;:.](?=\s|$)"
)
_MOST_CUTS = 8
_KEY = "assert_statements"


def read_suites(batch: list[tuple[str, str, list[str]]]) -> str:
    """Return the tests in answers.

    Args:
        batch: Entry point, signature (JSON, see `codea1_env.reading.signatures`), and the answers.

    Returns:
        JSON: for each answer, in order, its tests and what was dropped. A test is
        ``[call, predicted, arguments, same_as, value, absolute, relative, fault, reason, stripped]``: marshalled arguments and an encoded
        value as hex, the source of the arguments in their one form, a text that is the same for equal arguments, the
        source of the value, what is wrong with a test that was read though it does not
        count, and what it takes off the output. What was dropped is ``[fault, reason, text, counts as invalid, tests before it]``.
    """
    rows = []
    for entry_point, signature, texts in batch:
        bound = _signature_of(signature)
        for text in texts:
            suite = _Suite(entry_point, bound)
            suite.read(text)
            rows.append([suite.tests, suite.dropped])
    return json.dumps(rows, ensure_ascii=False)


def _texts_in(body: list[ast.stmt]) -> list[str]:
    """Return the texts of a list that is all there is, alone or in a dict."""
    lists: list[ast.expr] = []
    match body:
        case [ast.Expr(value=ast.Dict(keys=keys, values=values))]:
            names = [each.value if isinstance(each, ast.Constant) else None for each in keys]
            if _KEY in names or len(names) == 1:
                lists = [values[names.index(_KEY) if _KEY in names else 0]]
        case [ast.Expr(value=value)]:
            lists = [value]
    found = [each for value in lists if isinstance(value, ast.List) for each in value.elts]
    texts = [each.value for each in found if isinstance(each, ast.Constant)]
    return [text for text in texts if isinstance(text, str)]


@lru_cache(maxsize=4096)
def _signature_of(text: str) -> Signature | InputSignature:
    """Return the signature that a JSON text describes; remembered."""
    return InputSignature(text) if text.startswith('{"input"') else Signature(text)


def _without_reason(line: str) -> tuple[list[ast.stmt], str]:
    """Return the statement of a line that may go on in prose: `assert f(0) == True - because zero is even`."""
    whole = attempt(line)
    if isinstance(whole, list) and not _goes_on(whole):
        return whole, line
    for found in itertools.islice(_REASON.finditer(line), _MOST_CUTS):
        text = line[: found.start()]
        match attempt(text):
            case [ast.Assert(test=ast.Compare()), *_] as body:
                return body, text
    if isinstance(whole, BaseException):
        raise whole
    return whole, line


def _goes_on(body: list[ast.stmt]) -> bool:
    """Whether an assertion's value is followed by a word: `True - because` is Python."""
    match body:
        case [ast.Assert(test=ast.Compare(comparators=[*_, ast.Call(func=called)])), *_]:
            return not isinstance(called, (ast.Name, ast.Attribute))  # 4 (two squared)
        case [ast.Assert(test=ast.Compare(comparators=[*_, ast.BinOp() as value])), *_]:
            try:
                read(value)
            except NotLiteralError:
                return True
    return False


def _unmarked(line: str) -> str:
    """Return a line without what a list puts before an assertion, and without marks of emphasis."""
    found = _BULLET.match(line)
    if found is None:
        return line
    mark, rest = found["mark"], line[found.end() :]
    before, _, behind = rest.rpartition(mark) if mark else (rest, "", "")
    return f"{before} {behind}".rstrip() if before else rest


class _Suite:
    """The tests of one answer."""

    def __init__(self, entry_point: str, signature: Signature | InputSignature) -> None:
        self.tests: list[list[Any]] = []
        self.dropped: list[list[Any]] = []
        self._entry_point = entry_point.rpartition(".")[2] or RUN
        self._signature = signature
        self._chars = MAX_CHARS
        self._statements = Statements(entry_point, self._add, self._drop)

    def read(self, text: str) -> None:
        try:
            if not (text.startswith("assert ") and self._assertions(text)):
                self._shown(text)
        except (Enough, NotLiteralError) as error:
            self._drop("", f"{error}: the others are left out", "", False)
        except RecursionError:
            self._drop("unparsable", "nested too deep", text[:MAX_SHOWN], True)
        if not self.tests and not self.dropped:
            self._drop("", "the answer holds no test", text[:MAX_SHOWN], False)

    def _shown(self, text: str) -> None:
        answer = answer_in(text)
        if not answer.strip():
            self._drop("", "the answer is nothing but reasoning", text[:MAX_SHOWN], False)
        elif isinstance(self._signature, InputSignature):
            self._of_program(answer.replace("\r\n", "\n").replace("\r", "\n"))
        else:
            self._answer(answer)

    def _answer(self, answer: str) -> None:
        self._openly(answer)
        if not self.tests and "assert" in answer and self._entry_point in answer:
            self._in_json(answer)

    def _openly(self, answer: str) -> None:
        listed = listed_statements(answer, _KEY) if _KEY in answer else None
        codes = [block.code for block in python_in(answer)] if listed is None else listed
        if listed is None and not codes:
            self._code(answer)
            return
        self._together(codes)
        if listed is None and not self.tests and not any(row[3] for row in self.dropped):
            self._code(unfenced(answer))

    def _of_program(self, answer: str) -> None:
        """Read tests of a program: assertions that call `run`, or else a list of inputs and outputs."""
        found, rest = listed_tests(answer)
        if not found:
            self._answer(rest)
            return
        if "assert" in rest:
            self._openly(rest)
        is_last = found[-1].end > rest.rfind("assert")
        if len(found) + is_last <= len(self.tests):  # of as many the last ones count
            return
        self.tests, self.dropped, self._chars = [], [], MAX_CHARS
        for test in found[: ANSWER.tests]:
            self._listed(test.fields)
        if len(found) > ANSWER.tests:
            raise Enough(f"more than {ANSWER.tests} tests")

    def _listed(self, test: dict[str, object]) -> None:
        given = next(test[name] for name in INPUTS if name in test)
        outputs = [test[name] for name in OUTPUTS if name in test]
        try:
            if not outputs:
                raise NotLiteralError("does not say what the program prints")
            self._add(Prediction(Call([given], {}), outputs[0], None))
        except NotLiteralError as error:
            self._drop("unreadable", str(error), ascii(given), True)

    def _assertions(self, text: str) -> bool:
        """Read a text that is nothing but assertions, as tests of the book are: it is no answer that holds some."""
        body = parsed(text)
        if body is None or any(type(node) is not ast.Assert for node in body):
            return False
        self._statements.run(body, text)
        return True

    def _in_json(self, answer: str) -> None:
        """Read the strings of JSON as code, in an answer that shows no test openly."""
        before, self.dropped = self.dropped, []
        text = "\n".join(strings_with(answer, self._entry_point))
        self._together([block.code for block in python_in(text)] or [text])
        if not self.tests:
            self.dropped = before
        else:  # an assertion beside the JSON is no part of it
            self.dropped += [row for row in before if row[3] and row[2].startswith("assert")]

    def _together(self, codes: list[str]) -> None:
        """Several pieces as one text; one by one if that is no Python."""
        whole = "\n".join(codes)
        body = parsed(whole) if len(codes) != 1 else None
        if body is not None:
            self._statements.run(body, whole)
            return
        for code in codes:
            self._code(code)

    def _code(self, code: str) -> None:
        body = parsed(code)
        if body is None:
            for chunk in chunks(asserted(code)):
                self._chunk(chunk)
        elif listed := _texts_in(body):
            self._together(listed)
        else:
            self._statements.run(body, code)

    def _chunk(self, chunk: Chunk) -> None:
        for reason, line in chunk.removed:
            self._drop("unparsable", reason, line, self._is_meant(line))
        if not chunk.error:
            self._statements.run(chunk.body, chunk.text)
            return
        inline = self._lines(chunk.text)
        for line in inline:
            try:
                self._statements.run(*_without_reason(line))
            except PARSE_ERRORS as error:
                self._drop("unparsable", message_of(error), line, self._is_meant(line))
        if not inline:
            self._drop("unparsable", chunk.error, chunk.text, self._is_meant(chunk.text))

    @staticmethod
    def _lines(text: str) -> list[str]:
        """Return the assertions of a piece that is no Python, where they stand as inline code, in a list, or ill-indented."""
        if "`assert " in text:
            return _INLINE.findall(text)
        lines = text.strip().split("\n")
        if _ASSERTION.match(text):
            return [line.strip() for line in lines if line.strip()]
        if _BULLET.match(text):
            return [_unmarked(line) for line in lines]
        return []

    def _is_meant(self, text: str) -> bool:
        named = re.search(rf"(?<!\w){re.escape(self._entry_point)}(?!\w)", text)
        return named is not None and any(map(_ASSERTION.match, text.split("\n")))

    def _drop(self, fault: str, reason: str, text: str, invalid: bool) -> None:
        if len(self.dropped) < MAX_DROPPED:
            about = [fault, reason[:MAX_SHOWN], text.strip()[:MAX_SHOWN], invalid]
            self.dropped.append([*about, len(self.tests)])

    def _add(self, found: Prediction) -> None:
        reason, fault, signature = "", "", self._signature
        arguments, keywords, _, stripped = found.call
        if type(found.value) is str and found.value != left_by(stripped, found.value):
            raise NotLiteralError(f"{stripped}() leaves no such blanks at the ends")
        try:
            arguments, keywords, texts = signature.bound(arguments, keywords and {**keywords})
            if outside := signature.outside(arguments, keywords):
                reason, fault = f"{signature.fault}: {outside}", signature.fault
        except BindingError as error:
            texts = [write(each) or "" for each in arguments]
            reason, fault = f"the signature does not take these arguments: {error}", Signature.fault
        if keywords:
            texts += [f"{name}={write(each) or ''}" for name, each in keywords.items()]
        source = ", ".join(texts)
        predicted_value = signature.as_returned(found.value)
        value = write(predicted_value)
        if value is None or len(source) > signature.longest or "" in texts:
            raise NotLiteralError(TOO_LONG)
        self._chars -= len(source) + len(value)
        if self._chars < 0:
            raise Enough(f"the tests are longer than {MAX_CHARS} characters")
        try:
            call = marshal.dumps((arguments, keywords), 2)  # as the sandbox's calls are sent
            predicted = codec.encode(predicted_value)
        except (codec.EncodeError, ValueError) as error:
            raise NotLiteralError(str(error)) from None
        same_as = signature.same_as(arguments, keywords, source)
        absolute, relative = found.tolerance or (None, None)
        about = [absolute, relative, fault, reason, stripped]
        self.tests.append([call.hex(), predicted.hex(), source, same_as, value, *about])
