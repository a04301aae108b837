"""Cost against success of compared runs, with the Pareto front: the runs that no other one beats in both. Pure."""

import itertools
from collections.abc import Sequence

from judge.report.charts import WIDTH, Chart, circle, line, percent_grid, tick
from judge.report.totals import Totals
from shared.text import usd

_MAX_LABELLED = 12
_MAX_NAMED = 12


def front_of(points: Sequence[tuple[str, float, float]]) -> tuple[str, ...]:
    """The names of points (name, cost, rate) that no other point beats: none is cheaper and at least as good."""
    return tuple(
        name
        for name, cost, rate in points
        if not any(c <= cost and r >= rate and (c, r) != (cost, rate) for _, c, r in points)
    )


def pareto_chart(runs: Sequence[tuple[str, Totals]]) -> Chart | None:
    """The runs whose cost was metered and is known; `None` without one. The others are named, and not drawn."""
    points, left_out = [], []
    for letter, totals in runs:
        cost = totals.participant_cost_per_task
        if cost is None or totals.all.rate is None:
            left_out.append(letter)
        else:
            points.append((letter, cost, totals.all.rate))
    return chart_of_points(points, left_out)


def chart_of_points(points: Sequence[tuple[str, float, float]], left_out: Sequence[str] = ()) -> Chart | None:
    """The points (name, cost per task, rate in percent); `None` without any. Of many, only the front is labelled."""
    if not points:
        return None
    front = front_of(points)
    left, top, wide, tall = 48, 12, WIDTH - 72, 200
    most = max(cost for _, cost, _ in points) or 1.0

    def at(cost: float, rate: float) -> tuple[float, float]:
        return round(left + wide * cost / most, 1), round(top + tall - tall * rate / 100, 1)

    shapes = percent_grid(left, top, wide, tall)
    for part in (0.0, 0.5, 1.0):
        shapes.append(tick(left + wide * part, top + tall + 18, usd(most * part)))
    shapes.append(tick(left + wide / 2, top + tall + 38, "model cost per task (metered, lower bound)"))
    places = [at(cost, rate) for cost, rate in sorted((cost, rate) for name, cost, rate in points if name in front)]
    shapes += (line(*one, *other, "even") for one, other in itertools.pairwise(places))
    for name, cost, rate in points:
        x, y = at(cost, rate)
        title = f"{name}: {rate:.1f} %, {usd(cost)} per task"
        kind = "mark o-success" if name in front else "mark o-aborted"
        shapes.append(circle(x, y, kind, title))
        if name in front or len(points) <= _MAX_LABELLED:
            shapes.append(tick(x, y - 9, name))
    missing = f" Without a known cost, so not drawn: {_names(left_out)}." if left_out else ""
    return Chart(
        name="pareto",
        question="What does success cost?",
        answer=f"No other run is both cheaper and better than {_names(front)}.{missing}",
        columns=("Run", "Cost per task", "Success rate", "On the front"),
        rows=tuple((name, usd(cost), f"{rate:.1f} %", "yes" if name in front else "no") for name, cost, rate in points),
        shapes=tuple(shapes),
        height=top + tall + 46,
    )


def _names(names: Sequence[str]) -> str:
    first_names = ", ".join(names[:_MAX_NAMED])
    return first_names if len(names) <= _MAX_NAMED else f"{first_names} and {len(names) - _MAX_NAMED} more"
