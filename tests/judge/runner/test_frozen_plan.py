"""What a run on archives starts and asks its judge for."""

import hashlib
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from helpers.network.archives import SHOP, use_pages, write_archive
from judge.runner.options import RunOptions, resume_command
from judge.runner.plan import Plan, make_plan
from shared.errors import ConfigError
from shared.settings import Settings

SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
cmd = "true"
[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:9019"
cmd = "true"
[config]
judge_model = "offline"
[[sites]]
name = "shop"
endpoint = "https://shop.example/"
ARCHIVE
[[sites]]
name = "bank"
endpoint = "http://127.0.0.1:9100"
cmd = "bank"
[[tasks]]
task_id = "a"
website = "https://shop.example/"
task = "Buy."
allowed_sites = ["http://127.0.0.1:9100"]
checks = [{ kind = "page", url = "/*" }]
[[tasks]]
task_id = "b"
website = "https://shop.example/"
task = "Sell."
checks = [{ kind = "page", url = "/*" }]
"""


@pytest.fixture(autouse=True)
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_pages(monkeypatch)
    return write_archive(tmp_path / "shop.pages", {SHOP: "hello"}, b="its walk has a decisive miss")


def plan(tmp_path: Path, declared: str = 'archive = "shop.pages"', **options: object) -> Plan:
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO.replace("ARCHIVE", declared))
    return make_plan(RunOptions(scenario=path, output_dir=tmp_path / "out", **options), Settings(path="/usr/bin:/bin"))


def test_only_live_sites_are_started_and_the_judge_gets_the_archive_with_its_digest(
    tmp_path: Path, archive: Path
) -> None:
    run_plan = plan(tmp_path)
    assert [member.name for member in run_plan.members if not member.is_agent] == ["bank"]
    config = json.loads(run_plan.request)["config"]
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert config["archives"] == {SHOP: {"path": str(archive), "sha256": digest}}
    assert config["exclude"] == {"b": "shop.pages: its walk has a decisive miss"}


def test_with_an_archive_for_every_site_none_is_started(tmp_path: Path, archive: Path) -> None:
    run_plan = plan(tmp_path, "", archive=archive)
    assert [member.name for member in run_plan.members if not member.is_agent] == []
    assert list(json.loads(run_plan.request)["config"]["archives"]) == ["*"]
    assert run_plan.store is not None
    assert f"--archive {archive}" in resume_command(run_plan.options, run_plan.store)


@pytest.mark.parametrize(
    ("settings", "second", "day"),
    [
        ("", SHOP, "2021-03-04"),
        ('timezone = "Pacific/Honolulu"', SHOP, "2021-03-03"),
        ("today = 2020-02-03", SHOP, "2020-02-03"),
        # There, pages have the present time.
        ('settle = "real-time"', SHOP, None),
        ("", "http://127.0.0.1:9100/", None),
    ],
)
def test_dates_are_relative_to_the_day_of_the_recording_as_the_clock_of_pages_is(
    tmp_path: Path, settings: str, second: str, day: str | None
) -> None:
    text = SCENARIO.replace("ARCHIVE", 'archive = "shop.pages"').replace("[config]", f"[config]\n{settings}")
    text = text.replace('"Buy."', '"Buy {today}."').replace('"/*"', '"/?from={today-7d}"')
    (tmp_path / "s.toml").write_text(text.replace(f'"b"\nwebsite = "{SHOP}"', f'"b"\nwebsite = "{second}"'))
    run_plan = make_plan(
        RunOptions(scenario=tmp_path / "s.toml", output_dir=tmp_path / "out"), Settings(path="/usr/bin")
    )
    today = date.fromisoformat(day) if day else datetime.now(UTC).date()
    assert run_plan.tasks[0].task == f"Buy {today}."
    assert {str(task.checks[0].url) for task in run_plan.tasks} == {f"/?from={today - timedelta(days=7)}"}  # type: ignore[union-attr]
    assert json.loads(run_plan.request)["config"]["today"] == str(today)
    is_named = any("not all sites of tasks with dates were recorded on one day" in note for note in run_plan.notes)
    assert is_named == (second != SHOP)


def test_without_archives_the_request_is_as_before(tmp_path: Path) -> None:
    run_plan = plan(tmp_path, "")
    assert "archives" not in json.loads(run_plan.request)["config"]
    assert run_plan.archives is None


@pytest.mark.parametrize(
    ("declared", "options", "problem"),
    [
        ('archive = "other.pages"', {}, "no such archive"),
        ('archive = "shop.pages"', {"serve_only": True}, "frozen sites need a judge that is started here"),
        ('archive = "shop.pages"', {"task": ("b",)}, "no task can be played: shop.pages: its walk has a decisive miss"),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_line(
    tmp_path: Path, declared: str, options: dict[str, object], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(tmp_path, declared, **options)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_judge_that_already_runs_cannot_be_given_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    text = SCENARIO.replace("ARCHIVE", 'archive = "shop.pages"').replace(':9009"\ncmd = "true"', ':9009"')
    path.write_text(text)
    with pytest.raises(ConfigError, match="frozen sites need a judge that is started here"):
        make_plan(RunOptions(scenario=path, output_dir=tmp_path / "out"), Settings(path="/usr/bin:/bin"))
