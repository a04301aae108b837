"""Charts as shapes: pure functions from totals to what an SVG holds. A template draws them; colours are CSS classes.

Each chart answers one question, says its answer in words, and carries its numbers as a table.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from judge.report.totals import Rate, Totals
from judge.report.views import OUTCOMES, TaskRow

Attrs = dict[str, str | int | float]
WIDTH = 460
_LEFT, _RIGHT = 104, 96
_PLOT = WIDTH - _LEFT - _RIGHT
_MARKS = {
    "success": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "failure": "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5",
    "unscored": "M0 -5L5 0L0 5L-5 0z",
    "aborted": "M-4 -4H4V4H-4z",
}
_ASIDE = {"success": -5.0, "failure": 5.0, "unscored": -1.0, "aborted": 1.0}
_WORDS = {
    "finished": "ended by the participant",
    "max_steps": "step budget spent",
    "task_timeout": "time budget spent",
    "participant_error": "participant failed",
    "unreadable_replies": "replies not readable",
    "environment_fault": "browser or site fault",
    "cancelled": "run was stopped",
    "unfinished": "no result on disk",
}


@dataclass(frozen=True)
class Shape:
    """One SVG element; `title` is its tooltip."""

    tag: str
    attrs: Attrs
    text: str = ""
    title: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart with its question, its answer in one sentence, and its numbers."""

    name: str
    question: str
    answer: str
    height: int
    shapes: tuple[Shape, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    outcomes: tuple[str, ...] = ()
    width: int = field(default=WIDTH)


def charts_of(totals: Totals, rows: Sequence[TaskRow]) -> tuple[Chart, ...]:
    """Every chart that the run has numbers for."""
    made = (
        rates_chart("level", "How does success change with difficulty?", totals.by_level),
        steps_chart(rows),
        phases_chart(totals),
        scores_chart(totals),
        ends_chart(rows),
    )
    return tuple(chart for chart in made if chart is not None)


def rates_chart(name: str, question: str, rates: dict[str, Rate]) -> Chart | None:
    """Success rate with its interval per group, and below each what became of every task of the group."""
    if not rates:
        return None
    shapes: list[Shape] = []
    bottom = 14 + 50 * len(rates)
    for percent in (0, 25, 50, 75, 100):
        x = _LEFT + _PLOT * percent / 100
        shapes.append(_line(x, 8, x, bottom, "grid"))
        shapes.append(_text(x, bottom + 16, f"{percent} %", "tick", anchor="middle"))
    for place, (label, rate) in enumerate(rates.items()):
        top = 14 + 50 * place
        shapes += _rate_row(label, rate, top)
    scored = [(label, rate) for label, rate in rates.items() if rate.rate is not None]
    answer = ", ".join(f"{label} {rate.rate:.0f} %" for label, rate in scored) or "Nothing was scored yet"
    return Chart(
        name=name,
        question=question,
        answer=f"{answer}. The line through each dot is the 95 % interval; the bar below holds every task.",
        height=bottom + 24,
        shapes=tuple(shapes),
        columns=(
            name.capitalize(),
            "Success rate",
            "95 % interval",
            "Of all tasks",
            *(o.capitalize() for o in OUTCOMES),
        ),
        rows=tuple(
            (label, *_rate_words(rate), f"{rate.rate_of_all:.1f} %", *(str(rate.counts[o]) for o in OUTCOMES))
            for label, rate in rates.items()
        ),
        outcomes=tuple(o for o in OUTCOMES if any(rate.counts[o] for rate in rates.values())),
    )


def steps_chart(rows: Sequence[TaskRow]) -> Chart | None:
    """Steps used against the human reference length, one mark per task (bigger where several coincide)."""
    pairs = Counter(
        (row.reference_length, row.steps, row.outcome)
        for row in rows
        if row.reference_length is not None and row.outcome in _MARKS
    )
    if not pairs:
        return None
    reach = max(5, *(length for length, _, _ in pairs), *(steps for _, steps, _ in pairs))
    left, top, side, tall = 48, 12, WIDTH - 64, 220

    def at(length: float, steps: float) -> tuple[float, float]:
        return round(left + side * length / reach, 1), round(top + tall - tall * steps / reach, 1)

    step = next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500) if reach / size <= 8 or size == 500)
    shapes = []
    for value in range(0, reach + 1, step):
        x, y = at(value, value)
        shapes += [_line(left, y, left + side, y, "grid"), _text(left - 8, y + 4, str(value), "tick", anchor="end")]
        shapes.append(_text(x, top + tall + 18, str(value), "tick", anchor="middle"))
    shapes.append(_line(*at(0, 0), *at(reach, reach), "even"))
    shapes.append(_text(left + side / 2, top + tall + 38, "human reference length (steps)", "tick", anchor="middle"))
    shapes.append(_text(left + 4, top + 10, "steps used", "tick"))
    for (length, steps, outcome), count in sorted(pairs.items(), key=lambda item: -item[1]):
        x, y = at(length, steps)
        scale = round(min(2.5, count**0.5), 2)
        # Outcomes of the same cell stand beside each other, none hides another.
        x = round(x + _ASIDE[outcome], 1)
        attrs: Attrs = {
            "d": _MARKS[outcome],
            "class": f"mark o-{outcome}",
            "transform": f"translate({x} {y}) scale({scale})",
        }
        title = f"{count} {outcome}: {steps} steps, reference {length}"
        shapes.append(Shape("path", attrs, title=title))
    known = [row for row in rows if row.reference_length and row.outcome == "success"]
    ratio = sum(row.steps for row in known) / sum(row.reference_length or 0 for row in known) if known else None
    answer = "No success has a reference length" if ratio is None else f"Successes took {ratio:.1f} × the human steps"
    return Chart(
        name="steps",
        question="How many steps are used, against a human's?",
        answer=f"{answer}. On the dashed line the participant used as many steps as the human.",
        height=top + tall + 46,
        shapes=tuple(shapes),
        columns=("Reference length", "Steps used", "Outcome", "Tasks"),
        rows=tuple((str(a), str(b), c, str(n)) for (a, b, c), n in sorted(pairs.items())),
        outcomes=tuple(o for o in OUTCOMES if any(key[2] == o for key in pairs)),
    )


def phases_chart(totals: Totals) -> Chart | None:
    """Where the wall time of all tasks went."""
    phases = totals.phases
    parts = [
        ("participant", phases.reply_s, "waiting for replies"),
        ("look", phases.observe_s, "reading the page"),
        ("act", phases.act_s, "carrying out actions"),
        ("open, close", phases.other_s, "starting and ending episodes"),
        ("judge", phases.judge_s, "waiting for verdicts after the last step"),
    ]
    whole = sum(seconds for _, seconds, _ in parts)
    if whole <= 0:
        return None
    bars = [(name, seconds, f"{duration(seconds)} · {100 * seconds / whole:.0f} %") for name, seconds, _ in parts]
    most = max(parts, key=lambda part: part[1])
    return Chart(
        name="phases",
        question="Where does the time go?",
        answer=f"The largest part, {100 * most[1] / whole:.0f} %, is {most[2]}. Tasks that ran at once are added up.",
        height=20 + 34 * len(bars),
        shapes=tuple(_bars(bars, "phase")),
        columns=("Phase", "Time", "Share", "Per step"),
        rows=tuple(
            (
                f"{name}: {what}",
                duration(s),
                f"{100 * s / whole:.1f} %",
                duration(s / totals.steps) if totals.steps else "",
            )
            for name, s, what in parts
        ),
    )


def scores_chart(totals: Totals) -> Chart | None:
    """How often the judge gave each screenshot score."""
    if not totals.scores:
        return None
    count = sum(totals.scores.values())
    tall, base = 150, 174
    wide = (WIDTH - 40) / len(totals.scores)
    most = max(totals.scores.values())
    shapes = [_line(20, base, WIDTH - 20, base, "axis")]
    for place, (score, times) in enumerate(totals.scores.items()):
        x, height = 20 + wide * place, tall * times / most
        if times:
            shapes.append(_rect(x + wide * 0.15, base - height, wide * 0.7, height, "bar score"))
        shapes.append(_text(x + wide / 2, base - height - 6, str(times), "value", anchor="middle"))
        shapes.append(_text(x + wide / 2, base + 18, score, "tick", anchor="middle"))
    shapes.append(_text(WIDTH / 2, base + 38, "relevance score of a screenshot", "tick", anchor="middle"))
    shown = sum(times for score, times in totals.scores.items() if score in ("4", "5"))
    return Chart(
        name="scores",
        question="How relevant were the screenshots?",
        answer=f"{100 * shown / count:.0f} % of {count} screenshots scored 4 or 5.",
        height=base + 46,
        shapes=tuple(shapes),
        columns=("Score", "Screenshots", "Share"),
        rows=tuple((score, str(n), f"{100 * n / count:.1f} %") for score, n in totals.scores.items()),
    )


def ends_chart(rows: Sequence[TaskRow]) -> Chart | None:
    """How the episodes ended."""
    if not rows:
        return None
    ends = Counter(row.stop_reason or "unfinished" for row in rows)
    named = [(_WORDS.get(end, end), count) for end, count in ends.most_common()]
    bars = [(name, float(count), f"{count} · {100 * count / len(rows):.0f} %") for name, count in named]
    return Chart(
        name="ends",
        question="How did the episodes end?",
        answer=f"{ends['finished']} of {len(rows)} were ended by the participant itself.",
        height=20 + 34 * len(bars),
        shapes=tuple(_bars(bars, "end", left=182)),
        columns=("End", "Tasks"),
        rows=tuple((name, str(count)) for name, count in named),
    )


def duration(seconds: float) -> str:
    """A time for people: `340 ms`, `12.4 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f}\u00a0ms"
    if seconds < 59.95:
        return f"{seconds:.1f}\u00a0s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}\u00a0min\u00a0{rest:02d}\u00a0s"
    return f"{minutes // 60}\u00a0h\u00a0{minutes % 60:02d}\u00a0min"


def _rate_row(label: str, rate: Rate, top: float) -> list[Shape]:
    shapes = [_text(_LEFT - 12, top + 18, label[:14], "label", anchor="end", title=label)]
    words = f"{rate.rate:.1f} %" if rate.rate is not None else "no score"
    shapes.append(_text(_LEFT + _PLOT + 12, top + 18, words, "value"))
    shapes.append(_text(_LEFT + _PLOT + 12, top + 34, f"{rate.successes} of {rate.scored}", "tick"))
    if rate.rate is not None:
        low, dot, high = (_LEFT + _PLOT * percent / 100 for percent in (rate.low, rate.rate, rate.high))
        shapes.append(_line(low, top + 14, high, top + 14, "whisker", f"{rate.low:.1f} % to {rate.high:.1f} %"))
        shapes += [_line(x, top + 9, x, top + 19, "whisker") for x in (low, high)]
        shapes.append(Shape("circle", {"cx": round(dot, 1), "cy": top + 14, "r": 5, "class": "dot"}))
    x = float(_LEFT)
    for outcome in OUTCOMES:
        wide = _PLOT * rate.counts[outcome] / rate.total if rate.total else 0.0
        if wide:
            shapes.append(_rect(x, top + 28, wide, 9, f"bar o-{outcome}", f"{label}: {rate.counts[outcome]} {outcome}"))
        x += wide
    return shapes


def _rate_words(rate: Rate) -> tuple[str, str]:
    if rate.rate is None:
        return "no score", "none"
    return f"{rate.rate:.1f} %", f"{rate.low:.1f} % to {rate.high:.1f} %"


def _bars(bars: Sequence[tuple[str, float, str]], kind: str, left: int = _LEFT) -> list[Shape]:
    most = max((size for _, size, _ in bars), default=0) or 1.0
    room = WIDTH - left - 156
    shapes = []
    for place, (label, size, words) in enumerate(bars):
        top = 10 + 34 * place
        shapes.append(_text(left - 12, top + 17, label, "label", anchor="end"))
        shapes.append(_rect(left, top + 3, max(1.5, room * size / most), 20, f"bar {kind}"))
        shapes.append(_text(left + room * size / most + 10, top + 18, words, "value"))
    return shapes


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> Shape:
    attrs: Attrs = {
        "x": round(x, 1),
        "y": round(y, 1),
        "width": round(width, 1),
        "height": round(height, 1),
        "class": kind,
    }
    return Shape("rect", attrs, title=title)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, title: str = "") -> Shape:
    attrs: Attrs = {"x1": round(x1, 1), "y1": round(y1, 1), "x2": round(x2, 1), "y2": round(y2, 1), "class": kind}
    return Shape("line", attrs, title=title)


def _text(x: float, y: float, text: str, kind: str, *, anchor: str = "start", title: str = "") -> Shape:
    attrs: Attrs = {"x": round(x, 1), "y": round(y, 1), "class": kind, "text-anchor": anchor}
    return Shape("text", attrs, text=text, title=title)
