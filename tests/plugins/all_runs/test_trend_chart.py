"""The picture of a trend."""

from judge.plugins.all_runs.trend_chart import trend_chart
from judge.plugins.all_runs.trends import Trend, VersionRate
from judge.report.charts import Shape


def a_version(name: str, rate: float, low: float, high: float, task_set: str = "one") -> VersionRate:
    return VersionRate(name, 0.0, 0.0, 2, rate, low, high, 9, 10, frozenset([task_set]))


def shapes(chart_shapes: tuple[Shape, ...], kind: str) -> list[Shape]:
    return [shape for shape in chart_shapes if shape.attrs["class"] == kind]


def test_each_version_has_a_mark_between_the_ends_of_its_interval() -> None:
    trend = Trend("mine", "demo", "checks", (a_version("1.0", 20, 10, 40), a_version("1.1", 80, 60, 100)))
    chart = trend_chart(trend, "trend-1")
    marks, whiskers = shapes(chart.shapes, "amount"), shapes(chart.shapes, "whisker")
    assert [mark.title for mark in marks] == [
        "1.0: 20.0 %, 95 % interval 10.0 % to 40.0 %",
        "1.1: 80.0 %, 95 % interval 60.0 % to 100.0 %",
    ]
    # A line and its two ends for each; a higher rate is further up.
    ends = (line.attrs for line in whiskers if line.attrs["x1"] == line.attrs["x2"])
    uprights = [(float(end["y1"]), float(end["y2"])) for end in ends]
    assert len(whiskers) == 6
    heights = {
        text.text: float(text.attrs["y"]) - 4 for text in shapes(chart.shapes, "tick") if text.text.endswith("%")
    }
    assert uprights[1][0] == heights["100 %"]
    ((x1, y1), (x2, y2)) = (
        tuple(map(float, str(mark.attrs["transform"])[len("translate(") : -1].split())) for mark in marks
    )
    assert x1 < x2
    assert uprights[0][0] < y1 < uprights[0][1] < heights["0 %"]
    assert uprights[1][0] < y2 < uprights[1][1] < y1
    assert chart.rows[0] == ("1.0", "20.0 %", "10.0 % to 40.0 %", "9 of 10", "2")
    assert chart.question == "mine on demo"
    assert chart.answer == (
        "Judged by checks. From 20.0 % to 80.0 % in 2 versions; the intervals of the first and the last do not overlap."
    )


def test_the_answer_says_what_keeps_versions_from_being_compared() -> None:
    versions = (a_version("1.0", 20, 10, 60), a_version("1.1", 80, 60, 100, "two"))
    answer = trend_chart(Trend("mine", "demo", "checks", versions), "t", left_out=3).answer
    assert "the first and the last overlap" in answer
    assert answer.endswith("The versions did not all play the same tasks. 3 older versions not drawn.")


def test_long_names_of_many_versions_do_not_run_into_each_other() -> None:
    trend = Trend("a", "b", "c", tuple(a_version("v" * 200, 50, 40, 60) for _ in range(12)))
    labels = [shape.text for shape in trend_chart(trend, "t").shapes if shape.text.startswith("v")]
    assert all(len(label) <= 5 for label in labels[:12])
