"""`codea1 play`: one episode between two players, shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from codea1_env.cli.errors import InputError, check_least, user_input
from codea1_env.cli.parsing import ComputingOptions, SandboxLevel, parse
from codea1_env.cli.players import common_problems, has_tables, make_player
from codea1_env.cli.tables import first_of
from codea1_env.code_a1_v1 import parallel_env
from codea1_env.problems import Problem
from codea1_env.referee import RefereeConfig
from codea1_env.rendering.display import counted, counted_of
from codea1_env.rewards import RewardConfig
from codea1_env.rollout import ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import CODER, TESTER
from codea1_env.training.checkpoints import TrainedOn, load_run, trained_on
from codea1_env.training.config import rules_of


@dataclass(frozen=True)
class PlayCommand(ComputingOptions):
    """Play one episode between two players, and show it."""

    problem: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None
    """The problem, as in `codea1 problems list`, also without what stands before "/"; without it the seed decides."""
    problems: Annotated[str | None, tyro.conf.arg(metavar="SOURCE")] = None
    """Where problems come from; None for those of the runs that play, or "starter". "starter", a data set, a .jsonl, .jsonl.gz or .parquet file, or FILE.py:NAME (a function of yours)."""
    coder: Annotated[str, tyro.conf.arg(metavar="NAME|RUN|MODEL|FILE.py:NAME")] = "mutant"
    """Who writes the program: "mutant" (the reference with one fault), "reference", the folder of a training
    run, a language model ("smollm2-135m", owner/name on the hub, a folder with a model or with an exported adapter),
    or a class of yours that has the method `act`."""
    tester: Annotated[str, tyro.conf.arg(metavar="NAME|RUN|MODEL|FILE.py:NAME")] = "golden"
    """Who writes the tests: "golden" (the problem's own), "boundary" (moves arguments to the boundaries of
    their types), "copier" (the examples that the problem's text shows), a training run, a language model, or a class of
    yours."""
    rewards: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE.py:NAME")] = None
    """What both are paid: "code-a1" (the paper's), "execution-first", another name in `codea1_env.rewards.REWARDS`, or a function of yours.
    None for those of the run that plays, of the tester's if there are two, or "code-a1"."""
    rounds: int = 1
    """Rounds of the episode. From the second on the coder sees which tests broke its program."""
    render: Literal["human", "ansi"] = "human"
    """How to show it: for this terminal, or as text with colour codes."""
    seed: int = 0
    """Decides the problem and the players' choices."""
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print what happened as one JSON object instead."""

    def __post_init__(self) -> None:
        check_least(self, rounds=1, seed=0)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 play`; returns the exit code."""
    command = parse(PlayCommand, arguments, name="play")
    with ExitStack() as stack:
        play(command, stack.enter_context(Sandbox(level=command.sandbox_level)), stack)
    return 0


def play(command: PlayCommand, sandbox: Sandbox, stack: ExitStack) -> None:
    """Play the episode and show it."""
    named = [
        each for each in (command.coder, command.tester) if (Path(each) / "config.toml").is_file()
    ]
    trained = {name: trained_on(Path(name)) for name in named}
    problems = common_problems(command.problems, None, list(trained.values()))
    rules, ruling = _rules(command, trained)
    with user_input():
        env = parallel_env(
            problems=problems,
            max_rounds=command.rounds,
            referee=rules,
            rewards=command.rewards,
            render_mode=None if command.json else command.render,
            sandbox=sandbox,
        )
    options = {} if command.problem is None else {"problem_id": command.problem}
    try:
        observations, infos = env.reset(seed=command.seed, options=options)
    except ValueError as error:
        raise InputError(f"{error}{_known_to(command, trained, problems)}") from error
    runs = {name: load_run(Path(name), sandbox, stack) for name in trained}
    paying = env.game.config.rewards
    size = paying.num_tests
    asked = command.seed, size, command, runs
    players = {
        CODER: make_player(command.coder, "coder", problems, sandbox, *asked),
        TESTER: make_player(command.tester, "tester", problems, sandbox, *asked),
    }
    if not command.json:
        print(
            f"coder {command.coder}, tester {command.tester}, seed {command.seed}, {counted(size, 'tests')} a suite{ruling}"
        )
    turns: list[dict[str, Any]] = []
    while env.agents:
        actor = infos[CODER]["active_agent"]
        role = "coder" if actor == CODER else "tester"
        (action,) = ask(players[actor], role, [observations[actor]])
        observations, rewards, _, _, infos = env.step({actor: action})
        turns.append({"agent": actor, "action": action, "rewards": rewards, "info": infos[actor]})
    if command.json:
        task_id = infos[CODER]["task_id"]
        print(json.dumps({"problem": task_id, "seed": command.seed, "turns": turns}, indent=2))
    elif command.render != "human":  # a human has seen every round when it was judged
        print(env.render())
    if not command.json and (why := _why(paying, infos[TESTER])):
        print(why)


def _rules(command: PlayCommand, runs: Mapping[str, TrainedOn]) -> tuple[RefereeConfig | None, str]:
    """The rules of the tester's run, or else of the coder's, and a remark on them."""
    for name in (command.tester, command.coder):
        if name in runs:
            what = "" if command.rewards else " and rewards"
            return rules_of(runs[name].config), f"{what} as in {name}"
    return None, ""


def _known_to(
    command: PlayCommand, runs: Mapping[str, TrainedOn], problems: Sequence[Problem]
) -> str:
    """Say why there are no more problems, where runs play."""
    tables = [name for name, run in runs.items() if has_tables(run)]
    if not tables:
        first = "" if command.problems else next(iter(runs), "")
        return first and f" {first} was trained on these; --problems SOURCE takes others"
    names = first_of(problem.task_id for problem in problems)
    return (
        f" The tables of {' and '.join(tables)} know only these {len(problems)} problems: {names}"
    )


def _why(config: RewardConfig, info: Mapping[str, Any]) -> str:
    """Say how rewards come about by the paper's formula, or whose they are."""
    paid = info.get("rewards", {})
    test, parts = paid.get("test"), [paid.get("validity"), paid.get("adversarial")]
    if test is None or None in parts:
        return ""
    if config.function != "code-a1":
        given = config.function
        name = given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)
        return f"The rewards are those of {name}; validity and adversarial are the paper's terms."
    if test == 0 and not info["program"]["executes"]:
        return f"{TESTER} gets nothing, since the program does not run"
    valid, broke = (float(each or 0.0) for each in parts)
    weight = config.alpha
    if (
        abs(test - weight * valid - (1 - weight) * broke) > 1e-9
    ):  # as where characters cannot be printed
        return ""
    share = "the share of tests that its program passes"
    if info["history"]:
        share = "the mean of two shares that its program passes: of new tests, and of replayed ones"
    return (
        f"{TESTER} gets {test:.3f} = {weight:g} x validity {valid:.3f} + {1 - weight:g} x adversarial {broke:.3f}; "
        f"{CODER} {share}\n{_parts(valid, broke, config.num_tests, info)}"
    )


def _parts(valid: float, broke: float, size: int, info: Mapping[str, Any]) -> str:
    """Say what the two parts of a tester's reward count."""
    status = [test["status"] for test in info["tests"]]
    invalid = status.count("invalid") + status.count("corrected")
    invalid += sum(each["invalid"] for each in info["dropped"])
    said = f"validity {valid:.3f} = {counted_of(round(valid * size), size, 'tests')}"
    said += f", since {invalid} are not valid" if invalid else ""
    if not {"kept", "corrected"} & {*status}:
        return f"{said}; adversarial {broke:.3f}, since no test is left"
    old = [test["outcome"] != "pass" for test in info["history"]]
    known = sum(old) / len(old) if old else 0.0
    new = round(size * (2 * broke - 1 + known if old else broke))
    if not old:
        return (
            f"{said}; adversarial {broke:.3f} = {counted_of(new, size, 'tests')} broke the program"
        )
    return (
        f"{said}; adversarial {broke:.3f} = (1 + {new} of {size} - {sum(old)} of {len(old)}) / 2: new tests that "
        "broke the program, less replayed ones that did"
    )
