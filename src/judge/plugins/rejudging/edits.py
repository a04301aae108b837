"""`wabe score --tasks SCENARIO.toml`: judges recordings with the tasks of an edited scenario, once or on every save."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import typer

from judge.judges.base import Judge
from judge.judges.edited import EditedJudge, EditedTasks, paired, policies_in
from judge.judges.rescoring import Scored
from judge.judges.stored import score_all
from judge.plugins.rejudging.costs import Costs, both
from judge.plugins.rejudging.expected import Asking
from judge.plugins.rejudging.output import InOrder, JudgeTally, in_order_of
from judge.records.assertions import assertions_in
from judge.records.edits import Edit
from judge.records.policies import under_policy
from judge.records.tasks import Task
from judge.runner.boundary import EXIT_DONE, EXIT_LOST
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory, read_attempt
from shared.errors import ConfigError, TrajectoryError
from shared.saves import next_save, signature
from shared.text import counted, one_line

_MAX_ABSENT = 5
_MAX_LINE_CHARS = 700
_sleep = asyncio.sleep


@dataclass
class Edits:
    """Recordings, and the edited scenario that they are judged with by the judge that `open_` opens."""

    path: Path
    folders: Sequence[Path]
    open_: Callable[[], Judge]
    costs: Costs
    max_parallel: int
    is_run: bool
    is_quiet: bool = False
    again: bool = False
    _recorded: dict[Path, Task | None] = field(default_factory=dict)

    async def judge_once(self) -> int:
        """Judge everything once and print it. Returns the exit code; raises `ConfigError` if no recording matches."""
        scenario = self._load_scenario()
        edited = self._paired(scenario)
        tally = await self._judged(scenario, edited, is_announced=True)
        self.costs.unpaid = tally.unpaid
        if self.is_quiet:
            what = self.costs.summary() | {"scenario": str(self.path), "scenario_sha256": scenario.source_checksum}
            typer.echo(json.dumps(tally.summary() | what | {"refused": edited.refused, "absent": edited.absent}))
        else:
            typer.echo("\n".join([tally.line(), self._about(scenario, edited, tally), *self.costs.lines()]))
        return EXIT_DONE if tally.is_complete and not edited.refused else EXIT_LOST

    async def watch(self) -> NoReturn:
        """Judge everything, and again whenever the file is saved, printing what changed. Ends only if cancelled."""
        files_before = {folder: set(_verdict_files(folder)) for folder in self.folders}
        saved = signature(self.path)
        scenario = self._load_scenario()
        edited = self._paired(scenario)
        before = await self._judged(scenario, edited)
        typer.echo(f"{before.line()}\n{self._about(scenario, edited, before)}\nWatching {self.path}; Ctrl-C ends it.")
        refusals = edited.refused
        self.is_quiet = True
        while True:
            saved = await next_save(self.path, saved, _sleep)
            began = asyncio.get_running_loop().time()
            try:
                scenario = self._load_scenario()
                edited = self._paired(scenario, is_quiet=True)
                after = await self._judged(scenario, edited)
            except ConfigError as error:
                # Usually a half-finished edit. The next save is judged again.
                typer.echo(f"not judged: {error}")
                continue
            for folder in edited.folders:
                # Remove the verdicts that this command wrote for the previous save: people save often.
                for path in set(_verdict_files(folder)) - files_before[folder] - self._verdict_files(folder, after):
                    path.unlink(missing_ok=True)
            lines = [line for line in edited.refused if line not in refusals]
            lines += changes(before.reasons, after.reasons)
            seconds = asyncio.get_running_loop().time() - began
            typer.echo("\n".join([*(lines or ["no verdict changed"]), f"  ({seconds:.1f} s, {_counts(after)})"]))
            refusals, before = edited.refused, after

    def _load_scenario(self) -> Scenario:
        """The edited scenario, with dates of the day on which the recorded tasks were played."""
        if not self._recorded:
            self._recorded = {folder: _task_in(folder) for folder in self.folders}
        days = (task.dated.day for task in self._recorded.values() if task and task.dated)
        return load_scenario(self.path, today=next(days, None))

    def _paired(self, scenario: Scenario, *, is_quiet: bool = False) -> EditedTasks:
        tasks = (*scenario.tasks, *scenario.excluded)
        ids = [task.task_id for task in tasks]
        edited = paired({folder: self._recorded[folder] for folder in in_order_of(ids, self._recorded)}, tasks)
        if not edited.folders:
            why = edited.refused[0] if edited.refused else "none of the recorded tasks is in it"
            raise ConfigError(f"--tasks {self.path}: {why}", remedy="play the changed tasks, or give their scenario")
        for line in () if is_quiet else edited.refused:
            typer.echo(line, err=True)
        return edited

    async def _judged(self, scenario: Scenario, edited: EditedTasks, *, is_announced: bool = False) -> "_Tally":
        further = scenario.config.sites.shared
        edits = {task.task_id: Edit.of(task, further) for task in (*scenario.tasks, *scenario.excluded)}
        judge = EditedJudge(self.open_(), edits, self.path.name)
        tally = _Tally(judge, is_run=self.is_run, is_quiet=self.is_quiet, scenario=self.path.name)
        off_site = self.costs.config.off_site
        async with aclosing(judge):
            if is_announced:
                self.costs.folders = edited.folders
                await self.costs.expect([Asking(judge, self.again)])
            with self.costs.progress(len(edited.folders)) as done:
                await score_all(
                    edited.folders,
                    judge,
                    max_parallel=self.max_parallel,
                    off_site=off_site,
                    again=self.again,
                    done=both(InOrder(edited.folders, tally.take), done),
                )
        return tally

    def _about(self, scenario: Scenario, edited: EditedTasks, tally: JudgeTally) -> str:
        """A description of what was compared."""
        parts = [f"Judged with the tasks of {self.path} ({scenario.source_checksum[:12]}); the run's own verdicts stay"]
        if isinstance(tally, _Tally) and (under := tally.under_policy):
            parts.append(f"completion under policy: {under['success']} of {under['success'] + under['failure']} scored")
        if edited.refused:
            parts.append(f"{counted(len(edited.refused), 'task')} refused, because website or task differ")
        if edited.absent:
            names = ", ".join(edited.absent[:_MAX_ABSENT]) + (", …" if len(edited.absent) > _MAX_ABSENT else "")
            parts.append(f"{counted(len(edited.absent), 'recorded task')} not in it: {names}")
        return "; ".join(parts) + "."

    def _verdict_files(self, folder: Path, tally: JudgeTally) -> set[Path]:
        """The verdict files of these judges in a folder."""
        task = self._recorded.get(folder)
        judges = tally.judge.judges_of(task) if task else ()
        return {folder / "verdicts" / f"{judge.id}.json" for judge in judges}


@dataclass
class _Tally(JudgeTally):
    """Also keeps outcome and reason by task."""

    reasons: dict[str, tuple[str, str]] = field(default_factory=dict)
    # How many attempts at tasks with policies are a completion under policy, are not, or may be.
    under_policy: Counter[str] = field(default_factory=Counter)

    def take(self, scored: Scored) -> None:
        """Count a trajectory."""
        super().take(scored)
        self.reasons[TaskStore(scored.folder).key] = (scored.outcome, self._about(scored))
        if policies := policies_in(scored.verdict):
            self.under_policy[under_policy(scored.outcome, policies)] += 1

    def _about(self, scored: Scored) -> str:
        """Every check that failed and every policy not kept: a person who edits them needs all of them."""
        broken = [
            one_line(f"policy {each.name}: {'undecided' if each.violated is None else 'violated'}, found {each.found}")
            for each in policies_in(scored.verdict)
            if each.violated is not False
        ]
        return "\n  ".join([self._about_checks(scored), *(line[:_MAX_LINE_CHARS] for line in broken)])

    def _about_checks(self, scored: Scored) -> str:
        checks = assertions_in(scored.verdict)
        failed = [each for each in checks if each.passed is False] if scored.outcome == "failure" else []
        lines = [one_line(f"{each.description}: failed, found {each.found}", _MAX_LINE_CHARS) for each in failed]
        if len(lines) > 1:
            return "\n  ".join([f"{len(failed)} of {counted(len(checks), 'check')} failed", *lines])
        return lines[0] if lines else one_line(scored.reason, _MAX_LINE_CHARS)


def _verdict_files(folder: Path) -> list[Path]:
    return list((folder / "verdicts").glob("*.json"))


def is_scenario(path: Path | None) -> bool:
    """Whether `--tasks` names a scenario rather than the dataset of a foreign folder."""
    return path is not None and path.suffix.lower() == ".toml"


def _task_in(folder: Path) -> Task | None:
    """The recorded task, `None` if the record is damaged: judging says how."""
    try:
        if (folder / "result.json").is_file():
            return read_attempt(folder).task
        return load_trajectory(folder).task
    except (TrajectoryError, OSError):
        return None


def changes(before: Mapping[str, tuple[str, str]], after: Mapping[str, tuple[str, str]]) -> list[str]:
    """A line for each task whose outcome or reason has changed."""
    lines = []
    for key, (outcome, reason) in after.items():
        was = before.get(key)
        if was == (outcome, reason):
            continue
        turned = outcome if was is None or was[0] == outcome else f"{was[0]} → {outcome}"
        lines.append(f"{key}: {turned}: {reason}")
    return [*lines, *(f"{key}: no longer judged" for key in before if key not in after)]


def _counts(tally: JudgeTally) -> str:
    summary: dict[str, Any] = tally.summary()
    names = ("success", "failure", "unscored")
    return ", ".join(f"{summary[name]} {name}" for name in names if summary[name]) or "nothing judged"


def require_fitting(tasks: Path | None, *, watch: bool, is_dry: bool, others: Mapping[str, object]) -> None:
    """Raises `ConfigError` for options that do not go together. `others` do not go with an edited scenario."""
    option_name = next((name for name, value in others.items() if value), None)
    if watch and not is_scenario(tasks):
        raise ConfigError("--watch repeats --tasks SCENARIO.toml", remedy="add --tasks with the scenario to watch")
    if watch and is_dry:
        raise ConfigError("--dry-run does not go with --watch: checks cost nothing", remedy="leave one out")
    if is_scenario(tasks) and option_name:
        raise ConfigError(f"{option_name} does not go with --tasks {tasks}", remedy="use them one after the other")
