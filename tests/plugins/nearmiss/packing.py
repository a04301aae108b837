"""A list of things to pack, as a website that exists only here: it plays walks, and records them as the judge does.

Things are added, which is written each time, and marked, which is the same however often. The server keeps both.
"""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.trajectory.recordings import SHOP, RecordedRequest, RecordedStep, recorded_attempt
from judge.plugins.nearmiss.recordings import Recorded
from judge.plugins.nearmiss.walks import BACK, NAVIGATE, RIGHT, ScriptedWalk
from judge.trajectory.fetched import Fetched
from judge.trajectory.record import Trajectory
from shared.elements import ElementQuery, find_element
from shared.files import write_json
from shared.snapshot import parse_snapshot

THINGS = ("Rope", "Lantern", "Anchor", "Compass")
START = f"{SHOP}/list"
_numbers = itertools.count(1)


class PackingList:
    """The state on the server, and what a browser shows of it."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self.marked: set[str] = set()

    @property
    def state(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """What the server keeps; the order in which things were added is part of it."""
        return tuple(self.added), frozenset(self.marked)

    def snapshot(self) -> str:
        """The page, with a number of visitors that is another one each time."""
        lines = ["- main [ref=e1]:", f"  - paragraph: visitor {next(_numbers)}", "  - list [ref=e2]:"]
        for number, thing in enumerate(THINGS):
            lines += ["    - listitem:", f'      - button "Add {thing}" [ref=e{10 + number}]']
            lines += [f'      - button "Mark {thing}" [ref=e{20 + number}]']
        lines += ['  - list "Packed":', *(f"    - listitem: {thing}" for thing in self.added)]
        return "\n".join([*lines, f"  - status: {len(self.marked)} marked"])

    def press(self, name: str) -> RecordedRequest:
        """Press a button, with a request that has a random field."""
        what, _, thing = name.partition(" ")
        nonce = f'"nonce": "{next(_numbers)}"'
        if what == "Add":
            self.added.append(thing)
            return RecordedRequest(
                path="/api/things", post=f'{{"name": "{thing}", {nonce}}}', response=f'{{"things": {len(self.added)}}}'
            )
        self.marked.add(thing)
        return RecordedRequest(
            method="PATCH", path=f"/api/things/{thing}", post=f'{{"marked": true, {nonce}}}', response='{"ok": true}'
        )


def script(*buttons: str, answer: str = "Done.") -> tuple[dict[str, Any], ...]:
    """The script that presses these buttons."""
    pressed = [{"tool": "browser_click", "role": "button", "name": name} for name in buttons]
    return (*pressed, {"tool": "finish", "params": {"answer": answer}})


def play(
    folder: Path,
    steps: Sequence[dict[str, Any]],
    checks: Sequence[dict[str, Any]] = (),
    *,
    declares_state: bool = False,
) -> tuple[Trajectory, Any]:
    """The recording of a walk, and what the server has in the end, which an address of its own may say."""
    site, recorded, answer = PackingList(), list[RecordedStep](), "I could not find it."
    for step in steps:
        snapshot = site.snapshot()
        if step["tool"] in (NAVIGATE, BACK):
            load = RecordedRequest(path="/api/look", post='{"op": "look"}', response="{}")
            recorded.append(RecordedStep(path="/list", snapshot=snapshot, tool=step["tool"], line="", requests=(load,)))
            continue
        if step["tool"] == "finish":
            answer = step["params"]["answer"]
            recorded.append(RecordedStep(path="/list", snapshot=snapshot, tool="finish"))
            break
        query = ElementQuery(role=step["role"], name=step.get("name"), nth=step.get("nth", 0))
        node = find_element(parse_snapshot(snapshot), query)
        if node is None:
            recorded.append(RecordedStep(path="/list", snapshot=snapshot, tool="finish"))
            break
        line, refs = f"<{node.name} button> -> CLICK", (node.ref or "",)
        request = site.press(node.name)
        recorded.append(RecordedStep(path="/list", snapshot=snapshot, line=line, refs=refs, requests=(request,)))
    body = json.dumps({"added": site.added, "seen": next(_numbers)})
    fetched = (Fetched(url="/state", status=200, type="application/json", body=body),) if declares_state else ()
    task = {"website": START, "task": "Pack it all.", "task_id": "pack"}
    about: dict[str, Any] = {"fetched": fetched, **task}
    trajectory = recorded_attempt(folder, list(checks), recorded, answer, **about)
    return trajectory, site.state


def walk_of(steps: Sequence[dict[str, Any]], name: str = f"{RIGHT}-1", operator: str = RIGHT) -> ScriptedWalk:
    """A walk with these steps."""
    return ScriptedWalk(walk_id=name, task_id="pack", operator=operator, steps=tuple(steps), reference="0")


def played(
    folder: Path, walk: ScriptedWalk, checks: Sequence[dict[str, Any]] = (), *, declares_state: bool = False
) -> Recorded:
    """The walk as it was recorded."""
    trajectory, _ = play(folder / walk.walk_id, walk.steps, checks, declares_state=declares_state)
    write_json(trajectory.folder / "result.json", trajectory.attempt.to_json())
    return Recorded(walk, trajectory.folder)
