"""Shards of the demo of which one is killed and started again."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.ports import free_port
from helpers.runner.held_replay import HeldReplay, started_apart
from helpers.scenario.copies import scenario_on_free_ports

SHARDS = 2
VICTIM = "001-of-002"
# Of the demo, and what comes of them without shards: one for shard 0, and two short ones for shard 1, which is killed.
WHOLE = {
    "product_by_suggestion": (
        "success",
        ["<Search the shop combobox> -> TYPE: harbour", "<Harbour Desk Lamp option> -> CLICK", "<page> -> FINISH"],
    ),
    "deal_of_the_day": ("success", ["<See today's deal link> -> CLICK", "<page> -> FINISH"]),
    "return_an_item": (
        "success",
        [
            "<How to return an item: the form link> -> CLICK",
            "<navigation> -> BACK",
            "<Returns and refunds link> -> CLICK",
            "<page> -> FINISH",
        ],
    ),
}


@dataclass
class Bench:
    """Three tasks of the demo, whose site and participant are up. The second one of shard 1 ends when it is let."""

    scenario: Path
    temp: Path
    folder: Path
    participant: HeldReplay


def outcomes(results: Path) -> dict[str, Any]:
    document = [json.loads(path.read_text()) for path in results.glob("*/result.json")]
    return {result["task_id"]: (result["verdict"], result["action_history"]) for result in document}


def trajectories(results: Path) -> dict[str, str]:
    return {
        path.parent.name: json.loads(path.read_text())["trajectory_sha256"] for path in results.glob("*/result.json")
    }


@contextmanager
def a_bench(folder: Path) -> Iterator[Bench]:
    """The bench, with its files in a folder."""
    temp = Path("/tmp") / f"wabe-int-{free_port()}"
    path = scenario_on_free_ports("demo", folder)
    head, *tasks = path.read_text().split("[[tasks]]")
    selection = [task for task in tasks if re.findall(r'task_id = "(.*)"', task)[0] in WHOLE]
    # All shards share participant and site, so none of them may start them.
    with started_apart(temp, "[[tasks]]".join([head, *selection]), held_text="return") as (text, participant):
        path.write_text(text)
        yield Bench(path, temp, folder, participant)
    shutil.rmtree(temp, ignore_errors=True)
