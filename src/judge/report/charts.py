"""Charts as shapes: pure functions from totals to the content of an SVG. A template draws them; CSS sets the colours.

Each chart answers one question, also in words, and includes its numbers as a table.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.report.data import TaskRow
from judge.report.totals import Totals
from judge.results.rates import OUTCOMES
from shared.text import counted

WIDTH = 460
_MARKS = {
    "success": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "failure": "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5",
    "unscored": "M0 -5L5 0L0 5L-5 0z",
    "aborted": "M-4 -4H4V4H-4z",
}
# Marks at the same point are drawn side by side, so that none hides another.
_MARK_SHIFTS = {"success": -5.0, "failure": 5.0, "unscored": -1.0, "aborted": 1.0}
_ENDS = {
    "finished": "ended by the participant",
    "ended_by_page": "ended by the page",
    "max_steps": "out of steps",
    "task_timeout": "out of time",
    "participant_error": "participant failed",
    "unreadable_replies": "unreadable replies",
    "environment_fault": "browser or site fault",
    "site_blocked": "blocked by the site",
    "cancelled": "run was stopped",
    "unfinished": "no result on disk",
}


@dataclass(frozen=True)
class Shape:
    """One SVG element; `title` is its tooltip."""

    tag: str
    attrs: dict[str, str | float]
    text: str = ""
    title: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart with its question, its answer in one sentence, and its numbers.

    It is drawn by `shapes`, or by a bar in each row of the table, whose relative lengths are `sizes`.
    """

    name: str
    question: str
    answer: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sizes: tuple[float, ...] = ()
    shapes: tuple[Shape, ...] = ()
    height: int = 0
    outcomes: tuple[str, ...] = ()
    width: int = WIDTH


def charts_of(totals: Totals, rows: Sequence[TaskRow]) -> tuple[Chart, ...]:
    """Every chart for which the run has data."""
    charts = (categories_chart(rows), steps_chart(rows), phases_chart(totals), scores_chart(totals), ends_chart(rows))
    return tuple(chart for chart in charts if chart is not None)


def steps_chart(rows: Sequence[TaskRow]) -> Chart | None:
    """Steps used against the human reference length, one mark per task (larger where several coincide)."""
    pairs = Counter(
        (row.reference_length, row.steps, row.outcome)
        for row in rows
        if row.reference_length is not None and row.outcome in _MARKS
    )
    if not pairs:
        return None
    reach = max(5, *(max(length, steps) for length, steps, _ in pairs))
    left, top, wide, tall = 48, 12, WIDTH - 64, 220

    def at(length: float, steps: float) -> tuple[float, float]:
        return left + wide * length / reach, top + tall - tall * steps / reach

    every = next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500) if reach / size <= 8 or size == 500)
    shapes = []
    for value in range(0, reach + 1, every):
        x, y = at(value, value)
        shapes += [line(left, y, left + wide, y, "grid"), tick(left - 8, y + 4, str(value), "end")]
        shapes.append(tick(x, top + tall + 18, str(value)))
    shapes.append(line(*at(0, 0), *at(reach, reach), "even"))
    shapes.append(tick(left + wide / 2, top + tall + 38, "human reference length (steps)"))
    shapes.append(tick(left + 4, top + 10, "steps used", "start"))
    for (length, steps, outcome), count in pairs.most_common():
        x, y = at(length, steps)
        # By the square root, so that the area grows with the number of tasks.
        place = f"translate({x + _MARK_SHIFTS[outcome]:.1f} {y:.1f}) scale({min(2.5, math.sqrt(count)):.2f})"
        mark = {"d": _MARKS[outcome], "class": f"mark o-{outcome}", "transform": place}
        shapes.append(Shape("path", {**mark}, title=f"{count} {outcome}: {counted(steps, 'step')}, reference {length}"))
    known = [(row.steps, row.reference_length) for row in rows if row.reference_length and row.outcome == "success"]
    answer = "No successful task has a reference length"
    if known:
        ratio = sum(steps for steps, _ in known) / sum(length for _, length in known)
        answer = f"Successes took {ratio:.1f} × the human steps"
    return Chart(
        name="steps",
        question="How many steps were used compared with a human?",
        answer=f"{answer}. On the dashed line the participant used as many steps as the human.",
        height=top + tall + 46,
        shapes=tuple(shapes),
        columns=("Reference length", "Steps used", "Outcome", "Tasks"),
        rows=tuple((str(length), str(steps), outcome, str(n)) for (length, steps, outcome), n in sorted(pairs.items())),
        outcomes=tuple(each for each in OUTCOMES if any(outcome == each for _, _, outcome in pairs)),
    )


def phases_chart(totals: Totals) -> Chart | None:
    """How the wall time of all tasks was spent."""
    phases, steps = totals.phases, totals.steps
    parts = {
        "waiting for replies": phases.reply_s,
        "reading pages": phases.observe_s,
        "executing actions": phases.act_s,
        "opening and closing": phases.other_s,
        "waiting for verdicts": phases.judge_s,
    }
    whole = sum(parts.values())
    if not phases.reply_s + phases.observe_s + phases.act_s + phases.other_s:
        # Nothing is known of the attempts' time.
        return None
    most = max(parts, key=lambda what: parts[what])
    return Chart(
        name="phases",
        question="Where does the time go?",
        answer=f"The largest part, {100 * parts[most] / whole:.0f} %, is {most}. Times of parallel tasks are added up.",
        columns=("Phase", "Time", "Share", "Per step"),
        rows=tuple(
            (what, duration(seconds), f"{100 * seconds / whole:.1f} %", duration(seconds / steps) if steps else "")
            for what, seconds in parts.items()
        ),
        sizes=tuple(parts.values()),
    )


def scores_chart(totals: Totals) -> Chart | None:
    """How often the judge gave each screenshot score."""
    if not totals.scores:
        return None
    count, relevant = sum(totals.scores.values()), totals.scores["4"] + totals.scores["5"]
    answer = f"{100 * relevant / count:.0f} % of {counted(count, 'screenshot')} scored 4 or 5."
    return _counts_chart("scores", "How relevant were the screenshots?", answer, "Score", totals.scores, count)


def ends_chart(rows: Sequence[TaskRow]) -> Chart | None:
    """How the attempts ended."""
    if not rows:
        return None
    ends = Counter(row.stop_reason or "unfinished" for row in rows)
    counts = {_ENDS.get(end, end): count for end, count in ends.most_common()}
    answer = f"The participant ended {ends['finished']} of {len(rows)} itself."
    return _counts_chart("ends", "How did the attempts end?", answer, "End", counts, len(rows))


def categories_chart(rows: Sequence[TaskRow]) -> Chart | None:
    """How many failures fall into each category; one can fall into several."""
    failed = [row for row in rows if row.outcome == "failure"]
    counts = Counter(name.replace("_", " ") for row in failed for name in row.categories)
    if not counts:
        return None
    known = sum(bool(row.categories) for row in failed)
    answer = f"{known} of {counted(len(failed), 'failure')} in a category; one can be in several."
    ordered = dict(counts.most_common())
    return _counts_chart("categories", "Why did attempts fail?", answer, "Category", ordered, len(failed))


def _counts_chart(name: str, question: str, answer: str, what: str, counts: Mapping[str, int], whole: int) -> Chart:
    return Chart(
        name=name,
        question=question,
        answer=answer,
        columns=(what, "Count", "Share"),
        rows=tuple((each, str(count), f"{100 * count / whole:.0f} %") for each, count in counts.items()),
        sizes=tuple(counts.values()),
    )


def duration(seconds: float) -> str:
    """A time for people: `340 ms`, `12.4 s`, `3 min 05 s`, `2 h 07 min`."""
    # The limits are those from which rounding would show 1000 ms or 60.0 s.
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f}\u00a0ms"
    if seconds < 59.95:
        return f"{seconds:.1f}\u00a0s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}\u00a0min\u00a0{rest:02d}\u00a0s"
    return f"{minutes // 60}\u00a0h\u00a0{minutes % 60:02d}\u00a0min"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Shape:
    """A line of a kind that the style sheet knows."""
    places = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return Shape("line", {**{name: round(place, 1) for name, place in places.items()}, "class": kind})


def tick(x: float, y: float, text: str, anchor: str = "middle") -> Shape:
    """A text beside an axis or a mark."""
    return Shape("text", {"x": round(x, 1), "y": round(y, 1), "class": "tick", "text-anchor": anchor}, text)


def circle(x: float, y: float, kind: str, title: str) -> Shape:
    """A round mark with a tooltip."""
    return Shape("path", {"d": _MARKS["success"], "class": kind, "transform": f"translate({x} {y})"}, title=title)


def percent_grid(left: float, top: float, wide: float, tall: float) -> list[Shape]:
    """The lines and texts of an axis from 0 to 100 %."""
    shapes = []
    for share in (0, 25, 50, 75, 100):
        y = round(top + tall - tall * share / 100, 1)
        shapes += [line(left, y, left + wide, y, "grid"), tick(left - 8, y + 4, f"{share} %", "end")]
    return shapes
