"""A run while it goes on: `open` prepares everything, `take_step` plays and learns once, `finish` leaves a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, cached_property, partial

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
from codea1_env.training.players import OwnPlayer, Players, make_players
from codea1_env.training.progress import TrainingProgress
from codea1_env.training.run_folder import RunFolder
from codea1_env.training.settings import flat
from codea1_env.training.sparring import Sparring, sparring_metrics
from codea1_env.training.trackers import Tracking
from codea1_env.training.trainer_arguments import sparring_groups


class Run(ExitStack):
    """One training run, and what is freed at its end."""

    players: Players
    past: PastOpponents
    _panel: PanelOfRun

    def __init__(
        self,
        config: TrainConfig,
        problems: list[Problem],
        console: Console,
        started: float,
        *,
        resume: bool,
    ) -> None:
        super().__init__()
        self.config, self.problems = config, problems
        self.step = 0
        self.time_is_over = False
        """Whether `max_minutes` ended the run."""
        self._console, self._started, self._resume = console, started, resume

    @property
    def goes_on(self) -> bool:
        """Whether there is another step, time for it, and nobody asked to stop."""
        done = self.step >= self.config.max_steps or self.time_is_over
        return not (done or self._stop.requested)

    def take_step(self) -> None:
        """Play, learn, measure and log one step."""
        started, config, players = time.monotonic(), self.config, self.players
        past = self.past.of_step(self.step)
        batch = problems_of_run.problems_of_step(
            self.problems, config.seed, self.step, config.problems_per_step
        )
        chosen = self._sampling.of_step(batch, self.step)
        played, usages = self._play(batch, chosen, past)
        for episode in played.episodes:
            self._remembered.update(episode.problem.task_id, failed=episode.verdict.failed)
        self.past.note(past, played)
        seconds = dict(played.seconds)
        coder, tester = chosen.lesson("coder", played), chosen.lesson("tester", played)
        sparred, more = (None, []) if past.role == "tester" else self._spar(len(batch), seconds)
        taught = self._learn(played, past, coder, [*tester, *more])
        seconds |= taught.seconds
        self.step += 1
        row: Row = {"step": self.step, **step_metrics(played, coder, tester, len(self.book))}
        row |= round_metrics(played) if config.max_rounds > 1 else {}
        for role, usage in usages.items():
            row |= prefixed(role, usage.metrics())
        row |= taught.metrics
        if self._sampling.active:
            answers = config.num_generations * config.max_rounds
            row["resampled"] = len(played.episodes) // answers - len(batch)
        row |= past.metrics() if config.opponents == "past" else {}
        row["tester/copied"] = copied_share(played.episodes, self.sandbox)
        row |= sparring_metrics(sparred) if sparred else {}
        last = self._is_last(time.monotonic() - started)
        if last or self.step % config.eval_steps == 0:
            with timed(seconds, "evaluate"):
                row |= self._measured()
        self._log(row, played, sparred)
        self.past.keep(self.step, players)
        if last or self.step % config.save_steps == 0:
            with timed(seconds, "checkpoint"):
                self._save()
        timings = prefixed("seconds", seconds) | {"sandbox/seconds": played.sandbox.seconds}
        timings |= self._throughput.of_step(usages, row, {**seconds, **taught.of_roles})
        timings |= summary.peak_memory()
        self.folder.append(run_folder.TIMINGS, [{"step": self.step, **timings}])
        self._tracking.log(self.step, row, timings)
        self.display.update(row, last=last)

    def finish(self) -> None:
        """Leave a checkpoint, also after an interrupt."""
        if step_of(checkpoints(self.folder.path)[-1]) != self.step:
            self._save()

    # Parts of a step

    def _play(
        self, batch: Sequence[Problem], chosen: problems_of_run.Replacements, past: PastSide
    ) -> tuple[Rollouts, Mapping[str, Usage]]:
        """Play problems, and others that are chosen meanwhile; returns what language models took, too."""
        players = self.players
        seats: dict[str, Agent] = {"coder": players.coder, "tester": players.tester}
        seats |= self.past.seat(past, players, self.step)
        players.take_usage()  # of a measurement
        try:
            with measuring.drawn_again(players):
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
            self.finish()  # nobody has learned anything of this step yet
            raise
        return played, players.take_usage()

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

    def _spar(
        self, problems: int, seconds: dict[str, float]
    ) -> tuple[Rollouts | None, list[Experience]]:
        """Play sparring groups, where there are any; returns them, and what the tester learns from them."""
        groups = sparring_groups(self.config, problems)
        if not groups:
            return None, []
        with timed(seconds, "sparring"), self.display.phase("sparring"):
            played = self._sparring.play(self.players.tester, self.step, groups)
        return played, self._sparring.experience(played, groups)

    def _learn(
        self,
        played: Rollouts,
        past: PastSide,
        coder: Sequence[Experience],
        tester: Sequence[Experience],
    ) -> Taught:
        shown = demonstrations(self.config, played, self.step)
        to_learn = lessons(self.config, self.players, coder, tester, shown)
        to_learn.pop(past.role, None)  # who did not play has nothing to learn from
        return teach(to_learn, self.display.phase, self.engine.elsewhere)

    def _is_last(self, seconds: float) -> bool:
        """Whether the step that took so long is the last: another one, and what is measured at the end, would be late."""
        if self.step == self.config.max_steps:
            return True
        if self.config.max_minutes is not None:
            ends = self._started + 60 * self.config.max_minutes
            self.time_is_over = time.monotonic() + seconds + self._measuring > ends
        return self.time_is_over

    def _measured(self) -> Row:
        """Measure both players, and log the rows of problems."""
        started = time.monotonic()
        row: Row = {}
        with (
            self.display.phase("evaluate"),
            measuring.apart(self.players, self.config.seed, self.step),
        ):
            for log, measure in self._measures.items():
                found, rows = measure()
                row |= found
                if rows:
                    self.folder.append(log, ({"step": self.step, **each} for each in rows))
        self._measuring = time.monotonic() - started
        if self.step == 0 and self._panel.untrained:  # only the end will take this time
            used = self.players.take_usage().get("tester", Usage())
            self._measuring += used.seconds / max(used.answers, 1) * self._panel.programs
        return row

    def _log(self, row: Row, played: Rollouts, sparred: Rollouts | None) -> None:
        self.folder.append(run_folder.METRICS, [row])
        for line in self._health.news(row) if self.config.has_language_model else ():
            self.display.say(line)
        kept, chats = self.config.kept_programs, self.players.chats
        episodes = list(episode_rows(played, self.step, chats, kept))
        if sparred:
            rows = episode_rows(sparred, self.step, chats, kept)
            episodes += [{**each, "sparring": True} for each in rows]
        self.folder.append(run_folder.EPISODES, episodes)

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
        self.display = self.enter_context(
            TrainingProgress(self._console, self._started, self.config.max_minutes)
        )
        self.engine = engine_of(self.config)
        self._fit()
        # What a player of one's own writes may depend on more than its arguments.
        reuse_programs = coder is None and self.config.coder.player == "tabular"
        self._open_judges(sandbox, reuse_programs)
        self._make_players(coder, tester)
        self._restore()
        self._open_measures()
        self.enter_context(explained_failures(self.folder.path))
        if self._saved is None:
            self.folder.append(run_folder.METRICS, [{"step": 0, **self._measured()}])
            self.past.keep(0, self.players)
            self._save()
        self._track()
        self._stop.waits = True

    def _open_folder(self) -> None:
        self._stop = self.enter_context(stop_request(waits=False))
        if self._resume:
            self.config = run_folder.decided(self.config)
            self.folder = RunFolder.reopen(self.config)
        else:
            self.folder = RunFolder.create(self.config)
        self.callback(self.folder.close)
        if not self._resume:
            self.push(partial(leave_nothing, self.folder))
            self._stop.leave = partial(leave_nothing, self.folder, None, KeyboardInterrupt())
        saved = checkpoints(self.folder.path) if self._resume else []
        self._saved = saved[-1] if saved else None
        self.step = step_of(saved[-1]) if saved else 0
        if saved and self.step >= self.config.max_steps:
            raise RunError(
                f"Expect a run that is not finished, actually: {self.folder.path} has done {self.step} of "
                f"{self.config.max_steps} steps. Raise max_steps (--max-steps) to train further."
            )

    def _fit(self) -> None:
        before = list(read_rows(self.folder.path / run_folder.TIMINGS)) if self._resume else []
        measured = [each["seconds/evaluate"] for each in before if "seconds/evaluate" in each]
        self._measuring = sum(measured) / max(len(measured), 1)
        """Seconds of a measurement."""
        with explained_failures(self.folder.path):
            self._others = measuring.unseen_problems(self.config, self.problems)
            self.config, self.models = self.engine.fit(
                self.config, len(self.problems), self.display.say, resumed=bool(before)
            )
        self.callback(self.models.close)
        if self.config.has_language_model and len(self._others) < self.config.eval_problems:
            self.display.say(problems_of_run.warning_of_few(len(self._others), self.config))

    def _open_judges(self, sandbox: Sandbox | None, reuse_programs: bool) -> None:
        config = self.config
        limits = Limits(call_cpu_time=config.time_limit)
        self.sandbox = sandbox or self.enter_context(Sandbox(config.workers, limits))
        rules = replace(rules_of(config), reuse_programs=reuse_programs)
        self.referee = self.engine.referee(self.sandbox, rules)
        # Of a large set no more than these are looked at before the first step.
        looked_at = measuring.drawn(self.problems, config.eval_trained, config.seed)
        self._held_out = hold_out(looked_at, self.sandbox, config.seed)

    def _make_players(self, coder: OwnPlayer | None, tester: OwnPlayer | None) -> None:
        config = self.config

        @cache
        def splits() -> list[HeldOut]:
            if len(self._held_out) == len(self.problems):
                return self._held_out
            return hold_out(self.problems, self.sandbox, config.seed)

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
        self._sparring = Sparring(config, self.referee)

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
        done = self.step if self._saved else -1
        self.past.truncate(done, self._saved)
        changed = run_folder.note_own_files(path, config, self.step)
        if self._saved is not None:
            self.display.say(f"Resuming {path} after step {self.step}.{changed}")
        elif self._resume:
            self.display.say(f"{path} has no checkpoint: it begins again with the first step.")
        self.folder.write_config(config)
        self.folder.truncate(done)
        self.display.expect(config.max_steps, self.step)

    def _open_measures(self) -> None:
        config, referee = self.config, self.referee
        players, book, past = self.players, self.book, self._remembered
        held_back = measuring.HeldBack(self._held_out, referee, config)
        unseen = measuring.Unseen(self._others, referee, config)
        before = read_rows(self.folder.path / run_folder.PANEL)
        self._panel = panel = PanelOfRun(config, self.problems, players.tester, referee, before)
        self._measures: dict[str, Callable[[], tuple[Row, list[Row]]]] = {
            run_folder.HELD_OUT: lambda: held_back.measure(players, book, past),
            run_folder.UNSEEN: lambda: unseen.measure(players),
            run_folder.PANEL: lambda: panel.measure(players.tester, self.step),
        }
        for line in self._panel.left_out:
            self.display.say(line)
        if self._saved is not None and self._panel.is_new:
            self.display.say(
                "At its start this run met no panel, or another one: its end is measured on that of today."
            )

    def _track(self) -> None:
        path = self.folder.path
        self._tracking = self.enter_context(
            Tracking(self.config.tracker, path, flat(self.config), self.display.say)
        )
        done = list(read_rows(path / run_folder.METRICS))
        self._tracking.catch_up(done, read_rows(path / run_folder.TIMINGS))
        self._throughput = summary.Throughput(done[-1])
        self._health = summary.Health()
        for before in done:
            self._health.news(before)  # told before the run was resumed
