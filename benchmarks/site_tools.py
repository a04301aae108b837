"""Plays 12 tasks at the demo shop by clicks and by its own tools (WebMCP), right and wrong, in the three modes.

    python benchmarks/site_tools.py [--settle page-time|real-time] [--jobs N] [--only TASK…] [--markdown FILE]

`off` plays clicks, `only` plays calls of the shop's tools, and `offer` plays clicks where something is looked for and
calls where it is put into the cart. `only, with the bug` plays the right calls at the shop whose `add_to_cart` always
adds one piece. A wrong walk differs in one value. A row passes if the checks decide as they must: right walks succeed,
wrong ones fail, and with the bug exactly those tasks fail that need more than one piece. Exit code 1 if a row does not.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import BrowserPool, browser_pool
from judge.config import RunConfig, SiteToolsMode
from judge.episode.episode import Episode
from judge.evaluators.checks import evaluate
from judge.network.attempt import network_of
from judge.records.tasks import Task
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.redaction import Redaction
from participants.replay import Player, Script, ScriptStep
from shared.concurrency import for_each
from shared.protocol import parse_observation, render_reply
from shared.settings import Settings

PORT = 25_180
Steps = list[dict[str, Any]]
Values = Mapping[str, Any]


def click(role: str, name: str, **more: Any) -> dict[str, Any]:
    return {"tool": "browser_click", "role": role, "name": name, **more}


def typed(role: str, name: str, text: object, **params: Any) -> dict[str, Any]:
    return {"tool": "browser_type", "role": role, "name": name, "params": {"text": str(text), **params}}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tool": "site_tool", "params": {"name": name, "arguments": arguments}}


ACCEPT = click("button", "Accept all")


def click_search(values: Values) -> Steps:
    return [ACCEPT, typed("combobox", "Search the shop", values["query"], submit=True)]


def call_search(values: Values) -> Steps:
    return [call("search_products", query=values["query"])]


def click_filter(values: Values) -> Steps:
    """By the filters of the search page, one after another: each of them loads it again."""
    steps, filter_name = [ACCEPT, click("link", "See everything")], ""
    for key in ("category", "colour", "material"):
        if key in values:
            after = {"after": {"role": "link", "name": filter_name}} if filter_name else {}
            steps.append(click("checkbox", values[key], **after))
            filter_name = f"Remove filter {values[key]}"
    if "min_rating" in values:
        stars = f"{values['min_rating']} stars and up"
        steps.append(click("radio", stars, after={"role": "link", "name": filter_name}))
        filter_name = f"Remove filter {stars}"
    if "max_price" in values:
        steps.append(
            typed("spinbutton", "Highest price", values["max_price"]) | {"after": {"role": "link", "name": filter_name}}
        )
        steps.append(click("button", "Apply price"))
        filter_name = f"Remove filter Up to €{values['max_price']}"
    if "sort" in values:
        label = {"price-asc": "Price: low to high", "price-desc": "Price: high to low", "rating": "Customer rating"}
        chosen = {"tool": "browser_select_option", "role": "combobox", "name": "Sort by"}
        steps.append(
            {**chosen, "params": {"values": [label[values["sort"]]]}, "after": {"role": "link", "name": filter_name}}
        )
        filter_name = label[values["sort"]].lower()
    if "page" in values:
        steps.append(click("link", f"Page {values['page']}", after={"role": "status", "name": filter_name}))
    return steps


def call_filter(values: Values) -> Steps:
    return [call("filter_products", **values)]


def click_add(values: Values) -> Steps:
    steps = [ACCEPT]
    for product, pieces in values["pieces"].items():
        steps += [
            typed("combobox", "Search the shop", product, submit=True),
            click("link", product, after={"role": "heading", "name": "Results for"}),
            typed("spinbutton", "Pieces", pieces) | {"after": {"role": "button", "name": "Add to cart"}},
            click("button", "Add to cart"),
            click("button", "Continue shopping"),
        ]
    return steps


def call_add(values: Values) -> Steps:
    return [call("add_to_cart", product=product, pieces=pieces) for product, pieces in values["pieces"].items()]


def click_cart(values: Values) -> Steps:
    return [*click_add(values), click("link", "Cart (")]


def call_cart(values: Values) -> Steps:
    return [*call_add(values), call("show_cart")]


def click_empty(values: Values) -> Steps:
    answer = {"tool": "browser_handle_dialog", "params": {"accept": values["accept"]}}
    return [*click_cart(values), click("button", "Empty cart"), answer]


def call_empty(values: Values) -> Steps:
    return [*call_cart(values), *([call("empty_cart")] if values["accept"] else [])]


def click_order(values: Values) -> Steps:
    return [
        *click_cart(values),
        click("link", "Go to checkout"),
        typed("textbox", "Full name", values["name"]),
        click("radio", values["delivery"].title()),
        click("button", "Place order"),
    ]


def call_order(values: Values) -> Steps:
    return [*call_add(values), call("place_order", name=values["name"], delivery=values["delivery"])]


def page(url: str) -> dict[str, Any]:
    return {"kind": "page", "url": url, "extra_query": True}


def posts(url: str, **post_data: Any) -> dict[str, Any]:
    return {"kind": "request", "method": "POST", "url": url, "at": "any", "post_data": post_data}


def holds(pieces: int) -> dict[str, Any]:
    return {"kind": "element", "within": "banner", "element": f'link "Cart ({pieces})"'}


ORDERED = {"kind": "element", "element": 'heading "Thank you, your order is confirmed"'}


def shows(*texts: str) -> dict[str, Any]:
    return {"kind": "text", "within": "status", "contains": list(texts)}


@dataclass(frozen=True)
class Case:
    """A task, how it is done by clicks and by calls, and one value that makes it wrong."""

    name: str
    text: str
    checks: Sequence[dict[str, Any]]
    clicks: Callable[[Values], Steps]
    calls: Callable[[Values], Steps]
    right: Values
    wrong: Values
    needs_pieces: bool = False


CASES = (
    Case("search", "Search the shop for 'armchair'.", [page("/search?q=armchair")], click_search, call_search,
         {"query": "armchair"}, {"query": "footstool"}),
    Case("oak_desks", "Show the oak desks up to 400 euros, cheapest first.",
         [page("/search?category=Desks&material=Oak&max=400&sort=price-asc")], click_filter, call_filter,
         {"category": "Desks", "material": "Oak", "max_price": 400, "sort": "price-asc"}, {"max_price": 300}),
    Case("red_rugs", "Show the red rugs with 4 stars and up.", [page("/search?category=Rugs&colour=Red&rating=4")],
         click_filter, call_filter, {"category": "Rugs", "colour": "Red", "min_rating": 4}, {"colour": "Blue"}),
    Case("lamps_page_two", "Show the second page of the lamps, dearest first.",
         [page("/search?category=Lamps&sort=price-desc&page=2")], click_filter, call_filter,
         {"category": "Lamps", "sort": "price-desc", "page": 2}, {"sort": "price-asc"}),
    Case("walnut", "Show what is made of walnut, best rated first.", [page("/search?material=Walnut&sort=rating")],
         click_filter, call_filter, {"material": "Walnut", "sort": "rating"}, {"material": "Birch"}),
    Case("one_lamp", "Put one Harbour Clip Lamp into the cart.",
         [posts("/cart/add", slug="harbour-clip-lamp"), holds(1)], click_add, call_add,
         {"pieces": {"Harbour Clip Lamp": 1}}, {"pieces": {"Harbour Desk Lamp": 1}}),
    Case("three_shelves", "Put three pieces of the Birch Wall Shelf into the cart.",
         [posts("/cart/add", slug="birch-wall-shelf"), holds(3)], click_add, call_add,
         {"pieces": {"Birch Wall Shelf": 3}}, {"pieces": {"Birch Wall Shelf": 2}}, True),
    Case("two_products", "Put a Tide Round Rug and two Sorrel Footstools into the cart.",
         [posts("/cart/add", slug="tide-round-rug"), posts("/cart/add", slug="sorrel-footstool"), holds(3)],
         click_add, call_add, {"pieces": {"Tide Round Rug": 1, "Sorrel Footstool": 2}},
         {"pieces": {"Tide Round Rug": 2, "Sorrel Footstool": 2}}, True),
    Case("open_cart", "Put a Fjord Dining Chair into the cart, and open it.",
         [{"kind": "element", "on": "/cart", "element": 'link "Fjord Dining Chair"'}, holds(1)], click_cart, call_cart,
         {"pieces": {"Fjord Dining Chair": 1}}, {"pieces": {"Fjord Reading Chair": 1}}),
    Case("change_of_mind", "Put a Dune Jute Rug into the cart, open the cart, and empty it again.",
         [{"kind": "element", "on": "/cart", "at": "any", "element": 'link "Dune Jute Rug"'},
          {"kind": "element", "on": "/cart", "element": 'status "Your cart is empty."'}], click_empty, call_empty,
         {"pieces": {"Dune Jute Rug": 1}, "accept": True}, {"accept": False}),
    Case("order", "Order a Moon Pendant Lamp with standard delivery for Grace Hopper.",
         [ORDERED, shows("for Grace Hopper", "Delivery: Standard", "1 × Moon Pendant Lamp")], click_order, call_order,
         {"pieces": {"Moon Pendant Lamp": 1}, "name": "Grace Hopper", "delivery": "standard"}, {"delivery": "express"}),
    Case("order_two", "Order two Atlas Map Shelves with express delivery for Ada Lovelace.",
         [ORDERED, shows("for Ada Lovelace", "Delivery: Express", "2 × Atlas Map Shelf")], click_order, call_order,
         {"pieces": {"Atlas Map Shelf": 2}, "name": "Ada Lovelace", "delivery": "express"},
         {"name": "Ada Byron"}, True),
)  # fmt: skip


@dataclass(frozen=True)
class Walk:
    """One attempt at a case in a mode, and whether it must succeed."""

    mode: SiteToolsMode
    case: Case
    is_right: bool
    has_bug: bool = False

    @property
    def title(self) -> str:
        return f"{self.mode}, with the bug" if self.has_bug else f"{self.mode}, {'right' if self.is_right else 'wrong'}"

    @property
    def must_succeed(self) -> bool:
        return self.is_right and not (self.has_bug and self.case.needs_pieces)

    @property
    def script(self) -> Script:
        values = {**self.case.right, **({} if self.is_right else self.case.wrong)}
        by_clicks = self.mode == "off" or (self.mode == "offer" and self.case.calls in (call_search, call_filter))
        steps = (self.case.clicks if by_clicks else self.case.calls)(values)
        done = {"tool": "finish", "params": {"answer": "done"}}
        return Script(task=self.case.text, steps=tuple(ScriptStep.model_validate(each) for each in (*steps, done)))


@dataclass
class Replayed:
    """A participant that plays a script, and counts the characters that it is sent."""

    player: Player
    chars: int = 0

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        self.chars += len(text)
        observation = parse_observation(text, image, media_type)
        reply = self.player.reply(observation.page.snapshot, observation.feedback)
        return reply if isinstance(reply, str) else render_reply(reply)


@dataclass(frozen=True)
class Row:
    walk: Walk
    steps: int
    chars: int
    seconds: float
    success: bool
    why: str = field(default="")

    @property
    def passes(self) -> bool:
        return self.success == self.walk.must_succeed


async def play(walk: Walk, pool: BrowserPool, settle: str, folder: Path, port: int) -> Row:
    website = f"http://127.0.0.1:{port}/"
    config = RunConfig.model_validate({"settle": settle, "site_tools": walk.mode, "max_steps": 30})
    task = Task.model_validate(
        {"task_id": walk.case.name, "website": website, "task": walk.case.text, "checks": walk.case.checks}
    )
    participant = Replayed(Player(walk.script))

    @asynccontextmanager
    async def connected() -> AsyncIterator[Replayed]:
        yield participant

    store = TaskStore(folder)
    store.begin()
    episode = Episode(
        task,
        config,
        pool.browser,
        connected,
        store,
        observed=lambda _: None,
        stepped=lambda _: None,
        redaction=Redaction(salt=b"benchmark"),
        network=network_of(task, config),
    )
    began = time.monotonic()
    end = await episode.run()
    seconds = time.monotonic() - began
    store.write_result(end.to_json())
    failed = [each.description for each in evaluate(load_trajectory(folder), config.sites) if each.passed is not True]
    success = end.stop_reason == "finished" and not failed
    why = "; ".join([*failed, *filter(None, [end.error, end.final_answer if end.final_answer != "done" else None])])
    return Row(walk, end.steps_taken, participant.chars, seconds, success, why)


@contextmanager
def shops() -> Iterator[dict[bool, int]]:
    """The shop without and with its bug, each at a port."""
    ports = {False: PORT, True: PORT + 1}
    program = str(ROOT / "scenarios/demo/site.py")
    started = [
        subprocess.Popen([sys.executable, program, "--port", str(port), *(["--tool-bug"] if has_bug else [])])
        for has_bug, port in ports.items()
    ]
    try:
        for port in ports.values():
            _wait_for(f"http://127.0.0.1:{port}/")
        yield ports
    finally:
        for process in started:
            process.terminate()
            process.wait()


def _wait_for(url: str) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            httpx.get(url, timeout=5)
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"{url} does not answer")


async def measure(walks: Sequence[Walk], settle: str, jobs: int) -> list[Row]:
    rows: list[Row] = []
    with shops() as ports, tempfile.TemporaryDirectory() as folder:
        for mode in dict.fromkeys(walk.mode for walk in walks):
            config = RunConfig.model_validate({"settle": settle, "site_tools": mode, "max_steps": 30})
            settings = BrowserSettings.from_config(config, Settings.from_environ())
            async with browser_pool(settings) as pool:

                async def walked(numbered: tuple[int, Walk], pool: BrowserPool = pool) -> None:
                    number, walk = numbered
                    row = await play(walk, pool, settle, Path(folder, str(number)), ports[walk.has_bug])
                    rows.append(row)
                    note = "" if row.passes else f"  DOES NOT PASS: {row.why}"
                    summary = f"{walk.title}: {walk.case.name}, {row.steps} steps, success {row.success}"
                    print(f"{len(rows)}/{len(walks)} {summary}{note}", file=sys.stderr, flush=True)

                numbered = [(number, walk) for number, walk in enumerate(walks) if walk.mode == mode]
                await for_each(numbered, walked, at_once=jobs)
    return rows


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| walks | attempts | succeeded | as they must | steps per attempt | characters sent per attempt | seconds |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for title in dict.fromkeys(row.walk.title for row in rows):
        of = [row for row in rows if row.walk.title == title]
        mean = {name: sum(getattr(row, name) for row in of) / len(of) for name in ("steps", "chars", "seconds")}
        lines.append(
            f"| {title} | {len(of)} | {sum(row.success for row in of)} | {sum(row.passes for row in of)} | "
            f"{mean['steps']:.1f} | {mean['chars']:,.0f} | {mean['seconds']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Play all walks, print the table, and return whether all passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--settle", default="page-time", choices=["page-time", "real-time"])
    parser.add_argument("--jobs", type=int, default=2, help="attempts at once")
    parser.add_argument("--only", nargs="*", default=[], help="only these of the 12 tasks")
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    options = parser.parse_args()
    modes: tuple[SiteToolsMode, ...] = ("off", "offer", "only")
    cases = [case for case in CASES if not options.only or case.name in options.only]
    walks = [Walk(mode, case, is_right) for mode in modes for is_right in (True, False) for case in cases]
    walks += [Walk("only", case, is_right=True, has_bug=True) for case in cases]
    rows = asyncio.run(measure(walks, options.settle, options.jobs))
    rows_table = table(rows)
    print(rows_table)
    if options.markdown:
        options.markdown.write_text(rows_table)
    passed = sum(row.passes for row in rows)
    print(f"{passed} of {len(rows)} attempts were decided as they must be")
    return 0 if passed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
