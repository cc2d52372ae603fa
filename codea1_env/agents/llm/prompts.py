"""What language models are told. The texts stand in `codea1_env.agents.llm.wordings`.

A wording turns an observation into a chat. The rules that a player must know are in it; what it earns is not.

    FewShot     for small models: one worked example, then the task in one sentence
    Detailed    for models that follow instructions: the task as it is, and how it will be judged

`benchmarks/prompts.py` compares them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Literal, NamedTuple

from codea1_env.agents.llm.completions import Message
from codea1_env.agents.llm.wordings import (
    ANOTHER_TEST,
    DETAILED,
    EXAMPLE,
    EXAMPLE_PROGRAM,
    EXAMPLES,
    ONLY_CODE,
    PROSE_CODER,
    SHORT,
    Wordings,
)
from codea1_env.reading.examples import called, split_examples
from codea1_env.rollout import AnswerError
from codea1_env.spaces import Observation, observe
from codea1_env.support.plugins import explained, find, raised_by

TesterExamples = Literal["shown", "hidden"]

PromptTemplate = Callable[[Observation], list[Message]]
"""Turns an observation into the chat for whoever is to act."""


@dataclass(frozen=True)
class _Wording:
    num_tests: int = 8
    """Tests that a tester is asked for."""
    tester_examples: TesterExamples = "shown"
    """Whether a tester sees the examples of the problem's text, which it could copy."""

    texts: ClassVar[Mapping[str, Wordings]]
    """By kind of problem."""

    def asked(self, seen: Observation) -> Message:
        """Return the question to whoever is to act."""
        texts = self.texts[kind_of(seen)]
        if seen["turn"] == 1:
            wording = texts.tester if seen["code"].strip() else texts.blind
            if self.tester_examples == "hidden":
                text = split_examples(seen["problem"], seen["entry_point"])[0]
                seen = {**seen, "problem": text}
        elif seen["round"] > 0:
            wording = texts.repair
        else:
            wording = PROSE_CODER if is_prose(seen) else texts.coder
        return Message(role="user", content=_filled(wording, seen, self.num_tests))


class FewShot(_Wording):
    """For small models, which copy the form of an example better than they follow instructions."""

    texts = SHORT

    def __call__(self, observation: Observation) -> list[Message]:
        """Return the chat for whoever is to act."""
        example = EXAMPLES[kind_of(observation)]
        shown: list[tuple[Observation, str]] = []
        if observation["turn"] == 1:
            wrong = example.wrong if observation["code"].strip() else ""
            tests = "\n".join(example.tests[: self.num_tests])
            shown = [(observe(example.problem, code=wrong, turn=1), tests)]
        elif observation["round"] == 0 and not is_prose(observation):
            shown = [(observe(each), each.reference) for each in (example.problem, *example.others)]
        chat = []
        for seen, answer in shown:
            chat += [self.asked(seen), _assistant(answer)]
        return [*chat, self.asked(observation)]


class Detailed(_Wording):
    """For models that follow instructions: what the paper tells its players, in other words."""

    texts = DETAILED

    def __call__(self, observation: Observation) -> list[Message]:
        """Return the chat for whoever is to act."""
        return [self.asked(observation)]


@dataclass(frozen=True)
class OneByOne:
    """Asks a tester for one test at a time, with the earlier ones as its own answer, as UnLeakedTestBench does."""

    first: PromptTemplate
    """How the first test is asked for; it should ask for one only."""

    def __call__(self, observation: Observation) -> list[Message]:
        """Return the chat; the observation's `tests` are those that the tester has written before."""
        earlier = observation["tests"]
        chat = self.first(observation)
        if not earlier.strip():
            return chat
        more = ANOTHER_TEST[kind_of(observation)].format(entry_point=observation["entry_point"])
        return [*chat, _assistant(earlier), Message(role="user", content=more)]


DEFAULT = FewShot()
"""Small models need it, and large ones manage with it."""
WORDINGS: dict[str, type[FewShot] | type[Detailed]] = {"few-shot": FewShot, "detailed": Detailed}
"""By the name that configurations use."""


@dataclass(frozen=True)
class OwnWording:
    """A wording of the user's, whose chats are checked."""

    name: str
    write: Callable[[Observation], Any]

    def __call__(self, observation: Observation) -> list[Message]:
        """Return the chat for whoever is to act. Raises an AnswerError for what is none."""
        try:
            chat: list[Message] = self.write(observation)
        except Exception as error:
            said = f"it raised {raised_by(error)}"
            raise AnswerError(f"Expect {self.name} to return a chat, actually {said}") from error
        if not (isinstance(chat, list) and chat and all(map(_is_message, chat))):
            raise AnswerError(
                f"Expect {self.name} to return a chat, [{{'role': 'user', 'content': ...}}], actually: {chat!r:.100}"
            )
        return chat


def _is_message(said: Any) -> bool:
    return isinstance(said, dict) and all(isinstance(said.get(k), str) for k in ("role", "content"))


def make_wording(
    name: str, num_tests: int = 8, tester_examples: TesterExamples = "shown"
) -> PromptTemplate:
    """Make the wording that a name stands for.

    Args:
        name: One of `WORDINGS`, or ``FILE.py:NAME``: a function from an observation to a chat, or a class of such, made
            with what it takes of the other arguments.
        num_tests: Tests that a tester is asked for.
        tester_examples: Whether a tester sees the examples of the problem's text.

    Raises:
        ValueError: There is none of this name, or it returns no chat.
    """
    if name in WORDINGS:
        return WORDINGS[name](num_tests, tester_examples)
    if ":" not in name:
        raise ValueError(no_wording(name))
    made = find(name, "wording")
    if isinstance(made, type):
        given = {"num_tests": num_tests, "tester_examples": tester_examples}
        takes = signature(made).parameters
        with explained(made, "__init__", ValueError):
            made = made(**{key: value for key, value in given.items() if key in takes})
    own = OwnWording(name, made)
    for turn in (0, 1):
        own(observe(EXAMPLE, code=EXAMPLE_PROGRAM * turn, turn=turn))
    return own


def no_wording(name: str) -> str:
    """Say that there is no wording of this name."""
    return f"Expect prompts to be one of {', '.join(WORDINGS)}, or FILE.py:NAME, actually: {name!r}"


def _filled(wording: str, seen: Observation, num_tests: int) -> str:
    task = Task.of(seen)
    return wording.format(
        problem=in_block(seen["problem"]),
        prose=seen["problem"].strip(),
        stated=split_examples(seen["problem"], seen["entry_point"])[0].strip(),  # without examples
        signature=task.signature,
        text=task.description,
        like=f" like these:\n{in_block(task.asserts)}\n" if task.asserts else ". ",
        entry_point=seen["entry_point"],
        called=called(seen["entry_point"]),
        code=in_block(seen["code"]),
        tests=in_block(seen["tests"]),
        feedback=seen["feedback"].strip(),
        num_tests=num_tests,
        only_code=ONLY_CODE,
    )


def _assistant(code: str) -> Message:
    return Message(role="assistant", content=in_block(code))


# ---- A problem's text, taken apart -------------------------------------------------------------------------


def in_block(code: str) -> str:
    """Code as an answer shows it; no fence in it ends the block."""
    code = code.encode("utf-8", "replace").decode()  # tokenizers take no lone surrogates
    ticks = "`" * max([3, *(1 + len(each) for each in re.findall("`+", code))])
    return f"{ticks}python\n{code.strip()}\n{ticks}"


def kind_of(observation: Observation) -> Literal["function", "program"]:
    """Whether a problem asks for a function, or for a program that reads standard input and prints."""
    return "function" if observation["entry_point"] else "program"


def is_prose(observation: Observation) -> bool:
    """Whether a problem of a function is a text that says itself what to write, and not code to complete."""
    if kind_of(observation) == "program":
        return False
    name = re.escape(observation["entry_point"].partition(".")[0])
    outside = _FENCED.sub("", observation["problem"])
    return re.search(rf"^(?:async +)?(?:def|class) +{name}\b", outside, re.MULTILINE) is None


class Task(NamedTuple):
    """A problem's text, taken apart: small models write what a sentence asks for."""

    signature: str
    """Like `add(a, b)`, without types."""
    description: str
    """The docstring in one line, without examples."""
    asserts: str
    """The docstring's examples as tests, one in each line."""

    @classmethod
    def of(cls, observation: Observation) -> Task:
        """Take a problem apart; one that is not a single function with a docstring is shown as it is."""
        found = _FUNCTION.fullmatch(observation["problem"])
        if found is None:
            whole = f"Complete this code:\n{in_block(observation['problem'])}\n"
            return cls(observation["entry_point"], whole, "")
        arguments = ", ".join(_names(found["arguments"]))
        text = inspect.cleandoc(found["text"])
        examples = _EXAMPLE.findall(text)
        return cls(
            f"{found['name']}({arguments})",
            " ".join(_EXAMPLES.sub("", text).split()),
            "\n".join(f"assert {call} == {value}" for call, value in examples),
        )


_FUNCTION = re.compile(
    r"\s*def (?P<name>\w+)\((?P<arguments>[^\"']*?)\)[^:\n\"']*:\s*\n?"
    r'\s*r?(?P<quotes>"""|\'\'\'|"|\')(?P<text>(?:(?!"""|\'\'\').)*)(?P=quotes)\s*',
    re.DOTALL,
)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_EXAMPLES = re.compile(r"^>>>.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^>>> (\w+\(.*\))\n(?!>>>)(\S.*)$", re.MULTILINE)


def _names(arguments: str) -> list[str]:
    """Names and defaults of the arguments: `a: list[int], b: int = 2` gives `a` and `b=2`."""
    depth = 0
    parts = [""]
    for sign in arguments:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    names = []
    for part in filter(str.strip, parts):
        before, equals, default = part.partition("=")
        names.append(before.partition(":")[0].strip() + equals + default.strip())
    return names
