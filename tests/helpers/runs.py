"""Synthetic runs on disk, written by the very stores that real runs use."""

import json
import random
import struct
import zlib
from pathlib import Path
from typing import Any, get_args

from judge.records.steps import Outcome, Step, StopReason, Timings
from judge.records.tasks import Task
from judge.records.verdicts import ImageScore, JudgeInfo, TaskOutcome, Verdict
from judge.store.layout import RUN_SCHEMA, RunStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Attempt
from shared.models import Action, Page, TokenUsage

BEGAN = 1_760_000_000.0
JUDGE_ID = "webjudge-0123456789ab"
JUDGE = JudgeInfo(
    method="webjudge",
    model="gemini:gemini-3-flash-preview",
    prompt_set="default",
    prompt_version="1",
    prompt_checksum="c0ffee",
    threshold=3,
    package_version="0.1.0",
    code_checksum="beef",
)
SNAPSHOT = """- main [ref=e2] [box=0,0,1280,2000]:
  - heading "Lamps" [level=1] [ref=e3] [box=48,96,400,40]
  - searchbox "Search" [ref=e4] [box=48,150,420,36]
  - button "Search" [ref=e5] [cursor=pointer] [box=480,150,96,36]
  - link "Reading lamp" [ref=e6] [cursor=pointer] [box=48,240,260,180]
  - link "Far below" [ref=e7] [cursor=pointer] [box=48,1400,260,24]
"""
_MOVES = (
    ("browser_type", "e4", "<Search searchbox> -> TYPE: reading lamp"),
    ("browser_click", "e5", "<Search button> -> CLICK"),
    ("browser_click", "e6", "<Reading lamp link> -> CLICK"),
    ("browser_click", "e7", "<Far below link> -> CLICK"),
)
_SITES = ("https://lamps.example/", "https://www.maps.example/", "https://books.example:8443/start")
_ENDS: dict[str, StopReason] = {"aborted": "environment_fault", "success": "finished", "unscored": "finished"}


def a_png(width: int = 320, height: int = 180, tint: int = 0) -> bytes:
    """A small picture of a page: a bar, a heading, a field with a button, cards. Valid PNG."""
    scale = width / 1280
    paper, ink, blue = bytes((250, 250, 252)), bytes((60, 64, 72)), bytes((40 + tint % 160, 90, 170))

    def row(*spans: tuple[int, int, bytes]) -> bytes:
        pixels = bytearray(paper * width)
        for start, end, colour in spans:
            left, right = min(width, int(start * scale)), min(width, int(end * scale))
            pixels[3 * left : 3 * right] = colour * (right - left)
        return b"\0" + bytes(pixels)

    kinds = {
        "bar": row((0, 1280, blue)),
        "head": row((48, 448, ink)),
        "field": row((48, 468, bytes((225, 228, 235))), (480, 576, blue)),
        "cards": row(*((48 + 300 * n, 308 + 300 * n, bytes((214, 220 - 9 * n, 232))) for n in range(4))),
        "none": row(),
    }
    bands = (("bar", 0, 64), ("head", 96, 136), ("field", 150, 186), ("cards", 240, 420), ("cards", 460, 640))
    rows = [next((kind for kind, top, end in bands if top <= y / scale < end), "none") for y in range(height)]

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(kinds[kind] for kind in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def write_task(
    store: RunStore,
    task: Task,
    outcome: TaskOutcome = "success",
    *,
    steps: int = 4,
    image: bytes | None = None,
    says: str = "I look for the reading lamp.",
    stop_reason: StopReason | None = None,
    cost_usd: float | None = 0.0125,
    seed: int = 0,
    has_final_look: bool = False,
) -> Attempt:
    """Write one task with screenshots, snapshots, steps, verdict, result. `says` is the participant's text."""
    rng = random.Random(seed)
    place = store.task(task.task_id)
    place.begin()
    lines = []
    for index in range(steps):
        lines.append(_step(index, steps, task, place.write_page(index, _page(task, index, image)), says, rng))
        place.append_step(lines[-1])
    final_look = None
    if has_final_look:
        page = _page(task, steps, image)
        final_look = Step(index=steps, url=page.url, title=page.title, **place.write_final_page(page))
    stop = stop_reason or _ENDS.get(outcome, rng.choice(("finished", "finished", "max_steps")))
    verdict = None if outcome == "aborted" else _verdict(outcome, steps, says, cost_usd, rng)
    began = BEGAN + 40 * seed
    lasted = sum(sum(step.timings.model_dump().values()) for step in lines)
    result = Attempt(
        task=task,
        steps=tuple(lines),
        final_look=final_look,
        stop_reason=stop,
        max_steps=15,
        final_answer=says if stop == "finished" else None,
        error="the browser is gone" if outcome == "aborted" else None,
        blame="browser" if outcome == "aborted" else None,
        verdict=verdict,
        started_at=began,
        ended_at=began + lasted + 1.4,
        judge_s=2.5 if verdict else None,
        versions={"browser": "Chromium 156", "mcp_server": "1.65.2"},
    )
    place.write_result(result.to_json())
    if verdict is not None:
        judged = load_trajectory(place.folder).sha256
        place.write_verdict(JUDGE_ID, verdict.model_copy(update={"trajectory_sha256": judged}))
    return result


def write_synthetic_run(
    output_dir: Path,
    run_id: str = "20260101-000000-demo",
    *,
    tasks: int = 8,
    steps: int = 4,
    seed: int = 0,
    says: str = "I look for the reading lamp.",
    image: bytes | None = None,
    role: str = "white_agent",
    cost_usd: float | None = 0.0125,
) -> RunStore:
    """A whole run: every outcome occurs when there are at least five tasks. The same seed gives the same run.

    Only `task_001` has a final look.
    """
    rng = random.Random(seed)
    store = RunStore(output_dir, run_id)
    store.create()
    known = get_args(TaskOutcome)
    picture = image or a_png(tint=seed)
    results = []
    for number in range(tasks):
        task = Task(
            task_id=f"task_{number:03d}",
            website=_SITES[number % len(_SITES)],
            task=f"Find lamp number {number} with a warm light below 40 dollars and put it into the cart.",
            level=("easy", "medium", "hard")[number % 3],
            reference_length=rng.randint(2, 12) if number % 7 else None,
        )
        outcome = known[number] if number < 4 else rng.choices(known, (50, 40, 4, 4))[0]
        results.append(
            write_task(
                store,
                task,
                outcome,
                steps=steps,
                image=picture,
                says=says,
                cost_usd=cost_usd,
                seed=seed + number,
                has_final_look=number == 1,
            )
        )
    store.write_run(a_run_record(store, results, role))
    return store


# What a run's files hold that is not free text: ids, paths, enumerations, times.
_FIXED = frozenset(
    {"schema_version", "run_id", "task_id", "level", "stop_reason", "verdict", "verdict_of_judge", "outcome", "status"}
    | {"screenshot", "snapshot", "started_at", "ended_at", "resumed_at", "target", "tool", "judge_id", "state"}
)


def say_everywhere(store: RunStore, text: str) -> None:
    """Put `text` in the place of every free text of the run: page titles, addresses, action lines, errors, reasons."""
    for path in (
        *store.folder.glob("*.json"),
        *store.results.glob("*/result.json"),
        *store.results.glob("*/verdicts/*"),
    ):
        value = json.loads(path.read_text())
        path.write_text(json.dumps(_saying(value, text)))


def _saying(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {
            key: item if key in _FIXED and not isinstance(item, dict) else _saying(item, text)
            for key, item in value.items()
            if key != "task_ids"
        }
    if isinstance(value, list):
        return [_saying(item, text) for item in value]
    return text if isinstance(value, str) else value


def a_run_record(store: RunStore, results: list[Attempt], role: str = "white_agent") -> dict[str, Any]:
    """What a judge writes to `run.json`."""
    return {
        "schema_version": RUN_SCHEMA,
        "run_id": store.run_id,
        "state": "completed",
        "started_at": BEGAN,
        "resumed_at": None,
        "ended_at": BEGAN + 600,
        "participants": {role: "http://127.0.0.1:9019"},
        "config": {"max_steps": 15, "max_parallel": 4, "judge_model": JUDGE.model},
        "config_checksum": "ab12",
        "task_ids": [result.task.task_id for result in results],
        "task_set_checksum": "cd34",
        "judge_model": JUDGE.model,
        "judge_id": JUDGE_ID,
        "packages": {"wabe": "0.1.0", "playwright": "1.65.2"},
        "judge": JUDGE.model_dump(mode="json"),
    }


def _page(task: Task, index: int, image: bytes | None) -> Page:
    return Page(
        url=f"{task.website}page/{index}",
        title=f"Page {index}",
        snapshot=SNAPSHOT,
        screenshot=image or a_png(tint=index),
        media_type="image/jpeg" if image and image.startswith(b"\xff\xd8") else "image/png",
    )


def _step(index: int, steps: int, task: Task, files: dict[str, Any], says: str, rng: random.Random) -> Step:
    tool, ref, line = _MOVES[index % len(_MOVES)]
    outcome = Outcome(ok=True, message="done", line=line)
    action = Action(tool=tool, params={"element": says, "target": ref}, thought=says)
    if index == steps - 1:
        action = Action(tool="finish", params={"answer": says}, thought=says)
        outcome = Outcome(ok=True, line="<page> -> FINISH")
    elif rng.random() < 0.1:
        outcome = Outcome(ok=False, message="the element is covered by another one")
    return Step(
        index=index,
        url=f"{task.website}page/{index}",
        title=f"Page {index}",
        **files,
        reply=f'<json>{{"thought": "{says}", "tool": "{tool}"}}</json>',
        action=action,
        outcome=outcome,
        timings=Timings(observe_s=rng.uniform(0.1, 0.4), reply_s=rng.uniform(0.5, 6), act_s=rng.uniform(0.1, 0.9)),
    )


def _verdict(outcome: TaskOutcome, steps: int, says: str, cost_usd: float | None, rng: random.Random) -> Verdict:
    points = ("A lamp with a warm light is chosen.", "Its price is below 40 dollars.", "It is in the cart.")
    scores = tuple(
        ImageScore(Response=f"The page shows lamps ({index}).\nScore: {score}", Score=score)
        for index, score in enumerate(rng.choices((1, 2, 3, 4, 5), (10, 20, 25, 25, 20), k=steps))
    )
    points_met = [outcome == "success", True, outcome == "success"]
    calls = [
        {"stage": "key_points", "prompt": "List the key points.", "images": [], "reply": "1. …", "asked_again": False}
    ]
    calls += [
        {"stage": "image", "prompt": f"Rate this.\nTask: {says}", "images": ["x"], "reply": score.Response}
        for score in scores
    ]
    return Verdict(
        outcome=outcome if outcome in ("success", "failure") else "unscored",
        reason="Every key point is met." if outcome == "success" else "The lamp is not in the cart.",
        judge=JUDGE,
        key_points=points,
        image_judge_record=scores,
        evidence={
            "key_points": [
                {"key_point": point, "status": "success" if is_met else "failure", "reason": "as the screenshots show"}
                for point, is_met in zip(points, points_met, strict=True)
            ],
            "systems": {"image": "You rate screenshots."},
            "calls": calls,
        },
        token_usage=TokenUsage(calls=len(calls), input=1200 * len(calls), output=80 * len(calls)),
        cost_usd=cost_usd,
    )
