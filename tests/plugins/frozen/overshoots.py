"""Tasks on which one can go further than the recording does, and ways that do: each loses on the live site."""

import json
import random
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from helpers.browser.sessions import browser_settings
from helpers.episode.offline_judge import play_scenario
from helpers.network.served_sites import Addresses, Answer, Channel, Handler, Request
from helpers.ports import free_ports
from judge.browser.pool import browser_pool
from judge.config import RunConfig
from judge.environment.errors import EpisodeFault
from judge.environment.rewards import reward_of
from judge.records.tasks import Task
from judge.scenario.frozen import on_archives
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from participants.base import Decide, Observation, per_attempt
from participants.replay import Script, ScriptStep
from plugins.frozen.archives import Recorder, recording
from plugins.frozen.hard.case import Case, Step, Walk, as_json, follow, html
from plugins.frozen.hard.playing import play, scripted
from plugins.frozen.hard.site import running
from plugins.frozen.hard.walks import policy_for
from shared.replies import FINISH

_PAGE = """<!doctype html><title>{title}</title><h1>{title}</h1>{body}
<p><a href="/over/about">About</a></p><script>{script}</script>"""
_JSON = """const sent = (method, url, body) => fetch(url, {method, body: JSON.stringify(body), headers: {
  "Content-Type": "application/json"}});\n"""

_SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"

[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"

[[sites]]
name = "over"
endpoint = "{own}"

[config]
max_parallel = 2
judge_model = "offline"
"""
_TASK = """
[[tasks]]
task_id = "{name}"
website = "{own}/over/{page}"
task = "Do {name}."
checks = [{check}]
"""


class Overshoot(NamedTuple):
    """A task: its page, what is done once too often, and the check, which holds after it was done once."""

    page: str
    act: Step
    check: Mapping[str, Any]
    # Where a document shows what was done; else the page itself.
    then: str = ""


def _click(role: str, name: str) -> Step:
    return Step("browser_click", "", role, name)


TASKS: Mapping[str, Overshoot] = MappingProxyType(
    {
        "more": Overshoot("more", _click("button", "More"), {"kind": "element", "element": "listitem", "count": 4}),
        "cart": Overshoot("cart", _click("button", "Add"), {"kind": "text", "contains": "In cart: 1"}),
        "code": Overshoot("code", _click("button", "Apply"), {"kind": "text", "contains": "Discount applied"}),
        "seat": Overshoot("seat", _click("button", "Reserve"), {"kind": "text", "contains": "Seat is reserved"}),
        "chat": Overshoot("chat", _click("button", "Send"), {"kind": "text", "contains": "Messages: 1"}),
        "tips": Overshoot("tips", _click("button", "Next tip"), {"kind": "text", "contains": "Tip 1"}),
        "list": Overshoot(
            "list", _click("link", "Next"), {"kind": "text", "contains": "lamp 1-1"}, "list?type=lamp&page=1"
        ),
        "rows": Overshoot("rows", _click("button", "Delete"), {"kind": "element", "element": "listitem", "count": 2}),
    }
)


def _shown(title: str, body: str, script: str = "") -> Answer:
    return html(_PAGE.format(title=title, body=body, script=script))


def _asks(request: Request, name: str) -> int:
    """How often something was asked for in this session, this time included."""
    request.session[name] = request.session.get(name, 0) + 1
    count: int = request.session[name]
    return count


async def _about(_: Request) -> Answer:
    return _shown("About", "<p>About us</p>")


async def _more(_: Request) -> Answer:
    script = """let page = 1; b.onclick = async () => { const got = await fetch("/over/items?page=" + ++page);
    if (got.ok) l.innerHTML += (await got.json()).map(each => "<li>" + each).join(""); };"""
    return _shown("More", "<ul id=l><li>item 1<li>item 2</ul><button id=b>More</button>", script)


async def _items(request: Request) -> Answer:
    last = 2 * int(request.query["page"])
    return as_json([f"item {last - 1}", f"item {last}"])


async def _cart(request: Request) -> Answer:
    if request.method == "POST":
        return as_json({"count": _asks(request, "cart")})
    script = """b.onclick = async () => { const got = await sent("POST", "/over/cart", {count: +n.textContent + 1});
    if (got.ok) n.textContent = (await got.json()).count; };"""
    body = f"<p>In cart: <span id=n>{request.session.get('cart', 0)}</span></p><button id=b>Add</button>"
    return _shown("Cart", body, _JSON + script)


async def _code(request: Request) -> Answer:
    turn = _asks(request, "code") if request.method == "POST" else request.session.get("code", 0)
    text = ("No discount", "Discount applied", "Refused: used before")[min(2, turn)]
    hidden = f"<input type=hidden name=turn value={turn}>"
    return _shown("Code", f"<p>{text}</p><form method=post>{hidden}<button>Apply</button></form>")


async def _seat(request: Request) -> Answer:
    if request.method == "PUT":
        return as_json({}, 200 if _asks(request, "seat") == 1 else 409)
    script = """b.onclick = async () => { s.textContent = "reserved";
    if ((await sent("PUT", "/over/seat", {})).status === 409) s.textContent = "lost"; };"""
    state = ("free", "reserved", "lost")[min(2, request.session.get("seat", 0))]
    return _shown("Seat", f"<p>Seat is <span id=s>{state}</span></p><button id=b>Reserve</button>", _JSON + script)


async def _chat(request: Request) -> Answer:
    script = """let said = 0; const line = new WebSocket("ws://" + location.host + "/over/line");
    line.onmessage = heard => n.textContent = heard.data; b.onclick = () => line.send("hello " + ++said);"""
    body = f"<p>Messages: <span id=n>{request.session.get('chat', 0)}</span></p><button id=b>Send</button>"
    return _shown("Chat", body, script)


async def _line(channel: Channel, request: Request) -> None:
    while await channel.receive() is not None:
        await channel.send(str(_asks(request, "chat")))


async def _tips(request: Request) -> Answer:
    script = """b.onclick = async () => { const got = await fetch("/over/tip?n=" + (+n.textContent + 1));
    if (got.ok) n.textContent = await got.text(); };"""
    body = f"<p>Tip <span id=n>{request.cookies.get('tip', '0')}</span></p><button id=b>Next tip</button>"
    return _shown("Tips", body, script)


async def _tip(request: Request) -> Answer:
    number = request.query["n"]
    return Answer(number).with_headers(("Set-Cookie", f"tip={number}; Path=/"))


async def _list(request: Request) -> Answer:
    kind, number = request.query.get("type", "all"), int(request.query.get("page", 0))
    items = "".join(f"<li>{kind} {number}-{place}" for place in (1, 2))
    return _shown("List", f'<ul>{items}</ul><a href="/over/list?type=lamp&page={number + 1}">Next</a>')


async def _rows(request: Request) -> Answer:
    rows = request.session.setdefault("rows", [1, 2, 3])
    if request.method == "DELETE":
        rows.remove(int(request.path.rpartition("/")[2]))
        return as_json({})
    script = """b.onclick = async () => { const [, row] = l.firstElementChild.textContent.split(" ");
    if ((await sent("DELETE", "/over/rows/" + row)).ok) l.firstElementChild.remove(); };"""
    items = "".join(f"<li>row {row}" for row in rows)
    return _shown("Rows", f"<ul id=l>{items}</ul><button id=b>Delete</button>", _JSON + script)


_PAGES: Mapping[str, Handler] = {
    "about": _about, "more": _more, "items": _items, "cart": _cart, "code": _code, "seat": _seat, "chat": _chat,
    "tips": _tips, "tip": _tip, "list": _list, "rows": _rows, "rows/*": _rows,
}  # fmt: skip
CASE = Case(
    "over",
    "a site on which more can be done than is recorded",
    "",
    {f"/over/{path}": handler for path, handler in _PAGES.items()},
    (),
    (),
    {"/over/line": _line},
)


def ways(own: str) -> dict[str, dict[str, Walk]]:
    """By name of the way, how each task is played: the right one, which is recorded, another, and five too far."""
    about, back = follow("About", ""), Step("browser_navigate_back", "")

    def walks(task: Overshoot) -> dict[str, Walk]:
        act, go = task.act, Step("browser_navigate", "", params={"url": f"{own}/over/{task.then or task.page}"})
        return {
            "right": (act,),
            "by way of": (act, about, go),
            "once": (act, act),
            "twice": (act, act, act),
            "reload": (act, act, go),
            "history": (act, act, about, back),
            "links": (act, act, about, go),
        }

    by_task = {name: walks(task) for name, task in TASKS.items()}
    return {way: {name: each[way] for name, each in by_task.items()} for way in by_task["more"]}


def random_walks(own: str, count: int, seed: int) -> dict[str, Walk]:
    """So many walks of one to seven steps: what may be done too often, links and back. By task and number."""
    dice, known = random.Random(seed), ways(own)
    walks: dict[str, Walk] = {}
    for number in range(count):
        name = dice.choice(list(TASKS))
        steps = (*known["links"][name], known["history"][name][-1])
        walks[f"{name}-{number}"] = tuple(dice.choices(steps, k=dice.randint(1, 7)))
    return walks


def addresses() -> Addresses:
    """Free ports, without TLS: live browsers trust no authority of a test."""
    own, closed = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    return Addresses(own, own, closed)


async def recorded_site(places: Addresses, path: Path, names: Iterable[str]) -> None:
    """Record the right way of these tasks, each in two plays."""
    recorder, right = Recorder(), ways(places.own)["right"]
    async with browser_pool(browser_settings()) as pool:
        with running(places, None, [CASE]):
            for name in names:
                task = Task(task_id=name, website=f"{places.own}/over/{TASKS[name].page}", task=f"Do {name}.")
                for is_again in (False, True):
                    async with recording(pool, policy_for(places), recorder, task, is_again=is_again) as browser:
                        await play(browser, task, scripted(_script(right[name])), limit=2)
    recorder.saved(path)


def _script(steps: Walk) -> Script:
    actions = [ScriptStep(tool=step.tool, role=step.role, name=step.name, params=dict(step.params)) for step in steps]
    return Script(task="way", steps=(*actions, ScriptStep(tool=FINISH, params={"answer": "Done."})))


def _scenario(places: Addresses, folder: Path, names: Iterable[str], archive: Path | None) -> Scenario:
    tasks = "".join(
        _TASK.format(name=name, own=places.own, page=task.page, check=_toml(task.check))
        for name in names
        for task in [TASKS[name.partition("-")[0]]]
    )
    (folder / "scenario.toml").write_text(_SCENARIO.format(own=places.own) + tasks, encoding="utf-8")
    scenario = load_scenario(folder / "scenario.toml")
    return on_archives(scenario, archive) if archive else scenario


def _toml(check: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in check.items()) + " }"


async def played(
    places: Addresses, folder: Path, walks: Mapping[str, Walk], archive: Path | None = None
) -> dict[str, Trajectory]:
    """The tasks, each played in its way and judged: on the site itself, or on an archive of it.

    A task may be played several times, with a number in its name: `cart-2`.
    """

    def begin(first: Observation) -> Decide:
        return scripted(_script(walks[first.instruction.split()[1].rstrip(".")]))

    folder.mkdir()
    scenario = _scenario(places, folder, walks, archive)
    with nullcontext() if archive else running(places, None, [CASE]):
        await play_scenario(scenario, per_attempt(begin), folder)
    return {path.parent.name: load_trajectory(path.parent) for path in folder.glob("runs/*/results/*/result.json")}


def earned(trajectory: Trajectory) -> tuple[float, float]:
    """The rewards of an attempt: for its outcome, and for its progress. An error is none."""

    def reward(kind: Literal["outcome", "progress"]) -> float:
        with suppress(EpisodeFault):
            return reward_of(trajectory.attempt, trajectory.folder, RunConfig(reward=kind))
        return 0.0

    return reward("outcome"), reward("progress")
