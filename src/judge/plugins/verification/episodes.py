"""Compares the episodes of a served scenario with their counts and with its request."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.results.run_record import task_digests
from judge.results.submission import TaskSummary
from judge.store.episodes import EpisodeCounts, is_open, kept_counts, number_of, read_counts
from judge.store.layout import RunStore, TaskStore
from shared.errors import ConfigError
from shared.fields import as_mapping
from shared.text import counted


@dataclass(frozen=True)
class EpisodeFindings:
    """`ended` have a result; `unfinished` are being played, or were interrupted."""

    ended: list[TaskStore]
    unfinished: list[TaskStore]
    mismatches: tuple[str, ...]
    notes: tuple[str, ...]
    digests: Mapping[str, Any]

    @classmethod
    def of(cls, store: RunStore, run: Mapping[str, Any], tasks: Sequence[TaskStore]) -> "EpisodeFindings":
        """The episodes of a run, of which `tasks` are on disk."""
        has_ended = {task.folder: (task.folder / "result.json").exists() for task in tasks}
        ended_tasks = [task for task in tasks if has_ended[task.folder]]
        unfinished = [task for task in tasks if not has_ended[task.folder]]
        open_tasks = [task for task in unfinished if is_open(task)]
        notes = [f"{counted(len(unfinished) - len(open_tasks), 'episode')} without an end: interrupted"]
        notes += [f"{counted(len(open_tasks), 'episode')} being played"]
        mismatches: list[str] = []
        try:
            counts = read_counts(store) or EpisodeCounts()
        except ConfigError as error:
            mismatches.append(error.message)
        else:
            notes += [f"{counted(number_of(counts.removed), 'deleted episode')}: counted only, not checked"]
            if store.is_being_judged:
                notes.append("the scenario is being served: its counts were not compared")
            else:
                mismatches += _miscounted(store, counts)
        requested_tasks = as_mapping(as_mapping(run.get("request")).get("tasks"))
        messages = tuple(note for note in notes if not note.startswith("0 "))
        return cls(ended_tasks, unfinished, tuple(mismatches), messages, requested_tasks)

    def other_tasks(self, summaries: Sequence[TaskSummary]) -> Iterator[str]:
        """Episodes of other tasks than the request's."""
        for summary in summaries:
            name, digest = next(iter(task_digests([summary.task]).items()))
            if self.digests.get(name) != digest:
                yield f"episodes/{summary.entry.get('epoch', 1)}: not the task {name} of run.json"


def _miscounted(store: RunStore, counts: EpisodeCounts) -> Iterator[str]:
    counted_kept, declared = kept_counts(store), counts.remaining
    for task in sorted({*counted_kept, *declared}):
        if counted_kept.get(task) != declared.get(task):
            expected, actual = declared.get(task, {}), counted_kept.get(task, {})
            yield f"episodes.json: {task}: {expected} are counted as kept, {actual} are there"
    if number_of(counts.ended) != counts.last:
        yield f"episodes.json: {counted(counts.last, 'episode')} began, {number_of(counts.ended)} are counted"
