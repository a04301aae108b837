"""`wabe tasks check`, with a real browser and a site that changes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.browser.hostile_site import Handler, hostile_site
from helpers.scenario.stale import (
    MOVED,
    PASSED,
    STALE,
    WALLED,
    fill,
    names_of,
    spoil,
    write_dated_scenario,
    write_scenario,
)
from judge.commands.app import app

pytestmark = pytest.mark.e2e
COUNT = 4


def check(path: Path) -> tuple[int, dict[str, str], str]:
    result = CliRunner().invoke(app, ["tasks", "check", str(path)])
    lines = result.output.splitlines()[: len(names_of(COUNT))]
    return result.exit_code, {words[1].rstrip(":"): line for line in lines if (words := line.split())}, result.output


def not_found(handler: Handler) -> None:
    handler.send(b"<!doctype html><title>Not found</title><h1>Not found</h1>", status=404)


def still_there(handler: Handler) -> None:
    handler.send(b"<!doctype html><title>Part task_0</title><a href='/more/task_0'>More</a>", status=404)


def test_a_first_page_that_answers_404_is_gone_unless_the_script_passes(tmp_path: Path) -> None:
    with hostile_site() as site:
        fill(site, COUNT)
        path = write_scenario(tmp_path, site.url, COUNT, "2030-06-01")
        assert check(path)[0] == 0
        site.pages[f"/{MOVED}"] = not_found
        site.pages["/task_0"] = still_there
        code, result, output = check(path)
    assert code == 1
    assert result[MOVED] == f"gone      {MOVED}: the first page answers 404"
    assert result["task_0"].startswith("fresh"), output
    assert output.count("excluded = ") == 1
    # What was seen before is kept.
    assert '"first_title": "Not found"' not in path.with_name("scenario.freshness.json").read_text()


def test_a_script_of_a_task_with_dates_plays_the_day_of_the_check(tmp_path: Path) -> None:
    with hostile_site() as site:
        path = write_dated_scenario(tmp_path, site)
        result = CliRunner().invoke(app, ["tasks", "check", str(path)])
        assert result.output.splitlines()[0] == "fresh     flight", result.output
        # On another day, the walk leads to another address, which is as declared.
        path.write_text(path.read_text().replace("2030-06-01", "2030-06-10"))
        validated = CliRunner().invoke(app, ["tasks", "validate", str(path)])
        again = CliRunner().invoke(app, ["tasks", "check", str(path)])
    assert validated.exit_code == 0, validated.output
    assert again.output.splitlines()[0] == "fresh     flight", again.output
    assert "/flights?day={next friday}" in path.with_name("scenario.freshness.json").read_text()


def test_exactly_the_stale_tasks_are_named_with_what_became_of_them(tmp_path: Path) -> None:
    with hostile_site() as site:
        fill(site, COUNT)
        code, result, output = check(write_scenario(tmp_path, site.url, COUNT, "2030-06-01"))
        assert (code, {line.split()[0] for line in result.values()}) == (0, {"fresh"}), output
        assert "excluded" not in output
        spoil(site)
        path = write_scenario(tmp_path, site.url, COUNT, "2031-01-01")
        before = path.read_text()
        code, result, output = check(path)
    assert code == 1
    assert {name for name, line in result.items() if not line.startswith("fresh")} == set(STALE), output
    assert result[MOVED].startswith("changed")
    assert f"the first page was {site.url}{MOVED} and is {site.url}elsewhere" in result[MOVED]
    assert result[PASSED] == f"gone      {PASSED}: its last day was 2030-12-31"
    assert result[WALLED].startswith("blocked")
    assert "a Cloudflare challenge" in result[WALLED]
    assert output.count("excluded = ") == len(STALE)
    assert path.read_text() == before
