"""A judge model that answers from a script, and trajectories to judge."""

import asyncio
import functools
import json
from collections.abc import Callable
from pathlib import Path

from judge.config import RunConfig
from judge.judges.engine import JudgeParts
from judge.judges.prompt_set import REQUIRED, load_prompts
from judge.records.tasks import Task
from judge.trajectory.record import Attempt, Texts, Trajectory
from shared.errors import ModelError
from shared.llm.cache import CachedModel
from shared.llm.model import Completion, FinishReason, ImagePart, ModelRequest
from shared.models import TokenUsage

JPEG = b"\xff\xd8\xff\xe0"
Script = Callable[[ModelRequest], "str | Completion | ModelError"]


class ScriptedModel:
    """Answers with what `script` returns, or raises it; keeps every request."""

    def __init__(self, script: Script, name: str = "test:scripted") -> None:
        self._script = script
        self.name = name
        self.requests: list[ModelRequest] = []
        self.gate: asyncio.Event | None = None
        self.closed = False

    async def complete(self, request: ModelRequest) -> Completion:
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        answer = self._script(request)
        if isinstance(answer, ModelError):
            raise answer
        return answer if isinstance(answer, Completion) else completion(answer)

    async def aclose(self) -> None:
        self.closed = True

    def texts(self) -> list[str]:
        return ["\n".join(part for part in request.parts if isinstance(part, str)) for request in self.requests]


def completion(text: str, finish_reason: FinishReason = "stop") -> Completion:
    usage = TokenUsage(calls=1, input=100, output=10)
    return Completion(text=text, model="scripted", finish_reason=finish_reason, usage=usage, cost_usd=0.01)


def stage(request: ModelRequest) -> str:
    """The bundled prompt that a request was made from."""
    return stage_of(request.system)


def stage_of(system: str) -> str:
    """The bundled prompt with this system text."""
    return _stages()[system]


@functools.cache
def _stages() -> dict[str, str]:
    prompts = load_prompts(None)
    return {prompts.render(name, {}).system: name for name in REQUIRED}


def webjudge_script(
    scores: dict[bytes, str] | None = None, status: str = "success", points: str = "1. a\n2. b"
) -> Script:
    """Key points, scores by image content (default 4), and a status."""

    def answer(request: ModelRequest) -> str:
        match stage(request):
            case "key_points":
                return points
            case "image":
                image = next(part for part in request.parts if isinstance(part, ImagePart))
                return (scores or {}).get(image.data[len(JPEG) :], "I see it.\nScore: 4")
            case _:
                return f"Thoughts: seen.\nStatus: {status}"

    return answer


def images_of(request: ModelRequest) -> list[bytes]:
    return [part.data[len(JPEG) :] for part in request.parts if isinstance(part, ImagePart)]


def key_point_script(statuses: dict[str, str]) -> Script:
    plain = webjudge_script()

    def answer(request: ModelRequest) -> str | Completion | ModelError:
        if stage(request) != "key_point":
            return plain(request)
        text = str(request.parts[0])
        return next(f"Status: {status}" for point, status in statuses.items() if f"\n{point}\n" in text)

    return answer


RUBRIC = {
    "criteria": [{"requirement": "Lamp in cart", "kind": "outcome"}, {"requirement": "Sorted", "kind": "process"}]
}
READING = {
    "relations": [
        {"criterion": "c1", "relation": "supports", "seen": "a lamp"},
        {"criterion": "c2", "relation": "unrelated", "seen": ""},
    ],
    "blocker": None,
}
MARKS = {
    "criteria": [
        {"criterion": "c1", "verdict": "met", "reason": "in the cart"},
        {"criterion": "c2", "verdict": "not met", "reason": "never sorted"},
    ],
    "first_failure": {"action": 1, "criterion": "c2", "why": "skipped sorting"},
    "blockers": [{"kind": "out_of_stock", "avoidable": False, "seen": "sold out"}],
}


def rubric_script(
    *, marks: object = MARKS, reading: object = READING, statuses: tuple[str, ...] = ("success",)
) -> Script:
    votes = iter(statuses * 20)

    def answer(request: ModelRequest) -> str:
        match stage(request):
            case "rubric_criteria":
                return json.dumps(RUBRIC)
            case "rubric_image":
                return f"```json\n{json.dumps(reading)}\n```"
            case "rubric_process":
                return json.dumps(marks)
            case _:
                return f"Status: {next(votes)}"

    return answer


def parts_for(model: ScriptedModel, folder: Path | None = None, **config: object) -> JudgeParts:
    run_config = RunConfig.model_validate(config)
    prompts = load_prompts(run_config.prompts)
    return JudgeParts(
        config=run_config, model=CachedModel(model, namespace=prompts.checksum, folder=folder), prompts=prompts
    )


def trajectory(folder: Path, images: tuple[bytes, ...] = (b"a", b"b"), **fields: object) -> Trajectory:
    """A trajectory with one JPEG-like file per image content; `fields` are those of its record, its texts or itself."""
    paths = []
    for number, content in enumerate(images):
        path = folder / "trajectory" / f"step_{number:03d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(JPEG + content)
        paths.append(path)
    known = {
        "task": Task(task_id="t1", website="https://shop.example/", task="Buy the cheapest lamp"),
        "action_history": ("<Lamps link> -> CLICK", "<Buy button> -> CLICK"),
        "thoughts": ("SECRET THOUGHT",),
        "final_answer": "SECRET ANSWER",
        "screenshots": tuple(paths),
        "steps": (),
        "stop_reason": "finished",
        "max_steps": 15,
        "started_at": 0.0,
        "ended_at": 0.0,
        **fields,
    }
    attempt, texts = (
        model.model_validate({key: value for key, value in known.items() if key in model.model_fields})
        for model in (Attempt, Texts)
    )
    own = {key: value for key, value in known.items() if key in Trajectory.model_fields}
    assert not known.keys() - own.keys() - Attempt.model_fields.keys() - Texts.model_fields.keys()
    return Trajectory.model_validate({"folder": folder, "attempt": attempt, "texts": texts, **own})
