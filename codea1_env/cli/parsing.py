"""Command lines from dataclasses: a field is an option, the text below it is its help."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_origin

import tyro

from codea1_env.agents.llm.computing import Dtype
from codea1_env.cli.errors import CommandLineExit, InputError, user_input
from codea1_env.sandbox.packages import locate
from codea1_env.training.settings import inline_table, read_inline_table

Command = TypeVar("Command")

SandboxLevel = Annotated[
    Literal["namespaces", "kernel", "process"] | None,
    tyro.conf.arg(
        help="How strongly programs are confined; None takes the strongest level that works here, and at "
        "least kernel. `codea1 sandbox doctor` shows what each does."
    ),
]
"""The option --sandbox-level, the same wherever programs run."""

Packages = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        metavar="NAME",
        help_behavior_hint="(default: none)",
        help="Installed packages that programs may import besides numpy, with what these need themselves: "
        "--packages pandas sklearn.",
    ),
]
"""The option --packages; `check_packages` looks at it."""


SOURCES = (
    '"starter" (bundled), "starter-easy", "-medium" and "-hard" (its tiers), "starter-programs", humaneval+, mbpp+, mbpp, kodcode, '
    "bigcodebench[-hard], livecodebench, ult, a data set of the Hugging Face hub, a .jsonl, .jsonl.gz or .parquet file, or FILE.py:NAME (a function of yours)."
)
"""Help of an option that says where problems come from."""


def check_packages(packages: Sequence[str]) -> None:
    """Refuse packages that are not installed. Raises a ValueError if there is one."""
    installed = locate(packages)
    for name in packages:
        if name not in installed:
            raise ValueError(
                f"Expect --packages to name installed packages as programs import them, actually {name!r} is not "
                "one. Install it, or leave it out."
            )


@dataclass(frozen=True, kw_only=True)
class ComputingOptions:
    """How language models compute in this process."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format that language models compute in. auto: bfloat16 where the processor's flags name it, else float32."""
    threads: int | None = None
    """Threads that language models compute with on a processor; None for all cores."""

    @property
    def asked_dtype(self) -> Dtype | None:
        """The format that was asked for; None for what suits this machine."""
        return None if self.dtype == "auto" else self.dtype


_registry = tyro.constructors.ConstructorRegistry()


@_registry.primitive_rule
def _table_rule(
    info: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec[dict[str, Any]] | None:
    """Read a table from one argument: its lines, with commas between them."""
    if get_origin(info.type) is not dict:
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="'KEY = VALUE, ...'",
        instance_from_str=lambda words: read_inline_table(words[0]),
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=lambda value: [inline_table(value)],
    )


def parse(
    command: type[Command],
    arguments: Sequence[str],
    *,
    name: str,
    default: Command | None = None,
    switches_only: bool = True,
) -> Command:
    """Read arguments into a command; wrong ones and `--help` end the process (exit codes 2 and 0).

    Args:
        command: A dataclass.
        arguments: The words after the command's name.
        name: The command as the user types it, for messages.
        default: Values for what is not given, instead of the dataclass' own defaults.
        switches_only: Offer `--flag` only. Otherwise every flag has its `--no-flag`, too, which undoes a
            configuration file.
    """
    how: dict[str, Any] = {
        "prog": f"codea1 {name}",
        "default": tyro.MISSING_NONPROP if default is None else default,
        "config": (tyro.conf.FlagCreatePairsOff,) if switches_only else (),
    }
    with _own_errors():
        read: Command = tyro.cli(command, args=list(arguments), **how)
    return read


def parse_some(command: type[Command], arguments: Sequence[str], *, name: str) -> Command:
    """Read only the options that the command knows, and leave all others to a later `parse`."""
    how: dict[str, Any] = {"prog": f"codea1 {name}", "add_help": False}
    with _own_errors():
        known: Command = tyro.cli(command, args=list(arguments), return_unknown_args=True, **how)[0]
    return known


@contextmanager
def _own_errors() -> Iterator[None]:
    """Tell what dataclasses of ours and of users say in one line, and leave the rest to tyro."""
    told = io.StringIO()
    try:
        with user_input(), _registry, redirect_stderr(told):
            yield
    except SystemExit as end:
        cause = end.__context__
        while cause is not None:
            if isinstance(cause, ValueError) and str(cause).lower().startswith("expect "):
                raise InputError(str(cause)) from end
            cause = cause.__context__
        print(told.getvalue(), end="", file=sys.stderr)
        raise CommandLineExit(end.code) from None
