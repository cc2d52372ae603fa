"""The co-evolution loop: one function, to be read from top to bottom."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from rich.console import Console

from codea1_env.agents.llm.agent import Usage
from codea1_env.agents.llm.completions import BackendError, report
from codea1_env.agents.llm.processes import rank
from codea1_env.evaluation import HeldOut, copied_share, hold_out
from codea1_env.mistake_book import MistakeBook
from codea1_env.referee import RefereeConfig
from codea1_env.rewards import RewardConfig
from codea1_env.rollout import Agent, RolloutConfig, Rollouts, entered, play
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.support.logs import read_rows
from codea1_env.support.stopping import stop_request
from codea1_env.training import measuring, run_folder, summary
from codea1_env.training.checkpoints import (
    Books,
    checkpoints,
    load_checkpoint,
    save_checkpoint,
    step_of,
)
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.engine import LocalEngine
from codea1_env.training.failures import explained_failures, leave_nothing
from codea1_env.training.language_models import LanguageModels, roles_of
from codea1_env.training.lessons import demonstrations, lessons, teach, timed
from codea1_env.training.metrics import Row, episode_rows, prefixed, step_metrics
from codea1_env.training.players import (
    OwnPlayer,
    Players,
    check_ahead,
    make_language_model,
    make_players,
)
from codea1_env.training.problems_of_run import (
    DynamicSampling,
    Replacements,
    failing_references,
    problems_of_run,
    problems_of_step,
    warning_of,
    warning_of_few,
)
from codea1_env.training.progress import TrainingProgress
from codea1_env.training.run_folder import RunFolder
from codea1_env.training.settings import flat
from codea1_env.training.summary import TrainResult
from codea1_env.training.trackers.step_report import report_of
from codea1_env.training.trackers.tracking import Tracking, check_installed


@dataclass(frozen=True)
class PlayedStep:
    """A step that was played, and has not been learned from. The book does not know of it yet."""

    players: Players
    """Who played: what they learn from is of this step."""
    problems: int
    """Number of its problems, without those that took the place of others."""
    chosen: Replacements
    """Tells what is learned from."""
    played: Rollouts
    usages: Mapping[str, Usage]
    """Role -> what the answers of a language model took."""
    ahead: bool
    """Whether it was played while the step before was learned from."""


def train(
    config: TrainConfig,
    *,
    resume: bool = False,
    sandbox: Sandbox | None = None,
    coder: OwnPlayer | None = None,
    tester: OwnPlayer | None = None,
    console: Console | None = None,
) -> TrainResult:
    """Train a coder and a tester against each other.

    Args:
        config: Everything that decides what happens.
        resume: Go on with the run in `config.output_dir`, from its last checkpoint to the same bytes as if it
            had never stopped.
        sandbox: Where programs and tests run; None for one of its own with `config.workers` workers.
        coder: A player of your own, or a class that makes it from a `Setting`, instead of the one that
            `config.coder.player` names.
        tester: A player of your own, instead of the one that `config.tester.player` names.
        console: Where progress and summary are shown; None for standard output.

    Raises:
        RunError: The run cannot be started or resumed.
        PlayerError: A language model or its engine failed.
        ValueError: The problems do not suit the configuration.

    Example::

        result = train(TrainConfig(max_steps=50, seed=1))
        print(result.end["held_out/pass_rate"], result.output_dir)
    """
    console = console or Console()
    started = time.perf_counter()
    check_installed(config.tracker)
    problems = problems_of_run(config)
    if rank() > 0:
        return _follow(config, len(problems))
    with ExitStack() as stack:
        stop = stack.enter_context(stop_request(waits=False))
        config = run_folder.decided(config) if resume else config
        folder = RunFolder.reopen(config) if resume else RunFolder.create(config)
        stack.callback(folder.close)
        if not resume:
            stack.push(partial(leave_nothing, folder))
            stop.leave = partial(leave_nothing, folder, None, KeyboardInterrupt())
        saved = checkpoints(folder.path)[-1:] if resume else []
        step = step_of(saved[0]) if saved else 0
        if saved and step >= config.max_steps:
            raise RunError(
                f"Expect a run that is not finished, actually: {folder.path} has done {step} of "
                f"{config.max_steps} steps. Raise max_steps (--max-steps) to train further."
            )
        display = stack.enter_context(TrainingProgress(console))
        engine = _engine_of(config)
        with display.phase("speed"), explained_failures(folder.path):
            before = read_rows(folder.path / run_folder.TIMINGS) if resume else ()
            known = summary.mean_seconds(before)
            others = measuring.unseen_problems(config, problems)
            # Of a set without a split a budget may leave more.
            sure = config.split is not None or config.time_budget is None
            real = replace(config, eval_problems=len(others)) if sure else config
            plan = engine.fit(real, problems, started, known, display.say, report)
        config = replace(plan.config, eval_problems=config.eval_problems)
        if config.max_problems is not None and config.max_problems < len(problems):
            problems = problems[: config.max_problems]
            others = measuring.unseen_problems(config, problems)
        if config.has_language_model and len(others) < config.eval_problems:
            display.say(warning_of_few(len(others), config))
        display.begin("prepare")
        limits = Limits(call_cpu_time=config.time_limit)
        models = plan.models
        stack.callback(models.close)
        sandbox = sandbox or stack.enter_context(engine.sandbox(config, limits))
        rewards = RewardConfig(config.alpha, config.num_tests, config.strict_paper, config.rewards)
        rules = RefereeConfig(rewards, wrong_oracle=config.wrong_oracle, limits=limits)
        referee = stack.enter_context(engine.referee(sandbox, rules))
        # Of a large set no more than these are looked at before the first step.
        looked_at = measuring.drawn(problems, config.eval_trained, config.seed)
        if not saved and (failing := failing_references(looked_at, sandbox, limits)):
            display.say(warning_of(failing))
        held_out = hold_out(looked_at, sandbox, config.seed)

        @cache
        def splits() -> list[HeldOut]:
            whole = len(looked_at) == len(problems)
            return held_out if whole else hold_out(problems, sandbox, config.seed)

        players = make_players(
            config, problems, splits, sandbox, coder=coder, tester=tester, models=models
        )
        if config.max_staleness:
            check_ahead(players)
        book = MistakeBook(config.max_tests_per_problem, config.decay, config.stale_steps)
        past = measuring.new_past()
        numbers = RolloutConfig(
            num_generations=config.num_generations,
            num_suites=config.num_suites,
            use_book=config.use_book,
            black_box=config.black_box,
            overlap=config.overlap,
            oracle=config.oracle,
        )
        sampling = DynamicSampling(config, problems)

        if saved:
            book, past = load_checkpoint(saved[0], players.coder, players.tester, config)
        changed = run_folder.note_own_files(folder.path, config, step)
        if saved:
            display.say(f"Resuming {folder.path} after step {step}.{changed}")
        elif resume:
            display.say(f"{folder.path} has no checkpoint: it begins again with the first step.")
        folder.write_config(config)
        folder.truncate(step if saved else -1)

        display.expect(
            steps=config.max_steps,
            done=step,
            step=plan.step,
            measurements=plan.measurements - (step // config.eval_steps + 1 if saved else 0),
            each=plan.measurement,
        )

        held_back = measuring.HeldBack(held_out, referee, config)
        unseen = measuring.Unseen(others, referee, config)

        def measured() -> Row:
            with display.phase("evaluate"):
                row, rows = held_back.measure(players, book, past)
                others, other_rows = unseen.measure(players)
            folder.append(run_folder.HELD_OUT, ({"step": step, **each} for each in rows))
            if other_rows:
                folder.append(run_folder.UNSEEN, ({"step": step, **each} for each in other_rows))
            return row | others

        def save() -> None:
            display.begin("checkpoint")
            folder.sync()
            save_checkpoint(
                folder.path,
                step,
                players.coder,
                players.tester,
                Books(book, past),
                keep=config.save_total_limit,
            )

        def save_if_new() -> None:
            if step_of(checkpoints(folder.path)[-1]) != step:
                save()

        stack.enter_context(explained_failures(folder.path))
        if not saved:
            folder.append(run_folder.METRICS, [{"step": 0, **measured()}])
            save()

        def play_step(number: int, by: Players, ahead: bool) -> PlayedStep:
            coder_seat: Agent = by.coder
            tester_seat: Agent = by.tester
            if not ahead:
                coder_seat = display.watch(by.coder, "coder")
                tester_seat = display.watch(by.tester, "tester", then="judge")
            batch = problems_of_step(problems, config.seed, number, config.problems_per_step)
            by.take_usage()  # of a measurement
            chosen = sampling.of_step(batch, number)
            played = play(batch, coder_seat, tester_seat, referee, book, numbers, chosen.more)
            return PlayedStep(by, len(batch), chosen, played, by.take_usage(), ahead)

        tracking = stack.enter_context(
            Tracking(config.tracker, folder.path, flat(config), display.say)
        )
        done = list(read_rows(folder.path / run_folder.METRICS))
        tracking.catch_up(done, read_rows(folder.path / run_folder.TIMINGS))
        throughput = summary.Throughput(done[-1])
        thread = ThreadPoolExecutor(1, "ahead")
        # Not waited for: who ends the run ends what is played with, too.
        stack.callback(thread.shutdown, wait=False)
        next_step: Future[PlayedStep] | None = None
        stop.waits = True
        while step < config.max_steps and not stop.requested:
            try:
                if next_step is not None:
                    now, next_step = next_step.result(), None
                else:
                    now = play_step(step, players.for_step(), ahead=False)
            except BackendError:
                save_if_new()  # nobody has learned anything of this step yet
                raise
            played = entered(now.played, book, numbers)
            measuring.remember(past, played)
            coder_experience = now.chosen.lesson("coder", played)
            tester_experience = now.chosen.lesson("tester", played)

            # What is done beside an update takes no time of its own.
            seconds = {} if now.ahead else dict(played.seconds)
            learned: Row = {}
            for role, usage in now.usages.items():
                learned |= prefixed(role, usage.metrics())
            shown = demonstrations(config, played, step)
            to_learn = lessons(config, now.players, coder_experience, tester_experience, shown)
            if config.max_staleness and step + 1 < config.max_steps and not stop.requested:
                next_step = thread.submit(play_step, step + 1, players.for_step(), ahead=True)
            taught = teach(to_learn, display.phase, engine.elsewhere)
            learned |= taught.metrics
            seconds |= taught.seconds
            if config.max_staleness:
                with timed(seconds, "wait"), display.phase("wait"):
                    wait([] if next_step is None else [next_step])

            step += 1
            row: Row = {"step": step}
            row |= step_metrics(played, coder_experience, tester_experience, len(book)) | learned
            if sampling.active:
                problems_played = len(played.episodes) // config.num_generations
                row["resampled"] = problems_played - now.problems
            row["tester/copied"] = copied_share(played.episodes, sandbox)
            if step % config.eval_steps == 0 or step == config.max_steps:
                with timed(seconds, "evaluate"):
                    row |= measured()
            folder.append(run_folder.METRICS, [row])
            episodes = list(episode_rows(played, step, players.chats))
            folder.append(run_folder.EPISODES, episodes)
            if step % config.save_steps == 0 or step == config.max_steps:
                with timed(seconds, "checkpoint"):
                    save()
            timings = prefixed("seconds", seconds) | {"sandbox/seconds": played.sandbox.seconds}
            timings |= throughput.of_step(now.usages, row, {**seconds, **taught.of_roles})
            timings |= summary.peak_memory()
            if now.ahead:
                timings |= prefixed("ahead", played.seconds)
            folder.append(run_folder.TIMINGS, [{"step": step, **timings}])
            if tracking.active:
                tracking.log(report_of(step, played, episodes, row, timings))
            display.update(row)
        save_if_new()  # after an interrupt
        models.dismiss()
    return _result(folder.path, step, config, console)


def _engine_of(config: TrainConfig) -> LocalEngine:
    if config.engine == "local":
        return LocalEngine()
    from codea1_env.training.ray_engine import RayEngine

    return RayEngine(config.address)


def _follow(config: TrainConfig, problems: int) -> TrainResult:
    """Be one of the other processes of a run: make the same players, and do what the first does with them."""
    models = LanguageModels(config, problems)
    for role in roles_of(config):
        make_language_model(config, role, models)
    models.follow()
    models.close()
    return TrainResult(config.output_dir or Path("runs"), config.max_steps, True, {}, {})


def _result(path: Path, step: int, config: TrainConfig, console: Console) -> TrainResult:
    """Sum the run up, and show it."""
    rows = list(read_rows(path / run_folder.METRICS))
    start, end = summary.start_and_end(rows)
    result = TrainResult(path, step, step >= config.max_steps, start, end)
    console.print(summary.summary_table(result))
    if config.has_language_model:
        console.print(summary.phases_table(read_rows(path / run_folder.TIMINGS), rows))
    if not result.finished:
        console.print(
            f"Stopped after step {step}. To go on: codea1 train --resume --output-dir {path}",
            highlight=False,
            soft_wrap=True,
        )
    console.print(f"Run folder: {path}", highlight=False, soft_wrap=True)
    return result
