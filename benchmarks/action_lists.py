"""Plays random lists of actions, and the same actions one by one, on a page that changes under them.

    python benchmarks/action_lists.py [--lists 200] [--seed 7] [--per-attempt 12] [--minutes N]

The page has a form, rows with buttons, and buttons that open dialogs and tabs, reload or rename things. It renders its
rows in three ways: elements belong to their rows, are used again for other rows, or are made anew. A list is chosen for
the page as it is first shown. The oracle plays it one action per reply, finds each element by its row and name in the
next snapshot, and stops where the page is another one, a dialog or tab has opened, or the element is gone. A list is
right if it left the page in the oracle's state after as many actions. Exit code 1 if one is not.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.browser.hostile_site import hostile_site
from judge.browser.chromium import BrowserSettings
from judge.browser.pool import BrowserPool, browser_pool
from judge.config import RunConfig
from judge.episode.episode import Episode, EpisodeEnd
from judge.episode.part import AttemptStage
from judge.network.attempt import network_of
from judge.records.tasks import Task
from judge.store.layout import TaskStore
from judge.trajectory.redaction import Redaction
from shared.elements import ElementQuery, find_element
from shared.models import Action, ObservationMessage
from shared.protocol import parse_observation, render_reply
from shared.settings import Settings
from shared.snapshot import Snapshot, parse_snapshot

PAGE = """<!doctype html><title>Order</title><h1>Order</h1>
<form onsubmit="return false"><label>Name <input id=name></label> <label>Note <input id=note></label>
<label><input type=checkbox id=gift> Gift</label>
<label>Size <select id=size><option>Small<option>Large</select></label></form>
<ul id=rows></ul>
<button id=add>Add</button> <button id=swap>Swap</button> <button id=clear>Clear</button>
<button id=render>Render</button> <button id=save>Save</button>
<button id=ask>Ask</button> <button id=tab>Open</button> <button id=again>Reload</button>
<a href="/other">Other</a><p id=load></p><p id=state></p>
<script>
const MODE = new URLSearchParams(location.search).get("mode"), at = id => document.getElementById(id);
let rows = ["Chair", "Desk", "Lamp"].map(name => ({ name, count: 1 })), made = 0, saved = 0;
at("load").textContent = "load " + Math.random();
const row = item => { const e = document.createElement("li"); fill(e, item); return e; };
function fill(e, item) {
  if (!e.firstChild) e.innerHTML = "<span></span> <button>More</button> <button>Delete</button>";
  e.firstChild.textContent = item.name + " " + item.count;
  const [more, remove] = e.querySelectorAll("button");
  more.onclick = () => { item.count++; show(); };
  remove.onclick = () => { rows = rows.filter(each => each !== item); show(); };
  e.item = item;
}
function show() {
  const list = at("rows"), old = [...list.children];
  if (MODE === "reused") {
    rows.forEach((item, n) => old[n] ? fill(old[n], item) : list.append(row(item)));
    old.slice(rows.length).forEach(e => e.remove());
  } else if (MODE === "anew") list.replaceChildren(...rows.map(row));
  else {
    const kept = rows.map(item => old.find(e => e.item === item) || row(item));
    kept.forEach(e => fill(e, e.item));
    list.replaceChildren(...kept);
  }
  tell();
}
function tell() {
  const fields = ["name", "note", "size"].map(id => at(id).value);
  const told = [fields, at("gift").checked, rows.map(r => [r.name, r.count]), saved];
  at("state").textContent = "state " + JSON.stringify(told);
}
document.addEventListener("input", tell); document.addEventListener("change", tell);
at("add").onclick = () => { rows.unshift({ name: "Sofa" + ++made, count: 1 }); show(); };
at("swap").onclick = () => { rows.reverse(); show(); };
at("clear").onclick = () => { rows.pop(); show(); };
at("render").onclick = () => { at("rows").replaceChildren(); show(); };
at("save").onclick = e => { e.target.textContent = ++saved % 2 ? "Saved" : "Save"; tell(); };
at("ask").onclick = () => { if (confirm("Sure?")) saved += 10; tell(); };
at("tab").onclick = () => open("/other"); at("again").onclick = () => location.reload();
show();
</script>"""
OTHER = "<!doctype html><title>Other</title><h1>Other</h1><p>load other</p><button>Save</button>"
MODES = ("own", "reused", "anew")
_LOAD = re.compile(r"load [\w.]+")
_STATE = re.compile(r"state (\[.*\])")


class Intent(NamedTuple):
    """An action as a person means it: on an element of the page, or of one of its rows."""

    tool: str
    role: str
    name: str
    row: str = ""
    value: str = ""

    def on(self, page: Snapshot) -> Action | None:
        """The action on a page, if the element is there; a row is known by its first word."""
        if self.row:
            items = [item for item in page.find("listitem") if page.text_of(item).split()[:1] == [self.row]]
            if not items:
                return None
            inner = [node for node in page.subtree(items[0]) if node.role == self.role and node.name == self.name]
            ref = inner[0].ref if inner else None
        else:
            node = find_element(page, ElementQuery(role=self.role, name=self.name))
            # Not one whose name only contains this one.
            ref = node.ref if node is not None and node.name == self.name else None
        if ref is None:
            return None
        more: dict[str, Any] = {"text": self.value} if self.tool == "browser_type" else {}
        more |= {"values": [self.value]} if self.tool == "browser_select_option" else {}
        return Action(tool=self.tool, params={"target": ref, **more})


def intents(dice: random.Random) -> list[Intent]:
    """A random list, for the page as it is first shown."""
    known = [
        Intent("browser_type", "textbox", "Name", value=f"A{dice.randrange(9)}"),
        Intent("browser_type", "textbox", "Note", value=f"B {dice.randrange(9)}"),
        Intent("browser_click", "checkbox", "Gift"),
        Intent("browser_select_option", "combobox", "Size", value="Large"),
        *(
            Intent("browser_click", "button", name, row)
            for row in ("Chair", "Desk", "Lamp")
            for name in ("More", "Delete")
        ),
        *(Intent("browser_click", "button", name) for name in ("Add", "Swap", "Clear", "Render", "Save")),
    ]
    rare = [Intent("browser_click", "button", name) for name in ("Ask", "Open", "Reload")]
    rare.append(Intent("browser_click", "link", "Other"))
    return [dice.choice(rare if dice.random() < 0.08 else known) for _ in range(dice.randint(2, 6))]


@dataclass
class ListResult:
    """What a list and its oracle did. `states` are the oracle's page's, from before its first action."""

    mode: str
    intents: list[Intent]
    done: int = 0
    state: str | None = None
    feedback: str = ""
    states: list[str | None] = field(default_factory=list)
    why: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the list's page is the oracle's after as many actions."""
        # Under a dialog, or on another page, the state cannot be seen.
        seen = self.states[self.done] if self.done < len(self.states) else "never"
        return seen == self.state

    @property
    def allowed(self) -> int:
        """How many actions the oracle could execute."""
        return len(self.states) - 1


class Player:
    """Plays each list twice: as a list, and one by one. Its messages are an ordinary participant's."""

    def __init__(self, website: str, results: list[ListResult]) -> None:
        self._website = website
        self._results = results
        self._play = self._script()
        next(self._play)

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        return self._play.send(parse_observation(text, image, media_type))

    def _script(self) -> Generator[str, ObservationMessage, None]:
        message = yield ""
        for each in self._results:
            message = yield from self._opened(message, each.mode)
            page = parse_snapshot(message.page.snapshot)
            actions = [action for intent in each.intents if (action := intent.on(page))]
            assert len(actions) == len(each.intents), (each.intents, message.page.snapshot)
            message = yield render_reply(actions)
            each.done = message.executed[0] if message.executed else 0
            each.feedback = message.feedback or ""
            each.state = state_of(message)
            message = yield from self._opened(message, each.mode)
            first = message
            each.states.append(state_of(message))
            for intent in each.intents:
                action = intent.on(parse_snapshot(message.page.snapshot))
                each.why = stop_of(first, message) or ("gone" if action is None else "")
                if each.why or action is None:
                    break
                message = yield render_reply(action)
                each.states.append(state_of(message))
                if message.feedback:
                    each.why = "failed"
                    break
        yield render_reply(Action(tool="finish", params={"answer": "done"}))

    def _opened(self, message: ObservationMessage, mode: str) -> Generator[str, ObservationMessage, ObservationMessage]:
        while message.page.dialog is not None:
            message = yield render_reply(Action(tool="browser_handle_dialog", params={"accept": False}))
        while len(message.page.tabs) > 1:
            message = yield render_reply(Action(tool="browser_tabs", params={"action": "close", "index": 1}))
        message = yield render_reply(
            Action(tool="browser_navigate", params={"url": f"{self._website}order?mode={mode}"})
        )
        return message


def state_of(message: ObservationMessage) -> str | None:
    match = _STATE.search(message.page.snapshot.replace('\\"', '"'))
    return match[1] if match else None


def stop_of(first: ObservationMessage, now: ObservationMessage) -> str:
    """Why no further action may be executed, seen from outside."""
    if now.page.dialog is not None:
        return "dialog"
    if len(now.page.tabs) > 1:
        return "tab"
    loads = [_LOAD.findall(each.page.snapshot) for each in (first, now)]
    return "document" if loads[0] != loads[1] else ""


async def play(
    website: str, pool: BrowserPool, config: RunConfig, folder: Path, results: list[ListResult]
) -> EpisodeEnd:
    player = Player(website, results)
    task = Task(task_id="lists", website=website, task="Order.")

    @asynccontextmanager
    async def connected() -> AsyncIterator[Player]:
        yield player

    store = TaskStore(folder)
    store.begin()
    stage = AttemptStage(task, config, store, Redaction(salt=b"benchmark"), network_of(task, config))
    episode = Episode(stage, pool.browser, connected, observed=lambda _: None, stepped=lambda _: None)
    return await episode.run()


def times_of(end: EpisodeEnd) -> tuple[list[float], list[float]]:
    """Seconds of each step of a list after its first action, and of each step that is a reply of its own.

    Steps that only open the page or close tabs and dialogs are left out of both.
    """
    tools = {"browser_click", "browser_type", "browser_select_option"}
    sizes = Counter(step.of_reply for step in end.steps)
    items: list[float] = []
    single: list[float] = []
    for step in end.steps:
        if step.action is None or step.action.tool not in tools:
            continue
        seconds = step.timings.observe_s + step.timings.reply_s + step.timings.act_s
        (items if sizes[step.of_reply] > 1 else single).append(seconds)
    return items, single


async def measure(lists: int, seed: int, per_attempt: int, minutes: float) -> int:
    dice = random.Random(seed)
    results = [ListResult(dice.choice(MODES), intents(dice)) for _ in range(lists)]
    config = RunConfig.model_validate(
        {
            "max_actions": 6,
            "max_steps": 166,
            "judge_model": "offline",
            "task_timeout_s": 7200,
            "attempt_timeout_s": 20000,
        }
    )
    settings = BrowserSettings.from_config(config, Settings.from_environ())
    items: list[float] = []
    single: list[float] = []
    began = time.monotonic()
    with hostile_site({"/order": PAGE, "/other": OTHER}) as site, tempfile.TemporaryDirectory() as folder:
        async with browser_pool(settings) as pool:
            for at in range(0, lists, per_attempt):
                if time.monotonic() - began > 60 * minutes:
                    print(f"the time is up after {at} lists")
                    del results[at:]
                    break
                part = results[at : at + per_attempt]
                end = await play(site.url, pool, config, Path(folder) / str(at), part)
                if end.stop_reason != "finished":
                    print(f"an attempt ended with {end.stop_reason}: {end.error}")
                    return 1
                times = times_of(end)
                items += times[0]
                single += times[1]
                print(f"{at + len(part)} of {lists}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return print_summary(results, items, single)


def print_summary(results: list[ListResult], list_times: list[float], single: list[float]) -> int:
    wrong = [each for each in results if not each.is_right or each.done > each.allowed]
    early = [each for each in results if each.is_right and each.done < each.allowed]
    whole = [each for each in results if each.is_right and each.done == len(each.intents)]
    stopped = [each for each in results if each.is_right and each.done == each.allowed < len(each.intents)]
    modes, causes, delayed = (
        dict(Counter(names))
        for names in ((each.mode for each in results), (each.why for each in stopped), (each.mode for each in early))
    )
    print(f"lists: {len(results)} with {sum(len(each.intents) for each in results)} actions; modes: {modes}")
    print(f"executed to the end, same state: {len(whole)}")
    print(f"stopped where they must, same state: {len(stopped)} {causes}")
    print(f"stopped earlier than they had to, same state as far as executed: {len(early)} {delayed}")
    print(f"wrong: {len(wrong)}")
    for each in wrong[:10]:
        print(json.dumps([each.mode, each.intents, each.done, each.state, each.states, each.why, each.feedback]))
    for each in early[:10]:
        names = [f"{one.name} {one.row}".strip() for one in each.intents]
        print("early:", json.dumps([each.mode, names, each.done, each.feedback]))
    in_list, alone = sum(list_times) / len(list_times), sum(single) / len(single)
    counts = f"{len(list_times)} and {len(single)} actions"
    print(
        f"seconds per action: {in_list:.3f} in a list, {alone:.3f} one by one: ratio {in_list / alone:.2f} ({counts})"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--per-attempt", type=int, default=12)
    parser.add_argument("--minutes", type=float, default=1_000_000)
    arguments = parser.parse_args()
    sys.exit(asyncio.run(measure(arguments.lists, arguments.seed, arguments.per_attempt, arguments.minutes)))
