"""What a task expects never leaves the server: in no frame, no list and no error."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.environment.scripted import FINISH, GO, LEAVE
from judge.plugins.openenv.conversation import View
from plugins.openenv.fakes import dial, serving
from plugins.openenv.processes import playing, workers_of

SECRET = "S3cret"
CHECKS: tuple[dict[str, Any], ...] = (
    {"kind": "page", "url": f"/{SECRET}-page", "description": f"{SECRET} description"},
    {"kind": "answer", "contains": f"{SECRET} answer"},
    {"kind": "text", "pattern": f"{SECRET} text"},
    {"kind": "element", "element": f'button "{SECRET} button"'},
)
TASK: dict[str, Any] = {
    "policies": [{"name": f"{SECRET}_policy", "dimension": "privacy", "kind": "page", "url": f"/{SECRET}-forbidden"}],
    "key_points": [f"{SECRET} key point"],
}
QUESTIONS = [
    {"type": "reset", "data": {"task_id": "first"}},
    {"type": "state"},
    {"type": "step", "data": {**GO}},
    {"type": "step", "data": {"tool": "prose"}},
    {"type": "step", "data": {**LEAVE}},
    {"type": "step", "data": {**FINISH}},
    {"type": "state"},
    {"type": "step", "data": {**FINISH}},
    {"type": "reset", "data": {"task_id": "fourth"}},
    {"type": "reset", "data": {"seed": -1}},
    {"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}},
]


def broken() -> Any:
    raise ValueError(f"expected {SECRET}")


@pytest.mark.parametrize("view", [View(), View(as_message=True, has_pictures=True)])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"checks": CHECKS}, id="failed"),
        pytest.param({"checks": ()}, id="unscored"),
        pytest.param({"checks": CHECKS, "opened": broken, "max_task_retries": 0}, id="aborted"),
    ],
)
async def test_nothing_that_a_task_expects_is_in_any_answer(
    view: View, options: dict[str, Any], tmp_path: Path
) -> None:
    texts: list[str] = []
    async with playing(tmp_path, task=TASK, **options) as processes:
        tasks = processes[0].host.tasks
        async with serving(workers_of(processes), view, tasks) as place, dial(place) as client:
            for question in QUESTIONS:
                await client.send(json.dumps(question))
                texts.append(str(await client.recv()))
            async with httpx.AsyncClient(base_url=f"http://{place}", trust_env=False) as reader:
                for path in ("/metadata", "/schema", "/openapi.json", "/list_environments", "/shop/splits"):
                    texts.append((await reader.get(path)).text)
                texts.append((await reader.post("/shop/tasks", json={"split": "train"})).text)
    assert len(texts) == len(QUESTIONS) + 6
    assert [each for each in texts if SECRET in each] == []
