"""The rate of an agent from version to version."""

from typing import Any

from judge.plugins.all_runs.listing import ListedRun
from judge.plugins.all_runs.trends import UNNAMED, versions_of
from judge.results.statistics import AttemptCounts, interval_95


def a_run(version: str | None, day: int, tallies: dict[str, tuple[int, int, int]], **fields: Any) -> ListedRun:
    known: dict[str, Any] = {"agent": "mine", "scenario": "demo", "judge": "checks", "task_set": "one"}
    key = f"{version}-{day}"
    return ListedRun(key=key, id=key, version=version, worked_on=day * 86_400.0, tallies=tallies, **(known | fields))


def test_versions_are_in_the_order_of_their_first_runs_and_each_has_its_interval() -> None:
    one, other = {"a": (1, 1, 1), "b": (0, 1, 1)}, {"a": (1, 1, 1), "b": (1, 1, 1)}
    # The second version is played again after the third one.
    runs = [a_run("9", 1, one), a_run("10", 2, one), a_run("dev", 3, other), a_run("10", 4, other)]
    (result,) = versions_of(runs)
    trend = result.trend(10)
    assert (trend.agent, trend.scenario, trend.judge) == ("mine", "demo", "checks")
    assert [(each.version, each.rate, each.runs) for each in trend.versions] == [
        ("9", 50.0, 1),
        ("10", 75.0, 2),
        ("dev", 100.0, 1),
    ]
    low, high = interval_95([AttemptCounts(2, 2, 2), AttemptCounts(1, 2, 2)])
    pooled = trend.versions[1]
    assert (pooled.low, pooled.high, pooled.scored, pooled.tasks) == (100 * low, 100 * high, 2, 2)
    assert (pooled.first, pooled.last) == (2 * 86_400.0, 4 * 86_400.0)
    assert trend.is_same_tasks


def test_only_the_newest_versions_are_computed() -> None:
    (result,) = versions_of(a_run(str(day), day, {"a": (1, 1, 1)}) for day in range(1, 6))
    assert len(result) == 5
    assert [each.version for each in result.trend(2).versions] == ["4", "5"]


def test_other_agents_scenarios_and_judges_are_trends_of_their_own() -> None:
    tallies = {"a": (1, 1, 1)}
    runs = [
        a_run(version, day, tallies, **fields)
        for fields in ({}, {"agent": "theirs"}, {"scenario": "miniwob"}, {"judge": "webjudge"})
        for version, day in (("1", 1), ("2", 2 + len(fields)))
    ]
    assert sorted(each.names for each in versions_of(runs)) == [
        ("mine", "demo", "checks"),
        ("mine", "demo", "webjudge"),
        ("mine", "miniwob", "checks"),
        ("theirs", "demo", "checks"),
    ]
    # The one that was played last comes first.
    assert versions_of(runs)[-1].names == ("mine", "demo", "checks")


def test_a_single_version_and_runs_without_a_scored_task_do_not_make_a_trend() -> None:
    assert versions_of([a_run("1", 1, {"a": (1, 1, 1)}), a_run("1", 2, {"a": (1, 1, 1)})]) == []
    assert versions_of([a_run("1", 1, {"a": (1, 1, 1)}), a_run("2", 2, {"a": (0, 0, 1)}), a_run("3", 3, {})]) == []
    assert versions_of([a_run("1", 1, {"a": (1, 1, 1)}, judge=None), a_run("2", 2, {"a": (1, 1, 1)}, judge=None)]) == []


def test_versions_that_played_other_tasks_are_known() -> None:
    runs = [a_run("1", 1, {"a": (1, 1, 1)}), a_run(None, 2, {"b": (1, 1, 1)}, task_set="two")]
    (result,) = versions_of(runs)
    assert not result.trend(10).is_same_tasks
    assert result.trend(10).versions[1].version == UNNAMED
