"""Who judged, under readable names, and what it cost.

A judge is named by its method and model. Its id, `<method>-<digest>`, also tells apart judges with other prompts or
settings; the digest is shown only where two judges would have the same name. A judge asked again (`--repeat`)
is one judge with several verdicts on each attempt, whose ids end in `.r2`, `.r3`, …
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from judge.records.edits import edit_in
from judge.records.verdicts import NO_MODEL, UNKNOWN_MODEL, JudgeInfo, Verdict
from judge.store.layout import readable_verdicts
from judge.trajectory.files import foreign_verdicts
from shared.models import Record, TokenUsage

_REPEAT = re.compile(r"\.r(\d+)$")
_DIGEST_CHARS = 6


class JudgeName(NamedTuple):
    """A judge's name; `digest` is empty unless another judge has the same name."""

    text: str
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.digest})" if self.digest else self.text


class GivenVerdict(Record):
    """One verdict: who gave it, the outcome and the cost (`None` if the price is unknown).

    `is_stored`: it has a separate file, rather than being known from the attempt's result only.
    """

    judge_id: str
    name: str
    method: str = ""
    outcome: str
    usage: TokenUsage = TokenUsage()
    cost_usd: float | None = None
    is_stored: bool = True

    @property
    def judge(self) -> str:
        """The id of the judge, the same for each time that it was asked."""
        return once(self.judge_id)


class JudgeVerdicts(Record):
    """All verdicts of one judge, which was asked about each attempt at most `times` times.

    `cost_usd` is `None` if the cost of one of them is unknown.
    """

    judge: str
    verdicts: int
    times: int
    usage: TokenUsage
    cost_usd: float | None


def once(judge_id: str) -> str:
    """The id of a judge without the number of its repeat."""
    return _REPEAT.sub("", judge_id)


def repeat_of(judge_id: str) -> int:
    """How often the judge was asked up to this verdict, from 1."""
    match = _REPEAT.search(judge_id)
    return int(match[1]) if match else 1


def plain_name(info: JudgeInfo, *, scenario: str = "") -> str:
    """Method and model; `scenario` has the edited tasks."""
    parts = [info.method]
    if info.model not in NO_MODEL and info.model != UNKNOWN_MODEL:
        parts.append(info.model)
    if info.fidelity == "published":
        parts.append("published fidelity")
    if scenario:
        parts.append(f"tasks of {scenario}")
    return " · ".join(parts)


def name_in(verdict: Verdict, judge_id: str) -> str:
    """The plain name of the judge of a verdict; its id if the verdict does not say."""
    edited = edit_in(verdict)
    if verdict.judge is None:
        return judge_id
    return plain_name(verdict.judge, scenario=edited[0] if edited else "")


def judge_names(plain: Mapping[str, str]) -> dict[str, JudgeName]:
    """The names of judges by id, from their plain ones; repeats included."""
    judges: defaultdict[str, set[str]] = defaultdict(set)
    for judge_id, name in plain.items():
        judges[name].add(once(judge_id))
    return {
        judge_id: JudgeName(name, _digest(judge_id, judges[name]) if len(judges[name]) > 1 else "")
        for judge_id, name in plain.items()
    }


def _digest(judge_id: str, others: Iterable[str]) -> str:
    """The beginning of the id's digest, longer if another judge's begins alike."""
    digests = [once(other).rpartition("-")[2] for other in others]
    own = once(judge_id).rpartition("-")[2]
    for length in range(_DIGEST_CHARS, len(own)):
        if Counter(digest[:length] for digest in digests)[own[:length]] == 1:
            return own[:length]
    return own


def given_verdicts_in(folders: Iterable[Path]) -> Iterator[GivenVerdict]:
    """Every readable verdict on the tasks in these folders."""
    for folder in folders:
        for judge_id, verdict in (foreign_verdicts(folder) | readable_verdicts(folder)).items():
            yield given_verdict_of(judge_id, verdict)


def given_verdict_of(judge_id: str, verdict: Verdict) -> GivenVerdict:
    """Who gave a verdict, and what it cost."""
    return GivenVerdict(
        judge_id=judge_id,
        name=name_in(verdict, judge_id),
        method=verdict.judge.method if verdict.judge else "",
        outcome=verdict.outcome,
        usage=verdict.token_usage,
        cost_usd=verdict.cost,
    )


def judged_by(given_verdicts: Iterable[GivenVerdict]) -> tuple[JudgeVerdicts, ...]:
    """The verdicts of each judge, most expensive first."""
    groups: defaultdict[str, list[GivenVerdict]] = defaultdict(list)
    for each in given_verdicts:
        groups[each.judge].append(each)
    judged = [
        JudgeVerdicts(
            judge=judge,
            verdicts=len(judge_verdicts),
            times=max(repeat_of(each.judge_id) for each in judge_verdicts),
            usage=sum((each.usage for each in judge_verdicts), TokenUsage()),
            cost_usd=cost_of(judge_verdicts),
        )
        for judge, judge_verdicts in groups.items()
    ]
    return tuple(sorted(judged, key=lambda each: (-(each.cost_usd or 0.0), -each.usage.calls, each.judge)))


def cost_of(given_verdicts: Iterable[GivenVerdict]) -> float | None:
    """What verdicts cost together; `None` if the cost of one is unknown."""
    total = 0.0
    for each in given_verdicts:
        if each.cost_usd is None:
            return None
        total += each.cost_usd
    return total
