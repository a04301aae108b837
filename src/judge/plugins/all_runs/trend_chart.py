"""The chart of a trend: the rate of each version with its interval. Pure."""

import itertools

from judge.plugins.all_runs.trends import Trend, VersionRate
from judge.report.charts import WIDTH, Chart, Shape, circle, line, percent_grid, tick
from shared.text import clip, counted

_LEFT, _TOP, _WIDE, _TALL = 48, 16, WIDTH - 72, 130
_CAP = 4
# Widths of characters of a label, about.
_CHAR = 6.6


def trend_chart(trend: Trend, name: str, *, left_out: int = 0) -> Chart:
    """The versions from left to right in the order of their first runs; `left_out` older ones are not drawn."""
    versions = trend.versions
    step = _WIDE / len(versions)
    places = [(round(_LEFT + step * (number + 0.5), 1), each) for number, each in enumerate(versions)]
    shapes = percent_grid(_LEFT, _TOP, _WIDE, _TALL)
    for (x1, before), (x2, after) in itertools.pairwise(places):
        shapes.append(line(x1, _y(before.rate), x2, _y(after.rate), "trend"))
    for x, each in places:
        shapes += _interval(x, each)
        shapes.append(tick(x, _TOP + _TALL + 18, clip(each.version, max(3, int(step / _CHAR)))))
    shapes.append(tick(_LEFT + _WIDE / 2, _TOP + _TALL + 38, "version, in the order of the first runs"))
    return Chart(
        name=name,
        question=f"{trend.agent} on {trend.scenario}",
        answer=_answer(trend, left_out),
        columns=("Version", "Success rate", "95 % interval", "Scored tasks", "Runs"),
        rows=tuple(
            (
                each.version,
                f"{each.rate:.1f} %",
                f"{each.low:.1f} % to {each.high:.1f} %",
                f"{each.scored} of {each.tasks}",
                str(each.runs),
            )
            for each in versions
        ),
        shapes=tuple(shapes),
        height=_TOP + _TALL + 46,
    )


def _answer(trend: Trend, left_out: int) -> str:
    first, last = trend.versions[0], trend.versions[-1]
    apart = last.low > first.high or first.low > last.high
    sentences = [
        f"Judged by {trend.judge}.",
        f"From {first.rate:.1f} % to {last.rate:.1f} % in {counted(len(trend.versions), 'version')};"
        f" the intervals of the first and the last {'do not overlap' if apart else 'overlap'}.",
    ]
    if not trend.is_same_tasks:
        sentences.append("The versions did not all play the same tasks.")
    if left_out:
        sentences.append(f"{counted(left_out, 'older version')} not drawn.")
    return " ".join(sentences)


def _y(rate: float) -> float:
    return round(_TOP + _TALL - _TALL * rate / 100, 1)


def _interval(x: float, each: VersionRate) -> list[Shape]:
    title = f"{each.version}: {each.rate:.1f} %, 95 % interval {each.low:.1f} % to {each.high:.1f} %"
    low, high = _y(each.low), _y(each.high)
    return [
        line(x, high, x, low, "whisker"),
        line(x - _CAP, high, x + _CAP, high, "whisker"),
        line(x - _CAP, low, x + _CAP, low, "whisker"),
        circle(x, _y(each.rate), "amount", title),
    ]
