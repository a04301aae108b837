"""Folders as webeval leaves them, in both dialects of its log and both numberings of its screenshots."""

import json
from pathlib import Path
from typing import Any

from helpers.results import JPEG

ACTIONS: tuple[dict[str, Any], ...] = (
    {"action": "visit_url", "url": "https://shop.test/"},
    {"action": "left_click", "coordinate": [40, 50.4]},
    {"action": "type", "coordinate": [40, 50], "text": "tent <b>", "press_enter": True},
    {"action": "terminate", "status": "success"},
)
THOUGHTS = ("Open the shop.", "The box.", "Search.", "The cheapest tent costs 80 euros.")
TASK = {"id": "Shop--0", "web": "https://shop.test/", "ques": "Find the cheapest tent"}


def message_event(number: int, action: dict[str, Any]) -> dict[str, Any]:
    """An action of the dialect of messages."""
    text = f"\nThought #{number}: {THOUGHTS[number - 1]}\nAction #{number}: executing tool '{action['action']}'"
    return {"message": f"{text} with arguments {json.dumps(action)}", "timestamp": "t", "type": "OtherEvent"}


def structured(number: int, action: dict[str, Any], source: str = "FaraAgent") -> dict[str, Any]:
    """An action of the dialect of events: the function call wraps the action."""
    arguments = {**action, "thoughts": THOUGHTS[number - 1]}
    return {
        "timestamp": "t",
        "type": "WebSurferEvent",
        "source": source,
        "message": f"computer_use( {json.dumps(arguments)} )",
        "url": "https://shop.test/",
        "action": "computer_use",
        "arguments": arguments,
    }


def write_webeval(
    folder: Path,
    *,
    dialect: str = "structured",
    first: int = 0,
    answer: dict[str, Any] | None = None,
    log: list[Any] | None = None,
    task_file: bool = True,
) -> Path:
    """One task's folder: screenshots numbered from 0 (one more than actions) or from 1."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"screenshot{number}.png" for number in range(first, len(ACTIONS) + 1)]
    for name in names:
        (folder / name).write_bytes(JPEG + name.encode())
    make = structured if dialect == "structured" else message_event
    lines: list[Any] = [event for n, action in enumerate(ACTIONS, 1) for event in (make(n, action), observed(n))]
    (folder / "web_surfer.log").write_text(
        "".join(f"{json.dumps(line)}\n" for line in (log if log is not None else lines))
    )
    document = {
        "final_answer": THOUGHTS[-1],
        "env_state_json": "<no_answer>",
        "env_state_raw": "<no_answer>",
        "screenshots": names,
        "is_aborted": False,
        "is_rel_paths": True,
        "token_usage": {
            "FaraAgent": {"prompt_tokens": 100, "completion_tokens": 20},
            "answer": {"prompt_tokens": 5, "completion_tokens": 1},
        },
    }
    (folder / f"{folder.name}_final_answer.json").write_text(json.dumps({**document, **(answer or {})}))
    times = {"start_time": 1_700_000_000.0, "end_time": 1_700_000_090.5, "duration": 90.5}
    (folder / "times.json").write_text(json.dumps(times))
    if task_file:
        (folder / "task.json").write_text(json.dumps({"task": TASK["ques"], "website": TASK["web"]}))
    return folder


def observed(number: int) -> dict[str, Any]:
    return {"message": f"Observation#{number}: I did it.", "timestamp": "t", "type": "OtherEvent"}


def write_score(folder: Path, name: str, score: Any, text: Any = "Status: success") -> None:
    """A score of one of webeval's evaluators."""
    (folder / "scores").mkdir(exist_ok=True)
    (folder / "scores" / f"{name}.json").write_text(json.dumps({"score": score, "gpt_response_text": text}))
