"""Summarises the replay of an archive's reference walks: misses and uncertain answers per task. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from judge.network.archives import LOG_IN
from judge.plugins.frozen.exchanges import SiteRecording
from judge.plugins.frozen.matching.matcher import MATCHER
from judge.plugins.frozen.playing import AttemptResult
from judge.plugins.frozen.wacz import ArchiveCheck, TaskCheck
from judge.records.ledger import LedgerEntry
from shared.text import clip, counted, one_line

_MAX_LISTED = 5
_MAX_KEPT = 50


def checked(results: Iterable[AttemptResult], scenario: str, before: ArchiveCheck | None) -> ArchiveCheck:
    """The result, merged with the result of an earlier check of other tasks by the same matcher."""
    tasks = {task.task_id: task for task in before.of_tasks} if before and before.matcher == MATCHER else {}
    tasks |= {each.task.task_id: _of(each) for each in results}
    return ArchiveCheck(matcher=MATCHER, scenario=scenario, of_tasks=tuple(tasks.values()))


def lines_of(results: Sequence[AttemptResult], recording: SiteRecording, command: str) -> Iterator[str]:
    """The lines to print for each task, and the command for tasks to record again. `command` records the scenario."""
    again = []
    for each in results:
        task = _of(each)
        outcome_words = {True: "passed", False: f"failed ({each.why})", None: f"not decided ({each.why})"}[each.passed]
        if not _is_recorded(task.task_id, recording):
            outcome_words += ", not recorded"
        else:
            outcome_words += " as recorded" if _is_as_recorded(each, recording) else ", unlike the recording"
        yield (
            f"{task.task_id}: {outcome_words}, {counted(task.requests, 'request')}, {task.uncertain} uncertain,"
            f" {counted(len(task.decisive_misses), 'decisive miss', 'decisive misses')}, {task.other_misses} other"
        )
        yield from (f"  miss: {line}" for line in task.decisive_misses[:_MAX_LISTED])
        uncertain = [entry for entry in each.ledger if entry.grade == "uncertain"]
        yield from (f"  uncertain: {_line(entry)}" for entry in uncertain[:_MAX_LISTED])
        remaining = max(0, len(task.decisive_misses) - _MAX_LISTED) + max(0, len(uncertain) - _MAX_LISTED)
        if remaining:
            yield f"  and {remaining} more"
        if task.decisive_misses or uncertain or not _is_as_recorded(each, recording):
            again.append(task.task_id)
    if again:
        options_text = " ".join(f"--task {task_id}" for task_id in again)
        yield f"Record again: {command} {options_text} -o AGAIN.wacz, then wabe sites merge both"


def is_sound(results: Sequence[AttemptResult], recording: SiteRecording) -> bool:
    """Whether every reference walk ended as recorded, without a decisive miss."""
    return all(_is_as_recorded(each, recording) and not _of(each).decisive_misses for each in results)


def _is_as_recorded(result: AttemptResult, recording: SiteRecording) -> bool:
    """Whether the attempt ended as recorded. If its task was recorded without its script, it has to pass."""
    if not _is_recorded(result.task.task_id, recording):
        return False
    walks = [walk for walk in recording.walks if walk.task_id == result.task.task_id and walk.is_reference]
    expected = {walk.passed for walk in walks if walk.passed is not None} or {True}
    return result.passed in expected


def _is_recorded(task_id: str, recording: SiteRecording) -> bool:
    """Whether a walk of the task is in the archive. Others may have none, such as those recorded by hand."""
    return any(
        walk.task_id == task_id or (walk.task_id is None and not walk.name.startswith(LOG_IN))
        for walk in recording.walks
    )


def _of(result: AttemptResult) -> TaskCheck:
    misses = [entry for entry in result.ledger if entry.grade == "miss"]
    decisive = [entry for entry in misses if entry.miss == "decisive"]
    return TaskCheck(
        task_id=result.task.task_id,
        requests=len(result.ledger),
        uncertain=Counter(entry.grade for entry in result.ledger)["uncertain"],
        decisive_misses=tuple(_line(entry) for entry in decisive[:_MAX_KEPT]),
        other_misses=len(misses) - len(decisive),
        passed=result.passed,
    )


def _line(entry: LedgerEntry) -> str:
    differs = f", differs in {', '.join(entry.differs[:5])}" if entry.differs else ""
    return f"step {entry.step}: {entry.method} {clip(one_line(entry.url), 150)} ({entry.kind}{differs})"
