"""Reference scripts that tasks name."""

from datetime import date
from pathlib import Path

import pytest

from judge.records.tasks import Dated, Task
from judge.scenario.references import reference_problems

SCRIPT = '[[scripts]]\ntask = "Find the  red shoes."\n[[scripts.steps]]\nsay = "x"\n'


def problems(folder: Path, text: str = "Find the red shoes.", reference: str | None = "s.toml") -> list[str]:
    task = Task(task_id="t1", website="https://shop.test/", task=text, reference=reference)
    return [each for each in reference_problems([task], folder) if each]


def test_a_script_for_the_task_is_enough(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCRIPT)
    assert problems(tmp_path) == []
    assert problems(tmp_path, reference=None) == []


def test_a_script_for_a_task_with_dates_has_the_same_dates(tmp_path: Path) -> None:
    dated = Dated(day=date(2026, 11, 23), template={"task": "Fly on {next friday}."})
    fields = {"task_id": "t1", "website": "https://shop.test/", "reference": "s.toml", "dated": dated}
    task = Task(**fields, task="Fly on 2026-11-27.")
    (tmp_path / "s.toml").write_text(SCRIPT.replace("Find the  red shoes.", "Fly  on {next friday}."))
    assert list(reference_problems([task], tmp_path)) == [None]
    (tmp_path / "s.toml").write_text(SCRIPT.replace("Find the  red shoes.", "Fly on {next sunday}."))
    (result,) = reference_problems([task], tmp_path)
    assert "has no script for it" in (result or "")


def test_a_mistake_in_a_date_of_a_script_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCRIPT.replace('"x"', '"on {today+x}"'))
    (result,) = problems(tmp_path)
    assert "[[scripts]] #1, key 'steps': column 4: '{today+x}' is not a date" in result


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "No such file"),
        ("[[scripts]", "s.toml"),
        ("", "has no script for it (add [[scripts]] whose task is this one's text)"),
        (SCRIPT.replace("red", "blue"), "has no script for it"),
    ],
)
def test_a_missing_script_is_one_line(tmp_path: Path, content: str | None, problem: str) -> None:
    if content is not None:
        (tmp_path / "s.toml").write_text(content)
    (result,) = problems(tmp_path)
    assert result.startswith("reference 's.toml'")
    assert problem in result
    assert "\n" not in result
