"""A scenario on a small site, three tasks of which can be made stale: by a moved page, a passed day and a bot wall."""

import json
from collections.abc import Sequence
from pathlib import Path

from helpers.browser.hostile_site import Handler, Site

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
