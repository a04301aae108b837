"""What a check of a task says, compared with the last one."""

from pathlib import Path

import pytest

from judge.plugins.freshness.readings import (
    AttemptOutcome,
    TaskReading,
    exclusions_toml,
    freshness_of,
    read_checks,
    write_checks,
)
from shared.errors import ConfigError

READING = TaskReading(
    day="2026-01-01",
    verdict="success",
    first_url="https://shop.example/",
    first_title="Shop",
    addresses=("https://shop.example/", "https://shop.example/cart"),
)


def attempt_outcome(**changes: object) -> AttemptOutcome:
    return AttemptOutcome(task_id="one", seen=READING.model_copy(update=changes))


def test_a_task_that_is_as_before_is_fresh() -> None:
    assert freshness_of(attempt_outcome(day="2026-01-08"), READING).state == "fresh"


def test_the_first_check_of_a_task_whose_script_passes_is_fresh() -> None:
    assert freshness_of(attempt_outcome(), None).state == "fresh"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"first_url": "https://shop.example/en"}, "the first page was https://shop.example/ and is"),
        ({"first_title": "Store"}, 'title was "Shop" and is "Store"'),
        ({"addresses": READING.addresses[:1]}, "page 2 of the walk was https://shop.example/cart and is none"),
    ],
)
def test_a_change_that_the_script_survives_is_named_and_no_reason_to_exclude(
    changes: dict[str, object], says: str
) -> None:
    freshness = freshness_of(attempt_outcome(**changes), READING)
    assert (freshness.state, freshness.proposes) == ("changed", False)
    assert says in freshness.why[0]


@pytest.mark.parametrize("last", [READING, READING.model_copy(update={"verdict": "failure"}), None])
def test_a_script_that_fails_is_a_change_each_time(last: TaskReading | None) -> None:
    freshness = freshness_of(attempt_outcome(verdict="failure", lost=("The cart is open",)), last)
    assert (freshness.state, freshness.proposes) == ("changed", True)
    assert "The cart is open" in freshness.why[0]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (AttemptOutcome(task_id="one", wall="a CAPTCHA"), "blocked"),
        (AttemptOutcome(task_id="one", error="it cannot be reached"), "gone"),
        (AttemptOutcome(task_id="one", unplayed="its last day was yesterday", is_over=True), "gone"),
        (AttemptOutcome(task_id="one", unplayed="no reference"), "unchecked"),
    ],
)
def test_a_task_without_pages_is_named_by_what_became_of_it(outcome: AttemptOutcome, state: str) -> None:
    assert freshness_of(outcome, READING).state == state


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("verdict", ["failure", "unscored"])
def test_a_first_page_that_is_no_longer_there_is_gone(status: int, verdict: str) -> None:
    reading = READING.model_copy(update={"verdict": verdict})
    freshness = freshness_of(AttemptOutcome(task_id="one", seen=reading, status=status), READING)
    assert (freshness.state, freshness.why, freshness.proposes) == ("gone", (f"the first page answers {status}",), True)


@pytest.mark.parametrize(
    ("verdict", "status", "state"),
    [("success", 404, "fresh"), ("failure", 403, "changed"), ("failure", 200, "changed"), ("failure", None, "changed")],
)
def test_another_status_and_a_script_that_passes_are_not_gone(verdict: str, status: int | None, state: str) -> None:
    reading = READING.model_copy(update={"verdict": verdict})
    assert freshness_of(AttemptOutcome(task_id="one", seen=reading, status=status), READING).state == state


def test_proposed_exclusions_are_toml_that_quotes_what_a_site_wrote() -> None:
    freshness = [
        freshness_of(AttemptOutcome(task_id="one", wall='a "wall"\nexcluded = "x"'), None),
        freshness_of(attempt_outcome(), None),
    ]
    lines = exclusions_toml(freshness).splitlines()
    assert lines[0] == '# in [[tasks]] with task_id = "one"'
    assert [line for line in lines if line.startswith("excluded")] == [lines[1]]


def test_what_was_seen_last_is_kept_for_tasks_that_show_no_page_now(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    write_checks(path, {}, [attempt_outcome()])
    missing = READING.model_copy(update={"verdict": "failure", "first_title": "Not found"})
    for ended in (
        AttemptOutcome(task_id="one", wall="a CAPTCHA"),
        AttemptOutcome(task_id="one", seen=missing, status=404),
    ):
        write_checks(path, read_checks(path), [ended])
    assert read_checks(path) == {"one": READING}


def test_a_file_that_is_not_a_check_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    path.write_text("{")
    with pytest.raises(ConfigError, match=r"last\.json"):
        read_checks(path)
