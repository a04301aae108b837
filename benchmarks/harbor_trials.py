"""Trials of Harbor's own code on exported task folders, without containers: processes stand for the services.

    wabe export demo --format harbor --task deal_of_the_day --output /tmp/tasks
    python3.13 -m venv /tmp/harbor && /tmp/harbor/bin/pip install harbor==0.25.0
    /tmp/harbor/bin/python benchmarks/harbor_trials.py /tmp/tasks/deal_of_the_day

Runs where Harbor is installed (Python 3.12 or newer), with `wabe` and its Python found through WABE_BIN, by default
`.venv/bin`. Each trial is Harbor's (`harbor.trial.trial.Trial`): it starts the environment, waits until it is healthy,
runs an agent that plays over MCP, stops it, runs the collect command in the judge's service, carries the artifacts to
the verifier, and reads the reward. Only the environment is ours: a container is a folder, and its processes run here.

Prints a line for each trial, and fails unless every one ends as docs/formats.md says. Each agent also writes a reward
of 1 wherever its own container lets it.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import yaml
from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

BIN = Path(os.environ.get("WABE_BIN", Path(__file__).resolve().parents[1] / ".venv" / "bin"))
# What each agent does, and the reward of its trial; `None`: Harbor has to report that there is none.
EXPECTED = {"right": 1.0, "wrong": 0.0, "silent": 0.0, "browser killed": None, "judge killed": None}
OWN_FOLDERS = ("app/.output", "logs/agent", "logs/verifier", "logs/artifacts", "tests")
PLAYER = """
import asyncio, re, sys
from mcp.client.client import Client

async def main(url, clicks):
    async with Client(url) as client:
        async def page(tool, **params):
            return (await client.call_tool(tool, params)).content[0].text
        seen = await page("current_page")
        while not (link := re.search(r'link "See today.s deal[^"]*".*?\\[ref=(\\w+)\\]', seen)):
            seen = await page("browser_wait_for", time=1)
        if clicks == "True":
            await page("browser_click", target=link[1])
        if sys.argv[3] == "True":
            await page("finish", answer="The deal is open.")

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""
KILLER = """
import psutil, sys
for child in psutil.Process(int(sys.argv[1])).children(recursive=True):
    if "chrom" in child.name() or "headless" in child.name():
        child.kill()
"""


class Processes(BaseEnvironment):
    """The services of a compose file as processes of this machine; absolute paths are below a folder for each."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.folders: dict[str, Path] = {}
        self.judge: subprocess.Popen[bytes] | None = None
        self.stopped: set[str] = set()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        super().__init__(*args, **options)

    @staticmethod
    def type() -> str:
        return "processes"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(docker_compose=True)

    def _validate_definition(self) -> None:
        """Whatever is there."""

    def folder(self, service: str | None) -> Path:
        name = service or "main"
        if name not in self.folders:
            self.folders[name] = Path(tempfile.mkdtemp(prefix=f"harbor-{name}-"))
            for own in OWN_FOLDERS:
                (self.folders[name] / own).mkdir(parents=True)
        return self.folders[name]

    def here(self, text: str, service: str | None = None) -> str:
        """A command or script with the paths of a container as paths in its folder."""
        text = re.sub(r"(?<![\w/.-])/(app|logs|tests)\b", rf"{self.folder(service)}/\1", text)
        return text.replace("/dev/tcp/wabe/8000", f"/dev/tcp/127.0.0.1/{self.port}")

    async def start(self, force_build: bool) -> None:
        compose = self.environment_dir / "docker-compose.yaml"
        if (self.environment_dir / "Dockerfile").exists():
            script = self.folder(None) / "tests" / "test.sh"
            script.write_text(self.here((self.environment_dir / "test.sh").read_text()))
            script.chmod(0o755)
        if compose.exists():
            await asyncio.to_thread(self.start_judge, yaml.safe_load(compose.read_text())["services"]["wabe"])

    def start_judge(self, service: dict[str, Any]) -> None:
        places = {"--host=0.0.0.0": "--host=127.0.0.1", "--port=8000": f"--port={self.port}"}
        words = [places.get(word, word.replace("$$", "$")) for word in service["command"]]
        words = [word.replace("/scenario/", f"{self.environment_dir}/judge/") for word in words]
        output = self.folder("wabe") / "app" / ".output"
        with (output.parent / "log").open("wb") as log:
            self.judge = subprocess.Popen(
                [BIN / words[0], *words[1:]], env={**os.environ, "WABE_OUTPUT_DIR": str(output)}, stderr=log
            )

    async def stop(self, delete: bool) -> None:
        if self.judge is not None:
            self.judge.terminate()
            await asyncio.to_thread(self.judge.wait, 60)
        for folder in self.folders.values():
            shutil.rmtree(folder, ignore_errors=True)

    async def stop_service(self, service: str) -> None:
        self.stopped.add(service)

    async def exec(self, command: str, cwd: Any = None, env: Any = None, timeout_sec: Any = None, user: Any = None):
        return await self.service_exec(command, service=None, env=env)

    async def service_exec(
        self,
        command: str,
        *,
        service: str | None = None,
        cwd: Any = None,
        env: Any = None,
        timeout_sec: Any = None,
        user: Any = None,
    ) -> ExecResult:
        assert (service or "main") not in self.stopped, "a command in a stopped container"
        environ = {**os.environ, **(env or {})}
        if command.startswith("wabe harbor verdict"):
            assert service == "wabe", "the verdict is not made in the judge's service"
            assert "main" in self.stopped, "the verdict is made while the agent still runs"
            command += f" --port {self.port}"
            output = self.folder(service) / "app" / ".output"
            environ |= {"WABE_OUTPUT_DIR": str(output), "PATH": f"{BIN}:{os.environ['PATH']}"}
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", self.here(command, service), env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await process.communicate()
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode)

    def place(self, path: Any, service: str | None = None) -> Path:
        return self.folder(service) / str(path).lstrip("/")

    async def upload_file(self, source_path: Any, target_path: Any) -> None:
        self.place(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self.place(target_path))

    async def upload_dir(self, source_dir: Any, target_dir: Any) -> None:
        shutil.copytree(source_dir, self.place(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: Any, target_path: Any) -> None:
        await self.service_download_file(source_path, target_path)

    async def download_dir(self, source_dir: Any, target_dir: Any) -> None:
        await self.service_download_dir(source_dir, target_dir)

    async def service_download_file(self, source_path: Any, target_path: Any, *, service: str | None = None) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.place(source_path, service), target_path)

    async def service_download_dir(self, source_dir: Any, target_dir: Any, *, service: str | None = None) -> None:
        shutil.copytree(self.place(source_dir, service), target_dir, dirs_exist_ok=True)


class Player(BaseAgent):
    """Plays `deal_of_the_day` of the demo, in one of several ways."""

    capabilities = AgentCapabilities(mcp_servers=True)

    def __init__(self, *args: Any, way: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.way = way

    @staticmethod
    def name() -> str:
        return "player"

    def version(self) -> str:
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        """Nothing to install."""

    async def run(self, instruction: str, environment: Processes, context: Any) -> None:
        assert environment.judge is not None
        for forged in ("app/.output/verdict", "logs/verifier", "logs/artifacts", "logs/artifacts/verdict"):
            folder = environment.folder(None) / forged
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "reward.json").write_text('{"reward": 1.0}')
        (server,) = self.mcp_servers
        url = (server.url or "").replace("wabe:8000", f"127.0.0.1:{environment.port}")
        if self.way == "silent":
            return
        is_right, ends = self.way != "wrong", "killed" not in self.way
        await ran(PLAYER, url, str(is_right), str(ends))
        if self.way == "browser killed":
            await ran(KILLER, str(environment.judge.pid))
        if self.way == "judge killed":
            environment.judge.send_signal(signal.SIGKILL)


async def ran(program: str, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(BIN / "python", "-c", program, *arguments)
    assert await process.wait() == 0, "the agent's program failed"


async def trial(folder: Path, way: str, trials: Path) -> tuple[float | None, str, dict[str, Any]]:
    """The reward of a trial, the error that Harbor reports, and the verdict among its artifacts."""
    config = TrialConfig(
        task=TaskConfig(path=folder),
        trial_name=way.replace(" ", "-"),
        trials_dir=trials,
        agent=AgentConfig(import_path=f"{Path(__file__).stem}:Player", kwargs={"way": way}),
        environment=EnvironmentConfig(import_path=f"{Path(__file__).stem}:Processes"),
    )
    result = await (await Trial.create(config)).run()
    rewards = result.verifier_result.rewards if result.verifier_result else None
    error = result.exception_info.exception_type if result.exception_info else ""
    verdict = trials / config.trial_name / "artifacts" / "verdict" / "verdict.json"
    return (rewards or {}).get("reward"), error, json.loads(verdict.read_text()) if verdict.exists() else {}


async def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    assert tomllib.loads((folder / "task.toml").read_text())["metadata"]["task_id"] == "deal_of_the_day"
    wrong = 0
    with tempfile.TemporaryDirectory() as trials:
        for way, expected in EXPECTED.items():
            reward, error, verdict = await trial(folder, way, Path(trials))
            is_as_expected = (reward, error) == (expected, "" if expected is not None else "RewardFileNotFoundError")
            wrong += not is_as_expected
            print(f"{way}: reward {reward}, {error or 'no error'}, {verdict}" + ("" if is_as_expected else "  WRONG"))
    return wrong


if __name__ == "__main__":
    # By this name, so that Harbor's import of it finds the same classes.
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(asyncio.run(main()))
