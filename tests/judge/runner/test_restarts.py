"""A scenario's sites are started again when the judge asks for it, and nobody else can ask for more."""

import asyncio
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from helpers.ports import free_port
from judge.config import RunConfig
from judge.episode.reset import SiteTurns, restart_site
from judge.network.policy import NetworkPolicy
from judge.records.tasks import Task
from judge.runner.instances import placed
from judge.runner.launch import Child, launched, site_member
from judge.runner.restarts import restarts_of
from judge.runner.routes import routed_client
from judge.scenario.models import SiteEntry
from shared.errors import SiteFault

# It counts its visitors as long as it runs, and ends for good on request.
COUNTER = """
import http.server, pathlib, sys
here = pathlib.Path(__file__)
if (here.parent / "broken").exists(): sys.exit(3)
class Handler(http.server.BaseHTTPRequestHandler):
    seen = 0
    def do_GET(self):
        if self.path == "/visit": Handler.seen += 1
        self.send_response(200); self.end_headers(); self.wfile.write(str(Handler.seen).encode())
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def a_site(folder: Path, **keys: object) -> SiteEntry:
    (folder / "site.py").write_text(COUNTER)
    port = free_port()
    command = f"{sys.executable} {folder / 'site.py'} {port}"
    return SiteEntry.model_validate({"name": "shop", "endpoint": f"http://127.0.0.1:{port}", "cmd": command, **keys})


def starting(site: SiteEntry, folder: Path) -> AbstractAsyncContextManager[Sequence[Child]]:
    return launched([site_member(site)], scenario_dir=folder, environ={}, logs=folder / "logs")


@pytest.mark.slow
async def test_a_site_is_in_its_first_state_after_a_restart(tmp_path: Path) -> None:
    site = a_site(tmp_path, restart=True)
    async with (
        starting(site, tmp_path) as children,
        restarts_of([site], children) as restarts,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        assert list(restarts) == [site.endpoint]
        assert (await client.get(f"{site.endpoint}/visit")).text == "1"
        # As the judge does it: with a policy by which no browser reaches the runner.
        sites = SiteTurns(RunConfig(site_restarts=restarts), lambda task: NetworkPolicy.for_websites([task.website]))
        task = Task(task_id="t", website=site.endpoint, task="x")
        async with sites.turn(task, is_first=False) as turn:
            assert ((await client.get(site.endpoint)).text, turn.shares_state) == ("0", False)
        assert children[0].crash() is None
        refused = [await client.get(restarts[site.endpoint]), await client.post(f"{restarts[site.endpoint]}7")]
        assert [answer.status_code for answer in refused] == [404, 404]


@pytest.mark.slow
async def test_a_site_that_does_not_start_again_is_a_fault_of_the_site(tmp_path: Path) -> None:
    site = a_site(tmp_path, restart=True)
    async with starting(site, tmp_path) as children, restarts_of([site], children) as restarts:
        (tmp_path / "broken").touch()
        address = restarts[site.endpoint]
        with pytest.raises(SiteFault, match=r"could not be reset: site shop at .* ended with exit code 3"):
            await restart_site(address, "t", {})
        assert "shop ended during the run with exit code 3" in str(children[0].crash())


@pytest.mark.slow
async def test_an_attempt_restarts_its_own_instance_only_and_each_has_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(COUNTER)
    command = f"{sys.executable} {tmp_path / 'site.py'} {{port}} {{data_dir}}"
    endpoint = f"http://127.0.0.1:{free_port()}"
    keys = {"name": "shop", "endpoint": endpoint, "cmd": command, "restart": True, "instances": "per_slot"}
    site = SiteEntry.model_validate(keys)
    members, instances = placed([site_member(site)], [site], {endpoint: 2})
    first, second = instances[endpoint]
    async with (
        launched(members, scenario_dir=tmp_path, environ={}, logs=tmp_path / "logs") as children,
        restarts_of([site], children, instances=instances) as restarts,
        routed_client({endpoint: first}) as one,
        routed_client({endpoint: second}) as two,
    ):
        folders = [child.data_dir for child in children if child.data_dir]
        assert len({folder for folder in folders if not any(folder.iterdir())}) == 2
        assert [Path(child.argv[-1]) for child in children] == folders
        for folder in folders:
            (folder / "order").touch()
        for client in (one, two):
            assert (await client.get(f"{endpoint}/visit")).text == "1"
        config = RunConfig(site_restarts=restarts, site_instances=instances)
        sites = SiteTurns(config, lambda task: NetworkPolicy.for_websites([task.website]))
        async with sites.turn(Task(task_id="t", website=endpoint, task="x"), is_first=False) as turn:
            assert turn.instances == {endpoint: first}
            assert [(await client.get(endpoint)).text for client in (one, two)] == ["0", "1"]
            assert [[*folder.iterdir()] for folder in folders] == [[], [folders[1] / "order"]]
        for unknown, address in (({}, endpoint), ({endpoint: "http://10.0.0.1"}, "http://10.0.0.1")):
            with pytest.raises(SiteFault, match=f"{re.escape(endpoint)} has no instance at {re.escape(address)}"):
                await restart_site(restarts[endpoint], "t", unknown)
    assert not any(folder.exists() for folder in folders)


async def test_sites_without_restart_have_no_address(tmp_path: Path) -> None:
    async with restarts_of([a_site(tmp_path)], []) as restarts:
        assert restarts == {}


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"restart": True, "cmd": None}, "needs a cmd"),
        ({"restart": True, "static": True}, "more than one of static, reset_url and restart"),
        ({"reset_url": "http://127.0.0.1:1/reset", "static": True}, "more than one of static, reset_url and restart"),
    ],
)
def test_a_site_has_one_way_back_to_its_first_state(tmp_path: Path, keys: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        a_site(tmp_path, **keys)


@pytest.mark.slow
async def test_a_run_that_ends_during_a_restart_leaves_no_traceback(tmp_path: Path) -> None:
    site = a_site(tmp_path, restart=True)
    complaints: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    async with starting(site, tmp_path) as children:
        async with restarts_of([site], children) as restarts:
            (tmp_path / "site.py").write_text("import time; time.sleep(60)")
            address = urlsplit(restarts[site.endpoint])
            _, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.write(f"POST {address.path} HTTP/1.1\r\n\r\n".encode())
            # The old process ends first; the new one never answers.
            await children[0].process.wait()
        writer.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert complaints == []
