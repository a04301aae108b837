"""Tasks on a day: dates in their texts, and days outside which they are excluded."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from judge.records.tasks import Task
from judge.results.run_record import task_digests, task_set_checksum
from judge.scenario.days import today_of
from judge.scenario.models import Scenario
from judge.scenario.request import parse_request, request_text
from judge.scenario.sources import tasks_toml
from judge.scenario.toml import parse_scenario
from judge.trajectory.record import Attempt
from shared.errors import ConfigError

AGENTS = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"
"""
FLIGHT = """[[tasks]]
task_id = "flight"
website = "https://air.test/"
task = "Find a flight on {next friday:%B %-d}."
checks = [
  { kind = "page", url = "/search?day={next friday}" },
  { kind = "answer", type = "date", expected = "{next friday}" },
  { kind = "text", pattern = 'Fri\\. {next friday:%d.%m.} (\\d{1,4})', max = 400 },
]
"""
PLAIN = '[[tasks]]\ntask_id = "plain"\nwebsite = "https://air.test/"\ntask = "Find {anything}."\n'
MONDAY, NEXT_WEEK = date(2026, 11, 23), date(2026, 11, 30)


def read(text: str, today: date = MONDAY) -> Scenario:
    return parse_scenario((AGENTS + text).encode(), Path("s.toml"), today=today)


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return str(caught.value)


def test_dates_are_written_out_in_the_text_and_in_checks() -> None:
    [task] = read(FLIGHT).tasks
    assert task.task == "Find a flight on November 27."
    page, answer, text = (check.model_dump() for check in task.checks)
    assert page["url"] == "/search?day=2026-11-27"
    assert str(answer["expected"]) == "2026-11-27"
    assert text["pattern"] == r"Fri\. 27\.11\. (\d{1,4})"


def test_a_task_without_dates_keeps_its_record_and_braces() -> None:
    scenario = read(PLAIN)
    assert scenario.tasks == (Task(task_id="plain", website="https://air.test/", task="Find {anything}."),)
    assert "dated" not in scenario.tasks[0].model_dump()
    assert "today" not in scenario.config.recorded()


def test_digests_are_the_same_on_every_day() -> None:
    first, later = read(FLIGHT), read(FLIGHT, NEXT_WEEK)
    assert first.tasks[0].task != later.tasks[0].task
    assert task_digests(first.tasks) == task_digests(later.tasks)
    assert task_set_checksum(first.tasks) == task_set_checksum(later.tasks)


def test_another_date_in_the_text_is_another_task() -> None:
    other = FLIGHT.replace("{next friday:%B %-d}", "{next friday+7d:%B %-d}")
    assert task_digests(read(FLIGHT).tasks) != task_digests(read(other).tasks)


def test_the_judge_writes_the_dates_of_the_requests_day() -> None:
    scenario = read(FLIGHT)
    asked = parse_request(request_text(scenario), lambda _: ())
    assert asked.tasks == scenario.tasks
    assert asked.config.recorded()["today"] == "2026-11-23"


def test_an_attempt_records_what_was_played_and_what_was_declared() -> None:
    [task] = read(FLIGHT).tasks
    attempt = Attempt(task=task, steps=(), stop_reason="finished", max_steps=3, started_at=1.0, ended_at=2.0)
    recorded = attempt.to_json()
    assert recorded["task"] == "Find a flight on November 27."
    assert recorded["dated"]["day"] == "2026-11-23"
    assert recorded["dated"]["template"]["task"] == "Find a flight on {next friday:%B %-d}."
    assert Attempt.from_json(recorded, source="result.json").task == task


def test_a_scenario_is_written_with_the_dates_as_they_were() -> None:
    text = tasks_toml(read(FLIGHT + "valid_until = 2026-12-24\n").tasks)
    again = read(text, NEXT_WEEK)
    assert again.tasks[0].task == "Find a flight on December 4."
    assert again.tasks[0].valid_until == date(2026, 12, 24)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (FLIGHT.replace("{next friday:%B %-d}", "{today+x}"), "key 'task': column 18: '{today+x}' is not a date"),
        (
            FLIGHT.replace("day={next friday}", "day={today:%Q}"),
            "key 'checks': column 20: '%Q' is not a part of a date",
        ),
    ],
)
def test_a_mistake_is_named_with_line_task_and_column(text: str, problem: str) -> None:
    message = refusal(text)
    assert message.startswith("s.toml: line ")
    assert "task flight" in message
    assert problem in message


def test_the_day_of_a_run_is_that_of_its_time_zone() -> None:
    late = datetime(2026, 11, 23, 23, 30, tzinfo=UTC)
    assert today_of({}, late) == MONDAY
    assert today_of({"timezone": "Europe/Berlin"}, late) == date(2026, 11, 24)
    assert today_of({"timezone": "America/New_York", "today": "2026-01-01"}, late) == date(2026, 1, 1)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("valid_until = 2026-11-22", "valid until 2026-11-22"),
        ('valid_from = "2026-11-24"', "valid from 2026-11-24"),
        ('valid_until = 2026-11-22\nexcluded = "closed"', "closed"),
    ],
)
def test_outside_its_days_a_task_is_excluded_with_that_reason(keys: str, reason: str) -> None:
    scenario = read(PLAIN + FLIGHT + keys)
    assert [task.task_id for task in scenario.tasks] == ["plain"]
    asked = parse_request(request_text(scenario), lambda _: ())
    assert [(each.task_id, each.reason, each.by) for each in asked.excluded] == [("flight", reason, "scenario")]


@pytest.mark.parametrize("keys", ["valid_until = 2026-11-23", "valid_from = 2026-11-23"])
def test_a_task_is_played_on_the_first_and_on_the_last_of_its_days(keys: str) -> None:
    assert [task.task_id for task in read(PLAIN + keys).tasks] == ["plain"]


def test_validity_days_change_no_digest() -> None:
    assert task_digests(read(PLAIN + "valid_from = 2026-01-01").tasks) == task_digests(read(PLAIN).tasks)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ('valid_from = "soon"', "'soon' is not a day"),
        ("valid_from = 20261101", "20261101 is not a day"),
        ("valid_from = 2026-11-02\nvalid_until = 2026-11-01", "2026-11-01 is before valid_from"),
    ],
)
def test_days_that_make_no_sense_are_refused(keys: str, problem: str) -> None:
    assert problem in refusal(PLAIN + keys)


def test_a_scenario_whose_tasks_are_all_past_says_so() -> None:
    assert "every task is excluded" in refusal(PLAIN + "valid_until = 2026-11-01")
