"""`wabe harbor` as the judge's service runs it: the command of an exported task, an agent over MCP, and the verdict."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml
from mcp.client.client import Client
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed
from typer.testing import CliRunner

from helpers.cases import each
from helpers.paths import ROOT
from helpers.ports import free_port
from helpers.runner.commands import BIN, descendants
from helpers.scenario.copies import scenario_on_free_ports
from judge.commands.app import app as wabe
from judge.plugins.harbor.command import require_hidden_sites
from judge.plugins.harbor.folders import write_tasks
from shared.errors import ConfigError
from shared.settings import Settings

DEMO = ROOT / "scenarios" / "demo" / "scenario.toml"
NOWHERE = {"WABE_IN_CONTAINER": "", "container": "", "WABE_AUTH_TOKEN": ""}
DEAL = re.compile(r'link "See today\'s deal[^"]*".*?\[ref=(\w+)\]')


@contextlib.contextmanager
def service(tmp_path: Path) -> Iterator[tuple[int, psutil.Process, dict[str, str]]]:
    """The judge's service of an exported task as its compose file starts it, but for where it listens and writes."""
    home = tmp_path / "set"
    scenario_on_free_ports("demo", home)
    write_tasks(home / "demo.toml", ["deal_of_the_day"], tmp_path / "tasks", Settings.from_environ({}))
    environment = tmp_path / "tasks" / "deal_of_the_day" / "environment"
    command = yaml.safe_load((environment / "docker-compose.yaml").read_text())["services"]["wabe"]["command"]
    port = free_port()
    places = {"--host=0.0.0.0": "--host=127.0.0.1", "--port=8000": f"--port={port}"}
    words = [places.get(word, word).replace("/scenario", str(environment / "judge")) for word in command]
    environ = {**os.environ, "WABE_OUTPUT_DIR": str(tmp_path / "out")}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([BIN / words[0], *words[1:]], env=environ, stderr=log, cwd=tmp_path)
    try:
        wait_until_healthy(port)
        yield port, psutil.Process(process.pid), environ
    finally:
        process.terminate()
        process.wait(30)


@retry(stop=stop_after_delay(60), wait=wait_fixed(0.2), retry=retry_if_exception_type(httpx.HTTPError), reraise=True)
def wait_until_healthy(port: int) -> None:
    assert httpx.get(f"http://127.0.0.1:{port}/health").json() == {"status": "healthy"}


def collected(tmp_path: Path, port: int, environ: dict[str, str]) -> dict[str, Any]:
    """What the collect command writes: its files by name, with their content."""
    command = [str(BIN / "wabe"), "harbor", "verdict", "--port", str(port), "--output", str(tmp_path / "verdict")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    documents = {path.name: json.loads(path.read_text()) for path in (tmp_path / "verdict").iterdir()}
    assert done.returncode == ("reward.json" not in documents)
    return documents


@pytest.mark.e2e
@pytest.mark.own_browser
@pytest.mark.parametrize("how", each(["right", "killed"], suite=["right"]))
async def test_an_agent_plays_an_exported_task_and_the_judge_writes_the_verdict(tmp_path: Path, how: str) -> None:
    with service(tmp_path) as (port, process, environ):
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:

            async def page(tool: str, **params: object) -> str:
                result = await client.call_tool(tool, dict(params))
                return str(result.content[0].text)  # type: ignore[union-attr]

            assert "browser_click" in {tool.name for tool in (await client.list_tools()).tools}
            seen = await page("current_page")
            assert seen.startswith("Task: Open the product that is today's deal of the day.\n")
            while (link := DEAL.search(seen)) is None:
                seen = await page("browser_wait_for", time=1)
            assert "/product/fjord-reading-chair" in await page("browser_click", target=link[1])
            if how == "killed":
                for child in process.children(recursive=True):
                    if "chrom" in child.name() or "headless" in child.name():
                        child.kill()
            ended = await page("finish", answer="The Fjord Reading Chair.")
        verdicts = collected(tmp_path, port, environ)
    if how == "right":
        assert ended == "The task has ended."
        assert verdicts == {"reward.json": {"reward": 1.0}, "verdict.json": {"outcome": "scored", "reward": 1.0}}
    else:
        assert "no fault of yours" in ended
        assert list(verdicts) == ["verdict.json"]
        assert (verdicts["verdict.json"]["outcome"], verdicts["verdict.json"]["blame"]) == ("aborted", "browser")
    assert descendants(process.pid) == {}


def test_a_verdict_without_a_judge_is_no_reward(tmp_path: Path) -> None:
    arguments = ["harbor", "verdict", "--output", str(tmp_path / "verdict"), "--output-dir", str(tmp_path)]
    done = CliRunner().invoke(wabe, arguments)
    assert (done.exit_code, done.stdout) == (1, "no reward: lost: internal: the judge does not answer any more\n")
    assert [path.name for path in (tmp_path / "verdict").iterdir()] == ["verdict.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sha256", "0" * 64], "not the scenario that was exported"),
        (["--host", "0.0.0.0"], "would let other machines play the task"),
    ],
)
def test_another_scenario_and_other_machines_are_refused(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(wabe, ["harbor", "serve", str(DEMO), "--task", "red_rugs", *arguments], env=NOWHERE)
    assert isinstance(done.exception, ConfigError)
    assert message in str(done.exception)


@pytest.mark.parametrize(("address", "is_hidden"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_a_site_that_an_agent_would_reach_without_the_browser_is_refused(address: str, *, is_hidden: bool) -> None:
    port = free_port()
    command = [sys.executable, "-u", "-m", "http.server", str(port), "--bind", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as site:
        try:
            assert site.stdout is not None
            site.stdout.readline()
            with contextlib.nullcontext() if is_hidden else pytest.raises(ConfigError, match=f"0.0.0.0:{port}"):
                require_hidden_sites()
        finally:
            site.kill()
