"""A judge in this process: the real service, browser, MCP server and A2A on loopback, with a scripted participant."""

import asyncio
import base64
import inspect
import json
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from helpers.browser.sessions import left_behind
from helpers.llm.servers import ModelServer, openai_answer
from judge.browser.processes import list_processes
from judge.runner.follow import RunOutcome, request_assessment
from judge.server.limits import ServiceLimits
from judge.server.service import JudgeService
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import address_of, listen, serve_app
from shared.a2a.tasks import AgentMessage
from shared.models import Action, ObservationMessage
from shared.protocol import parse_observation, render_reply
from shared.settings import Settings

# One text that answers every question of every method with yes: if a judge is asked at all, it says success.
ALWAYS_YES = '1. The page is open.\n\nReasoning: it is so.\nScore: 5\n\nThoughts: done.\nStatus: "success"'
ALWAYS_NO = '1. The page is open.\n\nReasoning: it is not.\nScore: 1\n\nThoughts: not done.\nStatus: "failure"'
FAST: dict[str, Any] = {
    "action_timeout_s": 2.5,
    "navigation_timeout_s": 3,
    "call_timeout_s": 8,
    "reply_timeout_s": 8,
    "step_timeout_s": 25,
    "task_timeout_s": 60,
    "max_steps": 6,
    "max_task_retries": 0,
    "judge_timeout_s": 5,
}

# Keys of every task that has none of these.
EVERY_TASK: dict[str, Any] = {}


def tool_call(tool: str, **params: Any) -> str:
    """A well-formed reply."""
    thought = params.pop("thought", "")
    return render_reply(Action(tool=tool, params=params, thought=thought))


def finish(answer: str = "done") -> str:
    return tool_call("finish", answer=answer)


def ref(turn: "ParticipantTurn", element: str) -> str:
    """The reference of the snapshot's line that holds `element`, such as `link "Goal"`."""
    line = next(line for line in turn.observation.page.snapshot.splitlines() if element in line)
    return line.partition("[ref=")[2].partition("]")[0]


@dataclass(frozen=True)
class ParticipantTurn:
    """What a scripted participant is asked: step `n` (from 0) of its `episode`-th conversation, on a `website`."""

    n: int
    episode: int
    observation: ObservationMessage
    message: AgentMessage
    website: str


Script = Callable[[ParticipantTurn], str | Awaitable[str]]


class ScriptedAgent:
    """Counts conversations and steps, and lets a function decide."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.contexts: dict[str, list[ObservationMessage]] = {}

    async def __call__(self, turn: AgentMessage) -> str:
        seen = self.contexts.setdefault(turn.context_id, [])
        observation = parse_observation(turn.text)
        seen.append(observation)
        episode = list(self.contexts).index(turn.context_id)
        website = seen[0].website or ""
        reply = self._script(ParticipantTurn(len(seen) - 1, episode, observation, turn, website))
        return await reply if inspect.isawaitable(reply) else reply


def to_the_goal(turn: ParticipantTurn) -> str:
    """Plays the hostile site's one task: two presses, the link, finish."""
    steps = ('button "Press"', 'button "Press"', 'link "Goal"')
    return tool_call("browser_click", ref=ref(turn, steps[turn.n])) if turn.n < len(steps) else finish()


@asynccontextmanager
async def served(app: Starlette, sock: Any) -> AsyncIterator[None]:
    """Serve an application in this loop."""
    serving = asyncio.create_task(serve_app(app, sock, before_shutdown=app.state.stop))
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


@asynccontextmanager
async def participant(script: Script) -> AsyncIterator[str]:
    """A participant over real A2A; gives its address."""
    sock = listen("127.0.0.1", 0)
    url = address_of("127.0.0.1", sock.getsockname()[1])
    skill = Skill(id="t", name="t", description="t", tags=("t",))
    app = build_app(ScriptedAgent(script), name="p", description="p", version="1", card_url=url, skills=[skill])
    async with served(app, sock):
        yield url


@dataclass
class AssessedRun:
    """What a run left: the outcome over A2A and the folder, checked against each other."""

    outcome: RunOutcome
    folder: Path
    tasks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def detail(self) -> dict[str, Any]:
        return dict(self.outcome.results[0]["detail"])

    @property
    def entry(self) -> dict[str, Any]:
        """The only task's entry."""
        (entry,) = self.detail["tasks"]
        return dict(entry)

    def result(self, task_id: str = "t0") -> dict[str, Any]:
        return dict(json.loads((self.folder / "results" / task_id / "result.json").read_text()))

    @property
    def verdict(self) -> tuple[str, str]:
        """Outcome and stop reason of the only task."""
        return self.entry["verdict"], self.entry["stop_reason"]

    def summary(self) -> str:
        """What is on record of every task, in a line: outcome, end, cause, flags."""
        if not self.outcome.results:
            return f"{self.outcome.state}: {self.outcome.message}"
        return "; ".join(map(self.summary_of, self.detail["tasks"]))

    def summary_of(self, entry: dict[str, Any]) -> str:
        path = self.folder / "results" / entry["task_id"] / "result.json"
        steps = self.result(entry["task_id"])["steps"] if path.exists() else []
        refused = sum(len(step["refused"]) for step in steps)
        failed = sum(step["outcome"] is None or not step["outcome"]["ok"] for step in steps)
        parts = [f"{entry['verdict']} ({entry['stop_reason']})"]
        parts += [str(entry["error"])] if entry["error"] else []
        parts += [f"{failed} of {len(steps)} actions refused or failed"] if failed else []
        parts += [f"{refused} addresses refused"] if refused else []
        parts += [f"flags {', '.join(entry['flags'])}"] if entry["flags"] else []
        return ", ".join(parts)

    def check(self, *, on_disk: bool = True) -> None:
        """Every task accounted for once, the counts add up, no success but a judge's, disk and wire agree."""
        detail, entries = self.detail, self.detail["tasks"]
        assert [entry["task_id"] for entry in entries] == [task["task_id"] for task in self.tasks]
        assert detail["total_tasks"] == len(self.tasks)
        assert detail["total_tasks"] == detail["scored_tasks"] + detail["unscored_tasks"] + detail["aborted_tasks"]
        verdicts = [entry["verdict"] for entry in entries]
        assert detail["judged_successes"] == verdicts.count("success")
        for entry in entries:
            assert entry["success"] == (entry["verdict"] == "success")
            if entry["verdict"] == "success":
                assert entry["stop_reason"] in ("finished", "ended_by_page")
            if entry["verdict"] in ("aborted", "unscored"):
                assert entry["error"], entry
            if on_disk:
                result = self.result(entry["task_id"])
                assert (result["verdict"], result["stop_reason"]) == (entry["verdict"], entry["stop_reason"])
                steps = self.folder / "results" / entry["task_id"] / "steps.jsonl"
                lines = steps.read_text().splitlines() if steps.exists() else []
                assert [json.loads(line) for line in lines] == result["steps"]


@dataclass
class LiveJudge:
    """One judge, where it keeps its runs, and where its browsers keep theirs."""

    url: str
    output_dir: Path
    browser_files: Path
    model: ModelServer
    config: dict[str, Any]
    # Those that tasks name for uploads.
    files: Mapping[str, bytes] = field(default_factory=dict)

    def request(self, participant_url: str, tasks: list[dict[str, Any]], **config: Any) -> str:
        request = {**FAST, "judge_model": "openai:judge", **self.config, **config}
        request["tasks"] = [{**EVERY_TASK, **task} for task in tasks]
        body: dict[str, Any] = {"participants": {"white_agent": participant_url}, "config": request}
        if self.files:
            body["files"] = {name: base64.b64encode(data).decode() for name, data in self.files.items()}
        return json.dumps(body)

    async def ask(self, participant_url: str, tasks: list[dict[str, Any]], **config: Any) -> AssessedRun:
        """One assessment over A2A to its end."""
        config.setdefault("run_id", f"run-{random.randrange(10**9)}")
        outcome = await request_assessment(self.url, self.request(participant_url, tasks, **config), lambda _: None)
        assessed = AssessedRun(outcome, self.output_dir / "runs" / config["run_id"], tasks)
        self.report(assessed.summary())
        return assessed

    def report(self, outcome: str) -> None:
        """Called with what each assessment came to; the suites put a recorder in its place."""

    async def play(
        self,
        script: Script,
        website: str,
        *,
        tasks: int = 1,
        checks: Sequence[dict[str, Any]] = (),
        on_disk: bool = True,
        **config: Any,
    ) -> AssessedRun:
        """One assessment of a scripted participant, its books checked, nothing left running."""
        items = [{**task, "checks": list(checks)} for task in some_tasks(website, tasks)]
        async with participant(script) as url:
            assessed = await self.ask(url, items, **config)
        assert assessed.outcome.state == "completed", assessed.outcome
        assessed.check(on_disk=on_disk)
        await self.is_clean()
        return assessed

    async def is_clean(self) -> None:
        """No process and no file of any browser is left."""
        # Long, for a busy machine; it is waited for only as long as something is left.
        until = time.monotonic() + 60
        while (left := left_behind(self.browser_files)) and time.monotonic() < until:
            await asyncio.sleep(0.02)
        assert left == []


def some_tasks(website: str, count: int = 1) -> list[dict[str, Any]]:
    return [{"task_id": f"t{n}", "website": website, "task": "Reach the goal."} for n in range(count)]


@asynccontextmanager
async def live_judge(
    folder: Path,
    browser_files: Path,
    model: ModelServer,
    *,
    limits: ServiceLimits | None = None,
    environ: Mapping[str, str] | None = None,
    **config: Any,
) -> AsyncIterator[LiveJudge]:
    """A judge on a free port while the body runs, with `environ` added to its environment."""
    known = {"OPENAI_API_KEY": "sk-not-a-real-key", "OPENAI_BASE_URL": f"{model.url}/v1", "WABE_TRUST_CONFIG": "1"}
    settings = Settings.from_environ({**os.environ, **known, **(environ or {})})
    sock = listen("127.0.0.1", 0)
    url = address_of("127.0.0.1", sock.getsockname()[1])
    service = JudgeService(settings, folder, limits or ServiceLimits(), own_address=url)
    app = build_app(
        service,
        name="judge",
        description="judge",
        version="1",
        card_url=url,
        skills=[Skill(id="j", name="j", description="j", tags=("j",))],
        auth_token=settings.auth_token,
        task_db=folder / "tasks.sqlite",
        update_interval_s=0.05,
        serving=service.serving,
    )
    async with served(app, sock):
        yield LiveJudge(url, folder, browser_files, model, config)


def always_yes(*_: Any) -> Any:
    """A plan for a model server: success, whatever is asked."""
    return openai_answer(ALWAYS_YES)


def always_no(*_: Any) -> Any:
    """A plan for a model server: failure, whatever is asked."""
    return openai_answer(ALWAYS_NO)


def processes_of(browser_files: Path, what: str) -> list[int]:
    """Pids of browsers (`browser`), tabs (`renderer`) or MCP servers (`server`) whose files are in `browser_files`."""
    is_one: Callable[[str], bool] = {
        "browser": lambda line: f"--user-data-dir={browser_files}" in line and "--type=" not in line,
        "renderer": lambda line: f"--user-data-dir={browser_files}" in line and "--type=renderer" in line,
        "server": lambda line: f"--output-dir {browser_files}" in line,
    }[what]
    results = [process.pid for process in list_processes() if is_one(process.command)]
    if what != "renderer" or results:
        return results
    # Tabs name no folder: the browser that they descend from identifies them.
    parents = {process.pid: process.parent for process in list_processes()}
    browsers = set(processes_of(browser_files, "browser"))
    tabs = [p.pid for p in list_processes() if "--type=renderer" in p.command]
    return [pid for pid in tabs if browsers & set(_ancestors(pid, parents))]


def _ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    results = []
    while (pid := parents.get(pid, 0)) > 1:
        results.append(pid)
    return results


def kill(browser_files: Path, what: str, by: signal.Signals = signal.SIGKILL) -> int:
    """Returns how many were hit."""
    hit = 0
    for pid in processes_of(browser_files, what):
        # Some end by themselves: tabs that were replaced, and what another one had started.
        with suppress(ProcessLookupError):
            os.kill(pid, by)
            hit += 1
    return hit


def crash(browser_files: Path) -> None:
    """What a page can do to a browser that has a fault."""
    kill(browser_files, "browser", signal.SIGSEGV)


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
