"""A scenario whose own site lacks the pages that its tasks begin on stops before anything is played."""

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from helpers.ports import free_ports
from judge.config import RunConfig
from judge.records.access import HttpCredentials
from judge.records.tasks import Task
from judge.runner.launch import Member, launched
from judge.runner.playable import require_first_pages, require_folders, require_programs, served_folder
from shared.errors import ConfigError

pytestmark = pytest.mark.slow

CONFIG = RunConfig(locale="de-AT", user_agent="Test/1.0")
# Answers 404 to anything but a navigation of a browser with these settings, 403 under `/closed` and 410 under `/gone`.
SINGLE_PAGE = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        given = self.headers
        known = "text/html" in given.get("Accept", "") and given.get("Sec-Fetch-Mode") == "navigate"
        known = known and (given.get("Accept-Language"), given.get("User-Agent")) == ("de-AT", "Test/1.0")
        self.send_response({"/closed": 403, "/gone": 410}.get(self.path, 200) if known else 404)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def a_site(cmd: str | None, port: int = 9) -> Member:
    return Member(name="manual", endpoint=f"http://127.0.0.1:{port}", cmd=cmd, is_agent=False)


@pytest.mark.parametrize(
    ("cmd", "folder"),
    [
        ("python -m http.server 9181 --bind 127.0.0.1 --directory /usr/share/manual", "/usr/share/manual"),
        ("python -m http.server -d '{scenario_dir}/my site' 9181", "/here/my site"),
        ("python -m http.server 9181 --directory={scenario_dir}", "/here"),
        ("python -m http.server 9181", None),
        ("nginx -d /missing", None),
        (None, None),
    ],
)
def test_the_folder_that_pythons_web_server_serves_is_known(cmd: str | None, folder: str | None) -> None:
    assert served_folder(a_site(cmd), Path("/here")) == (Path(folder) if folder else None)


def test_a_missing_folder_is_named_before_anything_starts(tmp_path: Path) -> None:
    site = a_site("python -m http.server 9181 --directory {scenario_dir}/html")
    with pytest.raises(ConfigError) as caught:
        require_folders([site], tmp_path)
    assert str(caught.value) == (
        f"site manual: {tmp_path / 'html'}, which its cmd serves, does not exist"
        " (install or build what belongs there, or correct the cmd)"
    )
    (tmp_path / "html").mkdir()
    require_folders([site], tmp_path)


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Member]:
    (folder / "html").mkdir()
    (folder / "html" / "index.html").write_text("<h1>Manual</h1>")
    (port,) = free_ports(1)
    cmd = f"{sys.executable} -m http.server {port} --bind 127.0.0.1 --directory {{scenario_dir}}/html"
    site = a_site(cmd, port)
    async with launched([site], scenario_dir=folder, environ={}, logs=folder / "logs"):
        yield site


def a_task(task_id: str, website: str, **more: object) -> Task:
    return Task.model_validate({"task_id": task_id, "website": website, "task": "Read.", **more})


async def test_a_first_page_that_is_not_found_stops_the_run(tmp_path: Path) -> None:
    async with served(tmp_path) as site:
        tasks = [a_task(name, f"{site.endpoint}/{name}.html") for name in ("index", "chapter", "appendix")]
        await require_first_pages([site], tasks[:1], CONFIG)
        with pytest.raises(ConfigError) as caught:
            await require_first_pages([site], tasks, CONFIG)
    assert str(caught.value) == (
        f"site manual does not have {site.endpoint}/chapter.html and 1 more (404), where task chapter begins"
        " (install or build what the site's cmd serves, or correct the task's website)"
    )


async def test_a_page_is_requested_as_a_browser_opens_it(tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text(SINGLE_PAGE)
    (port,) = free_ports(1)
    site = a_site(f"{sys.executable} {tmp_path / 'application.py'} {port}", port)
    async with launched([site], scenario_dir=tmp_path, environ={}, logs=tmp_path / "logs"):
        await require_first_pages([site], [a_task(name, f"{site.endpoint}/{name}") for name in ("a", "closed")], CONFIG)
        with pytest.raises(ConfigError, match=r"does not have .*/gone"):
            await require_first_pages([site], [a_task("gone", f"{site.endpoint}/gone")], CONFIG)


async def test_a_page_that_may_need_a_login_is_left_to_the_browser(tmp_path: Path) -> None:
    async with served(tmp_path) as site:
        login = HttpCredentials(username="me", password="hunter22")
        task = a_task("private", f"{site.endpoint}/private.html").model_copy(update={"http_credentials": (login,)})
        await require_first_pages([site], [task], CONFIG)


async def test_a_site_that_was_not_started_here_is_not_asked(tmp_path: Path) -> None:
    async with served(tmp_path) as site:
        running = site.model_copy(update={"cmd": None})
        await require_first_pages([running], [a_task("t", f"{site.endpoint}/chapter.html")], CONFIG)


async def test_the_first_pages_of_an_instance_are_looked_for_at_its_sites_address(tmp_path: Path) -> None:
    async with served(tmp_path) as site:
        (port,) = free_ports(1)
        instance = site.model_copy(update={"endpoint": f"http://127.0.0.1:{port}", "instance": site.endpoint})
        tasks = [a_task(name, f"{instance.endpoint}/{name}.html") for name in ("index", "chapter")]
        await require_first_pages([instance], tasks[:1], CONFIG)
        with pytest.raises(ConfigError, match=rf"does not have http://127\.0\.0\.1:{port}/chapter\.html \(404\)"):
            await require_first_pages([instance], tasks, CONFIG)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--command 'no-such-program {mcp_url}'", "agent: program: no-such-program is not on the PATH: install it"),
        ("--command 'agent {url}'", r"agent: command: mcp: unknown placeholder \{url\}"),
        ("--command claude", "agent: (program: claude is not on the PATH|keys: none is set: export ANTHROPIC_API_KEY)"),
        ("--command opencode --sandbox", "agent: (program: opencode is not on the PATH|keys: none is set)"),
    ],
)
def test_a_program_over_mcp_that_lacks_something_is_named_before_a_site_starts(options: str, said: str) -> None:
    pytest.importorskip("judge.plugins.mcp_agents")
    agent = Member(name="agent", endpoint="http://127.0.0.1:9", cmd=f"wabe participant mcp {options}", is_agent=True)
    with pytest.raises(ConfigError, match=said):
        require_programs([agent], {"PATH": "/usr/bin:/bin"})


def test_a_program_over_mcp_that_has_what_it_needs_is_accepted() -> None:
    pytest.importorskip("judge.plugins.mcp_agents")
    cmd = f"wabe participant mcp --command '{sys.executable} {{mcp_url}}' --logs {{logs}} --port 9"
    require_programs([Member(name="agent", endpoint="http://127.0.0.1:9", cmd=cmd, is_agent=True)], {"PATH": "/bin"})
