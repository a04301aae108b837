"""`wabe tasks check`, with a real browser and a site that changes."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.browser.hostile_site import Handler, Site, hostile_site
from judge.commands.app import app

# A scenario on a small site, three tasks of which can be made stale: by a moved page, a passed day and a bot wall.
MOVED, PASSED, WALLED = "task_moved", "task_passed", "task_walled"
STALE = (MOVED, PASSED, WALLED)
_PAGE = "<!doctype html><title>Part {0}</title><h1>Part {0}</h1><a href='/more/{0}'>More</a>"
_MORE = "<!doctype html><title>More of {0}</title><h1>More of {0}</h1>"


def names_of(count: int) -> Sequence[str]:
    """The tasks: the three and as many others as are missing."""
    return [*(f"task_{number}" for number in range(count - len(STALE))), *STALE]


def fill(site: Site, count: int) -> None:
    """Serve a page and another one behind it for each task."""
    for name in names_of(count):
        site.pages[f"/{name}"] = _PAGE.format(name)
        site.pages[f"/more/{name}"] = _MORE.format(name)


def spoil(site: Site) -> None:
    """Move one page, and put a wall before another."""

    def moved(handler: Handler) -> None:
        handler.redirect("/elsewhere")

    def walled(handler: Handler) -> None:
        handler.send(b"<!doctype html><title>Just a moment...</title><p>Checking your browser", status=403)

    site.pages[f"/{MOVED}"] = moved
    site.pages["/elsewhere"] = "<!doctype html><title>Everything new</title><h1>Everything new</h1>"
    site.pages[f"/{WALLED}"] = walled


_HEAD = (
    '[green_agent]\nendpoint = "http://127.0.0.1:9009"\ncmd = "wabe serve --host 127.0.0.1 --port 9009"\n\n'
    '[[participants]]\nrole = "white_agent"\nendpoint = "http://127.0.0.1:9019"\n\n'
    '[config]\njudge_model = "offline"\ntoday = {}\nmax_task_retries = 0\n\n'
)
_FLIGHTS = "<!doctype html><title>Flights</title><form><label>Day <input name=day></label><button>Find</button></form>"


def write_dated_scenario(folder: Path, site: Site) -> Path:
    """A scenario and its reference script, for the first Friday after 1 June 2030, which is a Saturday."""
    site.pages["/flights"] = _FLIGHTS
    text = "Find flights on {next friday:%B %-d}."
    (folder / "walks.toml").write_text(
        f'[[scripts]]\ntask = "{text}"\nsteps = [\n'
        '  { tool = "browser_type", role = "textbox", name = "Day", params = { text = "{next friday}" } },\n'
        '  { tool = "browser_click", role = "button", name = "Find" },\n'
        '  { tool = "finish", params = { answer = "" } },\n]\n'
    )
    path = folder / "scenario.toml"
    path.write_text(
        f'{_HEAD.format("2030-06-01")}[[tasks]]\ntask_id = "flight"\nwebsite = "{site.url}flights"\ntask = "{text}"\n'
        'reference = "walks.toml"\nchecks = [{ kind = "page", url = "/flights?day={next friday}" }]\n'
    )
    return path


def write_scenario(folder: Path, url: str, count: int, today: str) -> Path:
    """The scenario and its reference scripts, as of a day. The day of one task is the last of 2030."""
    tasks, scripts = [], []
    for name in names_of(count):
        text = f"Open more of {name}."
        days = "valid_until = 2030-12-31\n" if name == PASSED else ""
        check = json.dumps(f"/more/{name}")
        tasks.append(
            f'[[tasks]]\ntask_id = "{name}"\nwebsite = "{url}{name}"\ntask = "{text}"\nlevel = "easy"\n{days}'
            f'reference = "walks.toml"\nchecks = [{{ kind = "page", url = {check} }}]\n'
        )
        scripts.append(
            f'[[scripts]]\ntask = "{text}"\nsteps = [{{ tool = "browser_click", role = "link", name = "More" }}, '
            '{ tool = "finish", params = { answer = "" } }]\n'
        )
    (folder / "walks.toml").write_text("\n".join(scripts))
    path = folder / "scenario.toml"
    path.write_text(_HEAD.format(today) + "\n".join(tasks))
    return path


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


@pytest.mark.nightly
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


@pytest.mark.nightly
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
