"""Replays Quick Submit here: six tasks of the demo in three shards, each with its own judge, one of them killed.

`python benchmarks/quick_submit.py [--kill 1]`: every judge starts with the environment that the platform's runner and
compiler make of `leaderboard/scenario.json5` and the judge's manifest, and gets the request that the gateway sends.
The results are joined as the runner joins them, with the killed shard missing and complete, and shown with the
published query and with ours. Exit code 1 unless each file is one row.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import httpx

from helpers.amber import program_environment, root_config, runner_environment
from helpers.json5 import json5
from helpers.ports import free_ports
from helpers.runner.commands import BIN
from helpers.scenario.copies import on_free_ports
from judge.results.leaderboard import rows
from judge.scenario.draft import RequestDraft
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from shared.a2a.client import AgentEvent, ArtifactTexts, AssessmentClient
from shared.errors import ParticipantError

SHARDS, TASKS = 3, 6
_DEMO = ROOT / "scenarios" / "demo"
_PATIENCE_S = 60.0
# The query of four columns that pages have used so far.
_PUBLISHED = """
SELECT t.participants.white_agent AS id, ROUND(unnest.detail.success_rate, 1) AS "Success Rate",
       unnest.detail.successful_tasks AS "Completed", unnest.detail.total_tasks AS "# Tasks"
FROM results t, UNNEST(t.results) ORDER BY "Success Rate" DESC;
"""


def judge_environment() -> dict[str, str]:
    """What the judge's program gets for a submission without an own key, judged by checks alone."""
    scenario = json5(ROOT / "leaderboard" / "scenario.json5")
    variables = runner_environment({"judge_model": "offline"}, white_agent={"google_api_key": "unused"})
    manifest = json5(ROOT / "amber-manifest.json5")
    return program_environment(scenario, "green", manifest, root_config(scenario, variables))


def spawned(stack: ExitStack, words: list[str], log: Path, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    """A process that is ended with the stack."""
    with log.open("ab") as stream:
        process = subprocess.Popen(words, env=environ, stdout=stream, stderr=stream)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process


async def until_up(url: str) -> None:
    """Wait until something answers."""
    end = time.monotonic() + _PATIENCE_S
    async with httpx.AsyncClient(trust_env=False) as client:
        while time.monotonic() < end:
            try:
                await client.get(url)
                return
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
    raise SystemExit(f"nothing answers at {url}")


async def a_shard(scenario: Scenario, index: int, folder: Path, *, is_killed: bool) -> dict[str, Any]:
    """One job of the runner: the gateway's answer, `{"status", "results"}`."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/"
    words = [str(BIN / "wabe"), "serve", "--port", str(port), "--output-dir", str(folder / f"shard-{index}")]
    environ = {"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), **judge_environment()}
    config = scenario.config.model_copy(
        update={"site_resets": scenario.resets, "shard_index": index, "num_shards": SHARDS, "num_instances": TASKS}
    )
    request = json.loads(RequestDraft.of(scenario, config=config).text())
    # The submitter sets no judge: the manifest's environment does.
    del request["config"]["judge_model"]
    status, results = "failed", []
    with ExitStack() as stack:
        judge = spawned(stack, words, folder / f"judge-{index}.log", environ)
        await until_up(f"{url}health")
        try:
            async with (
                AssessmentClient(url, reconnect_s=()) as client,
                aclosing(client.run(json.dumps(request))) as events,
            ):
                async for event in events:
                    if is_killed and judge.poll() is None:
                        judge.send_signal(signal.SIGKILL)
                    results += _artifacts(event)
                    status = getattr(event, "state", status)
        except ParticipantError as error:
            print(f"shard {index}: {error.message}")
    print(f"shard {index}: {status}")
    return {"status": status, "results": results if status == "completed" else []}


def _artifacts(event: AgentEvent) -> list[dict[str, Any]]:
    artifacts = []
    for text in event.texts if isinstance(event, ArtifactTexts) else ():
        try:
            artifacts.append(json.loads(text))
        except ValueError:
            continue
    return artifacts


def joined(shards: list[dict[str, Any]]) -> dict[str, Any]:
    """As the runner's last job joins them."""
    done = [each["status"] == "completed" for each in shards]
    status = "completed" if all(done) else "partial" if any(done) else "failed"
    ids = {"green": "judge-id", "white_agent": "agent-id"}
    return {"status": status, "participants": ids, "results": [each for shard in shards for each in shard["results"]]}


async def submit(scenario: Scenario, folder: Path, kill: int | None) -> Path:
    """The file of a submission whose shard `kill` loses its judge."""
    folder.mkdir()
    shards = [await a_shard(scenario, index, folder, is_killed=index == kill) for index in range(SHARDS)]
    path = folder / "results.json"
    path.write_text(json.dumps(joined(shards)))
    return path


async def main() -> int:
    """Play both submissions and print their rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", type=int, default=1, choices=range(SHARDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wabe-quick-submit-") as place, ExitStack() as stack:
        folder = Path(place)
        text = on_free_ports((_DEMO / "scenario.toml").read_text()).replace("{scenario_dir}", str(_DEMO))
        (folder / "demo.toml").write_text(text)
        (folder / "published.sql").write_text(_PUBLISHED)
        scenario = load_scenario(folder / "demo.toml")
        environ = {"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "HOME": place}
        for number, member in enumerate([*scenario.sites, *scenario.participants]):
            assert member.cmd is not None
            spawned(stack, member.cmd.split(), folder / f"member-{number}.log", environ)
            await until_up(str(member.endpoint))
        counts = []
        for kill in (None, options.kill):
            path = await submit(scenario, folder / ("complete" if kill is None else "killed"), kill)
            for query in (None, str(folder / "published.sql")):
                columns, query_rows = rows([path], query)
                print(f"\n{path.parent.name}, {'published query' if query else 'our query'}: {len(query_rows)} rows")
                for row in query_rows:
                    columns_shown = {name: value for name, value in zip(columns, row, strict=True) if value is not None}
                    print(json.dumps(columns_shown, default=str))
                counts += [] if query else [len(query_rows)]
    return int(counts != [1, 1])


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
