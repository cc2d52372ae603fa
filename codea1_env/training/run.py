"""A run while it goes on: `open` prepares everything, `take_step` plays and learns once, `finish` leaves a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from types import TracebackType
from typing import Self

from rich.console import Console

from codea1_env.agents.llm.agent import Usage
from codea1_env.agents.llm.completions import BackendError
from codea1_env.evaluation import HeldOut, copied_share, hold_out
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.rollout import Agent, Experience, RolloutConfig, Rollouts, rollout
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.support.logs import read_rows
from codea1_env.support.stopping import stop_request
from codea1_env.training import measuring, problems_of_run, run_folder, summary
from codea1_env.training.checkpoints import (
    Books,
    checkpoints,
    explained_failures,
    leave_nothing,
    load_checkpoint,
    save_checkpoint,
    step_of,
)
from codea1_env.training.config import RunError, TrainConfig, rules_of
from codea1_env.training.language_models import LocalEngine
from codea1_env.training.lessons import Taught, demonstrations, lessons, teach, timed
from codea1_env.training.metrics import Row, episode_rows, prefixed, round_metrics, step_metrics
from codea1_env.training.panel_of_run import PanelOfRun
from codea1_env.training.past import PastOpponents, PastSide
from codea1_env.training.players import OwnPlayer, make_players
from codea1_env.training.progress import TrainingProgress
from codea1_env.training.run_folder import RunFolder
from codea1_env.training.settings import flat
from codea1_env.training.sparring import Sparring, sparring_metrics
from codea1_env.training.trackers import Tracking
from codea1_env.training.trainer_arguments import sparring_groups

_OF_MEASURED = 1 / 3
"""What a program of a step takes, as a share of one of a measurement, whose suites also meet mutants; about, for tables."""


@dataclass(frozen=True)
class PlayedStep:
    """A step that was played, and has not been learned from."""

    problems: int
    """Number of its problems, without those that took the place of others."""
    chosen: problems_of_run.Replacements
    """Tells what is learned from."""
    played: Rollouts
    usages: Mapping[str, Usage]
    """Role -> what the answers of a language model took."""
    past: PastSide
    """The side that an earlier checkpoint played."""


class Run:
    """One training run."""

    def __init__(
        self,
        config: TrainConfig,
        problems: list[Problem],
        console: Console,
        started: float,
        *,
        resume: bool,
    ) -> None:
        self.config, self.problems = config, problems
        self.step = 0
        self.time_is_over = False
        """Whether `max_minutes` ended the run."""
        self._console, self._started, self._resume = console, started, resume
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    # Opening

    def open(
        self,
        engine_of: Callable[[TrainConfig], LocalEngine],
        sandbox: Sandbox | None,
        coder: OwnPlayer | None = None,
        tester: OwnPlayer | None = None,
    ) -> None:
        """Make or reopen the folder, settle what depends on this machine (number format, threads), make the players, and measure them.

        Raises a RunError if the run cannot be started or resumed.
        """
        self._open_folder()
        self.display = self._stack.enter_context(
            TrainingProgress(self._console, self._started, self.config.max_minutes)
        )
        self.engine = engine_of(self.config)
        self._fit()
        # What a player of one's own writes may depend on more than its arguments.
        self._open_judges(sandbox, coder is None and self.config.coder.player == "tabular")
        self._make_players(coder, tester)
        self._restore()
        config = self.config
        self._held_back = measuring.HeldBack(self._held_out, self.referee, self.config)
        self._unseen = measuring.Unseen(self._others, self.referee, self.config)
        self._sparring = Sparring(config, self.referee)
        before = read_rows(self.folder.path / run_folder.PANEL)
        tester = self.players.tester
        self._panel = PanelOfRun(config, self.problems, tester, self.referee, before)
        for line in self._panel.left_out:
            self.display.say(line)
        if self._saved is not None and self._panel.is_new:
            self.display.say(
                "At its start this run met no panel, or another one: its end is measured on that of today."
            )
        self._stack.enter_context(explained_failures(self.folder.path))
        if self._saved is None:
            self.folder.append(run_folder.METRICS, [{"step": 0, **self._measured()}])
            if not config.has_language_model:
                measured = (len(self._held_out) + len(self._others)) * config.eval_samples
                programs = config.problems_per_step * config.num_generations
                self.display.guess(_OF_MEASURED * programs / max(measured, 1))
            self.past.keep(0, self.players)
            self._save()
        self._track()
        self._stop.waits = True

    def _open_folder(self) -> None:
        self._stop = self._stack.enter_context(stop_request(waits=False))
        if self._resume:
            self.config = run_folder.decided(self.config)
            self.folder = RunFolder.reopen(self.config)
        else:
            self.folder = RunFolder.create(self.config)
        self._stack.callback(self.folder.close)
        if not self._resume:
            self._stack.push(partial(leave_nothing, self.folder))
            self._stop.leave = partial(leave_nothing, self.folder, None, KeyboardInterrupt())
        saved = checkpoints(self.folder.path)[-1:] if self._resume else []
        self._saved = saved[0] if saved else None
        self.step = step_of(saved[0]) if saved else 0
        if saved and self.step >= self.config.max_steps:
            raise RunError(
                f"Expect a run that is not finished, actually: {self.folder.path} has done {self.step} of "
                f"{self.config.max_steps} steps. Raise max_steps (--max-steps) to train further."
            )

    def _fit(self) -> None:
        before = read_rows(self.folder.path / run_folder.TIMINGS) if self._resume else ()
        self._known = summary.mean_seconds(before)
        with self.display.phase("speed"), explained_failures(self.folder.path):
            self._others = measuring.unseen_problems(self.config, self.problems)
            self.config, self.models = self.engine.fit(
                self.config, len(self.problems), self.display.say, resumed=bool(self._known)
            )
        self._stack.callback(self.models.close)
        if self.config.has_language_model and len(self._others) < self.config.eval_problems:
            self.display.say(problems_of_run.warning_of_few(len(self._others), self.config))
        self.display.begin("prepare")

    def _open_judges(self, sandbox: Sandbox | None, reuse_programs: bool) -> None:
        config = self.config
        limits = Limits(call_cpu_time=config.time_limit)
        self.sandbox = sandbox or self._stack.enter_context(Sandbox(config.workers, limits))
        rules = replace(rules_of(config), reuse_programs=reuse_programs)
        self.referee = self.engine.referee(self.sandbox, rules)
        # Of a large set no more than these are looked at before the first step.
        looked_at = measuring.drawn(self.problems, config.eval_trained, config.seed)
        self._held_out = hold_out(looked_at, self.sandbox, config.seed)

    def _make_players(self, coder: OwnPlayer | None, tester: OwnPlayer | None) -> None:
        config, held_out = self.config, self._held_out

        @cache
        def splits() -> list[HeldOut]:
            whole = len(held_out) == len(self.problems)
            return held_out if whole else hold_out(self.problems, self.sandbox, config.seed)

        self.players = make_players(
            config,
            self.problems,
            splits,
            self.sandbox,
            coder=coder,
            tester=tester,
            models=self.models,
        )
        self.past = PastOpponents(config, self.folder.path, self.models)
        self._sampling = problems_of_run.DynamicSampling(config, self.problems)

    def _restore(self) -> None:
        config, path = self.config, self.folder.path
        self.book = MistakeBook(
            config.page_size, config.decay, config.stale_steps, config.book_replay
        )
        # It only measures: nothing leaves it because programs pass, and nobody is shown it.
        self._remembered = MistakeBook(measuring.PAST_TESTS)
        if self._saved is not None:
            self.book, self._remembered = load_checkpoint(
                self._saved, self.players.coder, self.players.tester, config
            )
        self.past.truncate(self.step if self._saved else -1, self._saved)
        changed = run_folder.note_own_files(path, config, self.step)
        if self._saved is not None:
            self.display.say(f"Resuming {path} after step {self.step}.{changed}")
        elif self._resume:
            self.display.say(f"{path} has no checkpoint: it begins again with the first step.")
        self.folder.write_config(config)
        self.folder.truncate(self.step if self._saved else -1)
        measured = self.step // config.eval_steps + 1 if self._saved else 0
        measurements = 1 + -(-config.max_steps // config.eval_steps) - measured
        self.display.expect(config.max_steps, self.step, self._known, measurements)

    def _track(self) -> None:
        path = self.folder.path
        self._tracking = self._stack.enter_context(
            Tracking(self.config.tracker, path, flat(self.config), self.display.say)
        )
        done = list(read_rows(path / run_folder.METRICS))
        self._tracking.catch_up(done, read_rows(path / run_folder.TIMINGS))
        self._throughput = summary.Throughput(done[-1])
        self._health = summary.Health()
        for before in done:
            self._health.news(before)  # told before the run was resumed

    # Steps

    @property
    def goes_on(self) -> bool:
        """Whether there is another step, time for it, and nobody asked to stop."""
        done = self.step >= self.config.max_steps or self.time_is_over
        return not (done or self._stop.requested)

    @cached_property
    def _numbers(self) -> RolloutConfig:
        config = self.config
        return RolloutConfig(
            num_generations=config.num_generations,
            num_suites=config.num_suites,
            use_book=config.use_book,
            black_box=config.black_box,
            max_rounds=config.max_rounds,
            tester_rounds=config.tester_rounds,
            overlap=config.overlap,
            writes_ahead={"coder", "tester"} <= {*self.engine.elsewhere},
            oracle=config.oracle,
        )

    def take_step(self) -> None:
        """Play, learn, measure and log one step."""
        started = time.monotonic()
        now = self._play()
        played = now.played
        measuring.remember(self._remembered, played)
        seconds = dict(played.seconds)
        coder = now.chosen.lesson("coder", played)
        tester = now.chosen.lesson("tester", played)
        to_learn, sparred = self._spar(now, tester, seconds)
        taught = self._learn(now, played, coder, to_learn, seconds)
        self.step += 1
        row: Row = {"step": self.step}
        row |= step_metrics(played, coder, tester, len(self.book))
        row |= self._more_metrics(now, played, taught)
        row |= sparring_metrics(sparred) if sparred else {}
        last = self._is_last(time.monotonic() - started)
        measures = self.step % self.config.eval_steps == 0 or self.step == self.config.max_steps
        if measures or last:
            with timed(seconds, "evaluate"):
                row |= self._measured()
        self.folder.append(run_folder.METRICS, [row])
        for line in self._health.news(row) if self.config.has_language_model else ():
            self.display.say(line)
        kept = self.config.kept_programs
        episodes = list(episode_rows(played, self.step, self.players.chats, kept))
        if sparred:
            rows = episode_rows(sparred, self.step, self.players.chats, kept)
            episodes += [{**each, "sparring": True} for each in rows]
        self.folder.append(run_folder.EPISODES, episodes)
        self.past.keep(self.step, self.players)
        if self.step % self.config.save_steps == 0 or last:
            with timed(seconds, "checkpoint"):
                self._save()
        timings = self._timings(now, played, row, {**seconds, **taught.of_roles}, seconds)
        self.folder.append(run_folder.TIMINGS, [{"step": self.step, **timings}])
        self._tracking.log(self.step, row, timings)
        self.display.update(row, last=last)

    def _is_last(self, seconds: float) -> bool:
        """Whether the step that took so long is the last: another one, and what is measured at the end, would be late."""
        if self.step == self.config.max_steps:
            return True
        if self.config.max_minutes is not None:
            ends = self._started + 60 * self.config.max_minutes
            measuring = self._known.get("evaluate", 0.0)
            self.time_is_over = time.monotonic() + seconds + measuring > ends
        return self.time_is_over

    def _play(self) -> PlayedStep:
        config, number, players = self.config, self.step, self.players
        past = self.past.of_step(number)
        seats: dict[str, Agent] = {"coder": players.coder, "tester": players.tester}
        seats |= self.past.seat(past, players, number)
        batch = problems_of_run.problems_of_step(
            self.problems, config.seed, number, config.problems_per_step
        )
        players.take_usage()  # of a measurement
        chosen = self._sampling.of_step(batch, number)
        try:
            played = rollout(
                batch,
                self.display.watch(seats["coder"], "coder"),
                self.display.watch(seats["tester"], "tester", then="judge"),
                self.referee,
                self.book,
                self._numbers,
                chosen.more,
            )
        except BackendError:
            self._save_if_new()  # nobody has learned anything of this step yet
            raise
        return PlayedStep(len(batch), chosen, played, players.take_usage(), past)

    def _spar(
        self, now: PlayedStep, tester: list[Experience], seconds: dict[str, float]
    ) -> tuple[list[Experience], Rollouts | None]:
        """Add sparring groups to what the tester learns from."""
        groups = sparring_groups(self.config, now.problems)
        if not groups or now.past.role == "tester":
            return tester, None
        with timed(seconds, "sparring"), self.display.phase("sparring"):
            played = self._sparring.play(self.players.tester, self.step, groups)
        return [*tester, *self._sparring.experience(played, groups)], played

    def _learn(
        self,
        now: PlayedStep,
        played: Rollouts,
        coder: Sequence[Experience],
        tester: Sequence[Experience],
        seconds: dict[str, float],
    ) -> Taught:
        config = self.config
        metrics: Row = {}
        for role, usage in now.usages.items():
            metrics |= prefixed(role, usage.metrics())
        shown = demonstrations(config, played, self.step)
        to_learn = lessons(config, self.players, coder, tester, shown)
        to_learn.pop(now.past.role, None)  # who did not play has nothing to learn from
        self.past.note(now.past, played)
        taught = teach(to_learn, self.display.phase, self.engine.elsewhere)
        seconds |= taught.seconds
        return replace(taught, metrics={**metrics, **taught.metrics})

    def _more_metrics(self, now: PlayedStep, played: Rollouts, taught: Taught) -> Row:
        config = self.config
        row: Row = {}
        if config.max_rounds > 1:
            row |= round_metrics(played)
        row |= taught.metrics
        if self._sampling.active:
            answers = config.num_generations * config.max_rounds
            row["resampled"] = len(played.episodes) // answers - now.problems
        if config.opponents == "past":
            row |= now.past.metrics()
        row["tester/copied"] = copied_share(played.episodes, self.sandbox)
        return row

    def _timings(
        self,
        now: PlayedStep,
        played: Rollouts,
        row: Row,
        of_roles: Mapping[str, float],
        seconds: Mapping[str, float],
    ) -> Row:
        timings = prefixed("seconds", seconds) | {"sandbox/seconds": played.sandbox.seconds}
        timings |= self._throughput.of_step(now.usages, row, of_roles)
        timings |= summary.peak_memory()
        return timings

    # Measuring and saving

    def _measured(self) -> Row:
        started = time.monotonic()
        draws = measuring.apart(self.players, self.config.seed, self.step)
        with self.display.phase("evaluate"), draws:
            row, rows = self._held_back.measure(self.players, self.book, self._remembered)
            others, other_rows = self._unseen.measure(self.players)
            on_panel, counts = self._panel.measure(self.players.tester, self.step)
        self._known["evaluate"] = time.monotonic() - started
        if self.step == 0 and self._panel.untrained:  # only the end will take this time
            used = self.players.take_usage().get("tester", Usage())
            each = used.seconds / max(used.answers, 1)
            self._known["evaluate"] += each * self._panel.programs
        self.folder.append(run_folder.HELD_OUT, ({"step": self.step, **each} for each in rows))
        if other_rows:
            unseen = ({"step": self.step, **each} for each in other_rows)
            self.folder.append(run_folder.UNSEEN, unseen)
        if counts:
            told = ({"step": self.step, **each} for each in counts)
            self.folder.append(run_folder.PANEL, told)
        return row | others | on_panel

    def _save(self) -> None:
        self.display.begin("checkpoint")
        self.folder.sync()
        save_checkpoint(
            self.folder.path,
            self.step,
            self.players.coder,
            self.players.tester,
            Books(self.book, self._remembered),
            keep=self.config.save_total_limit,
            past=self.past.state(),
        )
        self.past.prune(self.step)

    def _save_if_new(self) -> None:
        if step_of(checkpoints(self.folder.path)[-1]) != self.step:
            self._save()

    def finish(self) -> None:
        """Leave a checkpoint, also after an interrupt."""
        self._save_if_new()
