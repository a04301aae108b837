"""Made-up trajectories for benchmarks: distinct images of a usual size, no browser."""

import json
import random
from pathlib import Path

from judge.records.steps import Outcome, Step
from judge.records.tasks import Task
from judge.trajectory.record import OLDER_RESULT_SCHEMAS, Attempt

JPEG_HEAD = b"\xff\xd8\xff\xe0"


def make_trajectory(parent: Path, name: str, *, screenshots: int, image_bytes: int = 65_536) -> Path:
    """One finished episode of our own layout. The same name gives the same bytes."""
    folder = parent / name
    (folder / "trajectory").mkdir(parents=True)
    noise = random.Random(name)
    steps = []
    for index in range(screenshots):
        path = f"trajectory/step_{index:03d}.jpg"
        (folder / path).write_bytes(JPEG_HEAD + noise.randbytes(image_bytes))
        outcome = Outcome(ok=True, line=f"<Item {index} link> -> CLICK")
        url = "https://shop.example/"
        steps.append(Step(index=index, url=url, title="Shop", screenshot=path, outcome=outcome))
    attempt = Attempt(
        task=Task(task_id=name, website="https://shop.example/", task=f"Put item {name} into the cart"),
        steps=tuple(steps),
        stop_reason="finished",
        max_steps=max(1, screenshots),
        started_at=0.0,
        ended_at=1.0,
    )
    # An older version's result: its files need no digests.
    result = attempt.to_json() | {"schema_version": OLDER_RESULT_SCHEMAS[-1]}
    (folder / "result.json").write_text(json.dumps(result))
    return folder
