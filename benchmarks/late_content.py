"""Measures whether the observation after an action shows the page's final state when the content comes late.

    python benchmarks/late_content.py [--settle page-time] [--quick] [--libraries FOLDER]

Each case is a page (`late_pages/`) whose final state comes in some way (a *kind*) and after some time (a *delay*) from
the page's own event for an action. The judge's browser layer carries the action out and observes, without any wait of
this script in between. Then the page's button "React" is clicked, which must have its effect in the next observation.

captured: the observation shows the final state, in snapshot and screenshot. A toast may also be reported as vanished.
wrong: it shows a state that never existed: half an update, another case's content, timers out of order, a client that
gave up although the server answered in time. dead: the click on "React" had no effect.

With `--libraries` (or `--set-up`, which fills that folder through npm) pages made with real libraries are measured as
well. Bounds: 95 % captured, kinds weighted equally (in real time: of the kinds driven by the network); no wrong state,
no dead click.
"""

import argparse
import asyncio
import io
import itertools
import json
import math
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from judge.browser.chromium import BrowserSettings
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import browser_pool
from judge.browser.settle import ClockStalled, settle_mode
from judge.config import RunConfig
from judge.network.policy import NetworkPolicy
from judge.records.tools import SCROLL, tools
from shared.errors import EnvironmentFault
from shared.models import Page
from shared.settings import Settings
from shared.snapshot import Node, parse_snapshot

Image: Any
try:
    from PIL import Image
except ImportError:
    Image = None

PAGES = Path(__file__).resolve().parent / "late_pages"
DELAYS = (0.1, 0.3, 0.5, 1.0, 2.0, 3.0)
QUICK_DELAYS = (0.3, 2.0)
BOUND = 0.95
# How long after its delay a missed final state is still looked for.
AFTERWARDS_S = 4.0
STATE = re.compile(r"\b(first|second) (initial|FINAL|WRONG) (\w+)")


class Kind(NamedTuple):
    """How the final state comes. `network`: by requests alone, so that waiting for them is enough.

    `replaces`: the action's page goes away, so a click on it may rightly be lost once the final state was missed.
    """

    name: str
    network: bool = False
    replaces: bool = False
    library: bool = False


PLAIN_KINDS = (
    Kind("timer"),
    Kind("fetch", network=True),
    Kind("chain"),
    Kind("debounce"),
    Kind("polling", network=True),
    Kind("slow_navigation", network=True, replaces=True),
    Kind("timer_after_navigation", replaces=True),
    Kind("fetch_after_navigation", network=True, replaces=True),
    Kind("same_site_frame"),
    Kind("cross_site_frame"),
    Kind("late_frame", network=True, replaces=True),
    Kind("worker"),
    Kind("crypto"),
    Kind("css_transition"),
    Kind("smooth_scroll"),
    Kind("new_tab", replaces=True),
    Kind("event_stream", network=True),
    Kind("endless_request", network=True),
    Kind("tab_that_fetches", network=True, replaces=True),
    Kind("socket_reply", network=True),
    Kind("socket_work", network=True),
    Kind("busy_wait"),
    Kind("toast"),
)
_BY_CLOCK = ("gsap", "motion", "rxjs", "lodash", "idb")
_BY_REQUEST = ("vue2", "vue3", "svelte", "preact", "htmx", "alpine", "jquery", "lit", "axios", "socketio")
LIBRARY_KINDS = (
    *(Kind(name, network=True, library=True) for name in (*_BY_REQUEST, "react18", "react19", "react_query")),
    *(Kind(name, library=True) for name in _BY_CLOCK),
)


class Call(NamedTuple):
    """One tool call. `make` turns the page that was observed into the parameters."""

    tool: str
    make: Callable[[Page], dict[str, Any]]


class Action(NamedTuple):
    """The measured call, what a participant does before it, and the page's event that starts the kind (`start`).

    `elsewhere`: begins on another page; the call itself leads to the case's. Without a call, opening is measured.
    """

    start: str
    call: Call | None = None
    before: tuple[Call, ...] = ()
    elsewhere: bool = False


class NotThereError(Exception):
    """What a case needs before its measured call is missing."""


def find(page: Page, role: str, name: str) -> Node:
    """The last such element with a reference: in a page with a frame, the frame's."""
    nodes = [node for node in parse_snapshot(page.snapshot).find(role) if node.name == name and node.ref]
    if not nodes:
        raise NotThereError(f"no {name} {role}")
    return nodes[-1]


def ref(page: Page, role: str, name: str) -> str:
    return find(page, role, name).ref or ""


def point(page: Page, role: str, name: str) -> tuple[float, float]:
    """The element's middle."""
    x, y, width, height = find(page, role, name).box or (0, 0, 0, 0)
    return x + width / 2, y + height / 2


def on(tool: str, role: str, name: str, **params: Any) -> Call:
    """A call that names one element."""
    return Call(tool, lambda page: {"target": ref(page, role, name), **params})


def plain(tool: str, **params: Any) -> Call:
    return Call(tool, lambda _: params)


def _drag(page: Page) -> dict[str, Any]:
    return {"startTarget": ref(page, "img", "Card"), "endTarget": ref(page, "group", "Basket")}


def _by_point(page: Page) -> dict[str, Any]:
    x, y = point(page, "button", "Start")
    return {"x": x, "y": y}


def _over_point(page: Page) -> dict[str, Any]:
    x, y = point(page, "button", "Menu")
    return {"x": x, "y": y}


def _between_points(page: Page) -> dict[str, Any]:
    (x, y), (end_x, end_y) = point(page, "img", "Card"), point(page, "group", "Basket")
    return {"startX": x, "startY": y, "endX": end_x, "endY": end_y}


def _form(page: Page) -> dict[str, Any]:
    values = {"Name": "Ann", "City": "Oslo"}
    fields = [{"target": ref(page, "textbox", key), "name": key, "type": "textbox"} for key in values]
    return {"fields": [{**field, "value": values[field["name"]]} for field in fields]}


START, WINDOW = on("browser_click", "button", "Start"), on("browser_click", "button", "Window")
# Stand for addresses that a case knows.
CASE_PAGE, OTHER_PAGE = "the page of the case", "another page"
ACTIONS = {
    "first_page": Action("load"),
    "click": Action("click", START),
    "double_click": Action("double_click", on("browser_click", "button", "Start", doubleClick=True)),
    "type": Action("type", on("browser_type", "textbox", "Words", text="lamp")),
    "type_slowly": Action("type_slowly", on("browser_type", "textbox", "Words", text="la", slowly=True)),
    "type_submit": Action("type_submit", on("browser_type", "textbox", "Query", text="lamp", submit=True)),
    "select": Action("select", on("browser_select_option", "combobox", "Choice", values=["two"])),
    "hover": Action("hover", on("browser_hover", "button", "Menu")),
    "press_key": Action("press_key", plain("browser_press_key", key="k")),
    "scroll": Action("scroll", plain(SCROLL, direction="down", amount=300)),
    "drag": Action("drag", Call("browser_drag", _drag)),
    "fill_form": Action("fill_form", Call("browser_fill_form", _form)),
    "navigate": Action("load", plain("browser_navigate", url=CASE_PAGE), elsewhere=True),
    "back": Action("back", plain("browser_navigate_back"), (plain("browser_navigate", url=OTHER_PAGE),)),
    "dialog": Action("dialog", plain("browser_handle_dialog", accept=True), (on("browser_click", "button", "Ask"),)),
    "wait": Action("load", plain("browser_wait_for", textGone="not on any page")),
    "tab_new": Action("load", plain("browser_tabs", action="new", url=CASE_PAGE), elsewhere=True),
    "tab_select": Action("tab_select", plain("browser_tabs", action="select", index=0), (WINDOW,)),
    "tab_close": Action("tab_close", plain("browser_tabs", action="close", index=1), (WINDOW,)),
    # Measured where coordinates are offered, or if asked for by name.
    "click_xy": Action("click", Call("browser_mouse_click_xy", _by_point)),
    "hover_xy": Action("hover", Call("browser_mouse_move_xy", _over_point)),
    "drag_xy": Action("drag", Call("browser_mouse_drag_xy", _between_points)),
    "wheel": Action("scroll", plain("browser_mouse_wheel", deltaX=0, deltaY=300)),
}
# Offered tools that change no page.
READING_TOOLS = frozenset({"browser_snapshot", "browser_find"})


def left_out(kind: Kind, action: str) -> str | None:
    """Why a combination makes no case."""
    if kind.library and action not in ("click", "first_page"):
        return "a library's page starts by its own button or by itself; what an action is, the plain pages ask"
    if kind.name in ("new_tab", "tab_that_fetches") and action == "tab_select":
        return "two tabs open at once, and which one a person would see is open"
    return None


def offered_actions() -> list[str]:
    """The actions by tools that participants are offered."""
    return [name for name, action in ACTIONS.items() if action.call is None or action.call.tool in tools()]


def unmeasured_tools() -> set[str]:
    """Offered tools that are in no action: a newly offered one needs a case."""
    measured = {action.call.tool for action in ACTIONS.values() if action.call}
    offered = {name for name, tool in tools().items() if tool.does != "ends" and not tool.is_asked_for}
    return offered - measured - READING_TOOLS


@dataclass(frozen=True)
class Case:
    kind: Kind
    action: str
    delay: float
    token: str
    site: str

    @property
    def other_page(self) -> str:
        return f"{self.site}/other"

    @property
    def address(self) -> str:
        start, delay = ACTIONS[self.action].start, self.delay * 1000
        if self.kind.library:
            return f"{self.site}/library?name={self.kind.name}&token={self.token}&start={start}&delay={delay:g}"
        # A toast is there for one, two or three seconds.
        visible = 1000 * (1 + int(self.token[1:]) % 3)
        case = f"token={self.token}&kind={self.kind.name}&start={start}&delay={delay:g}&visible={visible}"
        return f"{self.site}/page?{case}"


@dataclass
class Result:
    """`verdict`: captured, missed, wrong or fault. `dead`: the next click had no effect, `None` if not tried.

    `afterwards`: whether the final state, once missed, came later; if it never comes, the page itself is at fault.
    """

    kind: str
    network: bool
    action: str
    delay: float
    verdict: str
    why: str = ""
    ms: float = 0.0
    dead: bool | None = None
    afterwards: bool | None = None
    replayed: bool = False


def verdict(page: Page, case: Case, height: int) -> tuple[str, str]:
    """What the observation shows, and why it is not the final state."""
    if case.kind.name == "toast":
        reported = " ".join(getattr(page, "vanished", ()))
        is_shown = f"toast {case.token}" in page.snapshot or f"toast {case.token}" in reported
        return ("captured", "") if is_shown else ("missed", "neither seen nor reported")
    by_place = {place: (state, token) for place, state, token in STATE.findall(page.snapshot)}
    states = set(by_place.values())
    if any(state == "WRONG" or token != case.token for state, token in states):
        match = re.search(rf"WRONG {case.token}: ([^\n]*)", page.snapshot)
        return "wrong", match[1] if match else f"shows {sorted(states)}"
    if len(states) > 1:
        return "wrong", f"half an update: {by_place}"
    if states != {("FINAL", case.token)}:
        return "missed", "the state before" if states else "no state at all"
    return _placed(page, case, height)


def screenshot_lags(page: Page, case: Case) -> bool:
    """Whether the screenshot shows the state before: the page's square is red at first and green in the end."""
    if Image is None or page.screenshot is None or case.kind.library or case.kind.name == "toast":
        return False
    # A quarter of each length: 100 of the square's 40 by 40 pixels remain.
    small = Image.open(io.BytesIO(page.screenshot)).convert("RGB").resize((320, 180), Image.Resampling.NEAREST)
    pixels = list(zip(*(band.tobytes() for band in small.split()), strict=True))
    red = sum(r > 200 and g < 80 and b < 80 for r, g, b in pixels)
    green = sum(g > 200 and r < 80 and b < 80 for r, g, b in pixels)
    return bool(red > 5 or green < 60)


def _placed(page: Page, case: Case, height: int) -> tuple[str, str]:
    """For kinds that end by a movement: whether it is over."""
    boxes = {node.name.split()[0]: node.box for node in parse_snapshot(page.snapshot).find("button") if node.name}
    if case.kind.name == "css_transition" and boxes.get("moving") != boxes.get("place"):
        return "missed", f"at {boxes.get('moving')}, goes to {boxes.get('place')}"
    if case.kind.name == "smooth_scroll":
        end = boxes.get("end")
        if end is None or abs(end[1] + end[3] / 2 - height / 2) > 2:
            return "missed", f"at {end}, goes to the middle of {height}"
    return "captured", ""


class Tester:
    """Runs cases one after the other in one browser, which is replaced after a fault."""

    def __init__(self, site: str, config: RunConfig, spare: RunConfig | None) -> None:
        self._site = site
        self._settings = BrowserSettings.from_config(config, Settings.from_environ())
        self._spare = BrowserSettings.from_config(spare, Settings.from_environ()) if spare else None
        self._settle = config.settle
        self._height = config.viewport_height
        self._stack = AsyncExitStack()
        self._browser: PlaywrightBrowser | None = None

    async def run(self, case: Case) -> Result:
        result = Result(case.kind.name, case.kind.network, case.action, case.delay, "fault")
        began = time.perf_counter()
        try:
            await self._run(case, result, await self._opened(self._settings))
        except (EnvironmentFault, NotThereError) as fault:
            result.why, result.verdict = f"{type(fault).__name__}: {str(fault)[:200]}", "fault"
            result.ms = (time.perf_counter() - began) * 1000
            await self.close()
            if case.kind.name == "busy_wait" and self._spare is not None:
                await self._replay(case, result, self._spare)
        return result

    async def _replay(self, case: Case, result: Result, settings: BrowserSettings) -> None:
        """A page that waits by keeping busy cannot be shown in page time: the judge plays its task again."""
        spent, result.replayed = result.ms, True
        try:
            await self._run(case, result, await self._opened(settings))
            result.ms += spent
        except (EnvironmentFault, NotThereError) as fault:
            result.why, result.verdict = f"replayed: {str(fault)[:200]}", "fault"
        await self.close()

    async def _opened(self, settings: BrowserSettings) -> PlaywrightBrowser:
        if self._browser is None:
            policy = NetworkPolicy.for_websites([self._site, self._site.replace("127.0.0.1", "localhost")])
            pool = await self._stack.enter_async_context(browser_pool(settings))
            self._browser = await self._stack.enter_async_context(pool.browser(policy))
        return self._browser

    async def close(self) -> None:
        self._browser = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def _run(self, case: Case, result: Result, browser: PlaywrightBrowser) -> None:
        action = ACTIONS[case.action]
        settle = await settle_mode("real-time" if result.replayed else self._settle, case.address)
        page: Page | None = None
        began = time.perf_counter()
        await browser.open(case.other_page if action.elsewhere else case.address, settle)
        if action.call is not None:
            if case.action != "wait":
                page = await browser.observe()
            for call in action.before:
                await self._act(browser, call, page, case)
                page = await browser.observe()
            params = self._params(action.call, page, case)
            began = time.perf_counter()
            done = await browser.act(action.call.tool, params)
            if not done.ok:
                result.why = f"the action failed: {' '.join(done.text.split())[:150]}"
        page = await browser.observe()
        result.ms = (time.perf_counter() - began) * 1000
        if page.notice and page.notice.code == "script_stopped" and settle == "page-time":
            # So an episode begins again in real time.
            raise ClockStalled
        result.verdict, why = verdict(page, case, self._height)
        if result.verdict == "captured" and screenshot_lags(page, case):
            result.verdict, why = "missed", "the screenshot shows the state before"
        result.why = result.why or why
        if result.verdict == "captured" or not case.kind.replaces:
            page = await self._click_next(case, result, browser, page)
        if result.verdict == "missed" and case.kind.name != "toast":
            result.afterwards = await self._comes_afterwards(case, browser)
        await self._close_tabs(browser, page)

    async def _click_next(self, case: Case, result: Result, browser: PlaywrightBrowser, page: Page) -> Page:
        try:
            target = ref(page, "button", "React")
        except NotThereError:
            return page
        clicked = await browser.act("browser_click", {"target": target})
        page = await browser.observe()
        result.dead = f"clicked {case.token}" not in page.snapshot
        if result.dead:
            result.why = f"{result.why}; the next click: {clicked.text[:100] if not clicked.ok else 'no effect'}"
        return page

    async def _comes_afterwards(self, case: Case, browser: PlaywrightBrowser) -> bool:
        until = time.monotonic() + case.delay + AFTERWARDS_S
        while time.monotonic() < until:
            page = await browser.observe()
            if verdict(page, case, self._height)[0] == "captured":
                return True
            await asyncio.sleep(0.2)
        return False

    async def _act(self, browser: PlaywrightBrowser, call: Call, page: Page | None, case: Case) -> None:
        done = await browser.act(call.tool, self._params(call, page, case))
        if not done.ok:
            raise NotThereError(f"{call.tool}: {done.text[:150]}")

    def _params(self, call: Call, page: Page | None, case: Case) -> dict[str, Any]:
        params = call.make(page or Page(url="", title="", snapshot=""))
        addresses = {CASE_PAGE: case.address, OTHER_PAGE: case.other_page}
        return {key: addresses.get(value, value) if key == "url" else value for key, value in params.items()}

    async def _close_tabs(self, browser: PlaywrightBrowser, page: Page) -> None:
        if len(page.tabs) < 2:
            return
        for tab in reversed(page.tabs[1:]):
            await browser.act("browser_tabs", {"action": "close", "index": tab.index})
        await browser.observe()


def cases(kinds: Iterable[Kind], site: str, options: argparse.Namespace) -> Iterator[Case]:
    """Every kind with every action, and with a click at every delay; the delays of the others take turns."""
    numbers = itertools.count(1)
    for at, kind in enumerate(kinds):
        allowed = [name for name in options.actions if left_out(kind, name) is None]
        chosen = [allowed[at % len(allowed)]] if options.quick and allowed else allowed
        for turn, action in enumerate(chosen):
            for delay in _delays(at + turn, action, options):
                yield Case(kind, action, delay, f"t{next(numbers)}", site)


def _delays(turn: int, action: str, options: argparse.Namespace) -> tuple[float, ...]:
    if options.delays:
        return tuple(options.delays)
    if options.quick:
        return QUICK_DELAYS
    if options.full or action == "click":
        return DELAYS
    return (DELAYS[turn % len(DELAYS)],)


def configs(settle: str) -> tuple[RunConfig, RunConfig | None]:
    """The configuration to measure, and the one to replay busy pages with."""
    config = RunConfig.model_validate({"settle": settle})
    return config, None if settle == "real-time" else RunConfig(settle="real-time")


async def measure(todo: list[Case], site: str, options: argparse.Namespace) -> list[Result]:
    config, spare = configs(options.settle)
    waiting = iter(todo)
    results: list[Result] = []

    async def work() -> None:
        tester = Tester(site, config, spare)
        try:
            for case in waiting:
                results.append(await tester.run(case))
                if sys.stderr.isatty():
                    print(f"\r{len(results)} of {len(todo)}", end="", file=sys.stderr)
        finally:
            await tester.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(options.jobs):
            group.create_task(work())
    return results


def share(results: Iterable[Result]) -> float:
    """The captured part, kinds weighted equally."""
    by_kind: dict[str, list[bool]] = {}
    for result in results:
        by_kind.setdefault(result.kind, []).append(result.verdict == "captured")
    return statistics.mean(sum(values) / len(values) for values in by_kind.values()) if by_kind else 1.0


def summary(results: list[Result], settle: str) -> dict[str, Any]:
    times = sorted(result.ms for result in results)
    network = [result for result in results if result.network]
    figures: dict[str, Any] = {
        "settle": settle,
        "cases": len(results),
        "captured": round(share(results), 4),
        "captured_network": round(share(network), 4),
        "captured_toasts": round(share(result for result in results if result.kind == "toast"), 4),
        "wrong": sum(result.verdict == "wrong" for result in results),
        "dead": sum(result.dead is True for result in results),
        "faults": sum(result.verdict == "fault" for result in results),
        "replayed": sum(result.replayed for result in results),
        "never": sum(result.afterwards is False for result in results),
        "ms_median": round(statistics.median(times)),
        "ms_p95": round(times[math.ceil(0.95 * len(times)) - 1]),
    }
    bound = figures["captured_network"] if settle == "real-time" else figures["captured"]
    figures["within_bounds"] = bound >= BOUND and not figures["wrong"] and not figures["dead"]
    return figures


def report(results: list[Result], figures: dict[str, Any]) -> None:
    print(f"{'kind':24}{'cases':>6}{'captured':>10}{'wrong':>7}{'dead':>6}{'median':>8}{'p95 ms':>8}  network")
    for kind in dict.fromkeys(result.kind for result in sorted(results, key=lambda result: result.kind)):
        own = [result for result in results if result.kind == kind]
        part = summary(own, "")
        network = "yes" if own[0].network else ""
        counts = f"{part['wrong']:>7}{part['dead']:>6}{part['ms_median']:>8}{part['ms_p95']:>8}"
        print(f"{kind:24}{len(own):>6}{part['captured']:>10.0%}{counts}  {network}")
    for result in sorted(results, key=lambda result: (result.kind, result.action, result.delay)):
        if result.verdict != "captured" or result.dead:
            later = {None: "", True: " (came afterwards)", False: " (NEVER CAME)"}[result.afterwards]
            dead = " and next click dead" if result.dead else ""
            print(f"{result.verdict}{dead}: {result.kind}, {result.action}, {result.delay:g} s: {result.why}{later}")
    print(json.dumps(figures, indent=2))
    print("within bounds" if figures["within_bounds"] else "OUT OF BOUNDS")


def set_up(folder: Path) -> None:
    """Install the libraries with npm, from the registry that it is configured for, and bundle the pages."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is needed to set up the libraries' pages")
    for source in (PAGES / "libraries").iterdir():
        shutil.copy(source, folder)
    install = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps", "--loglevel=error"]
    subprocess.run(install, cwd=folder, check=True)
    subprocess.run(["node", "build.mjs", "bundles"], cwd=folder, check=True)


@contextmanager
def served(bundles: Path) -> Iterator[str]:
    """The pages' server in a process of its own, at a free port: its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([sys.executable, str(PAGES / "site.py"), str(port), str(bundles)])
    try:
        for _ in range(200):
            try:
                httpx.get(f"{address}/other", timeout=1, trust_env=False)
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        else:
            raise SystemExit(f"nothing answers at {address}")
        yield address
    finally:
        # Some of its answers never end.
        process.kill()
        process.wait()


def chosen_kinds(options: argparse.Namespace, bundles: Path) -> list[Kind]:
    libraries = [kind for kind in LIBRARY_KINDS if (bundles / f"{kind.name}.js").is_file()]
    if not options.no_libraries and len(libraries) < len(LIBRARY_KINDS):
        missing = len(LIBRARY_KINDS) - len(libraries)
        print(f"note: {missing} pages with libraries are skipped; --set-up FOLDER makes them", file=sys.stderr)
    kinds = [] if options.only_libraries else [*PLAIN_KINDS]
    kinds += [] if options.no_libraries else libraries
    return [kind for kind in kinds if not options.kinds or kind.name in options.kinds]


def main() -> None:
    """Choose the cases, measure, say whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--settle", default="auto", choices=["auto", "page-time", "real-time"])
    parser.add_argument("--quick", action="store_true", help="one action for each kind, two delays")
    parser.add_argument("--full", action="store_true", help="every kind with every action at every delay")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=[])
    parser.add_argument("--actions", type=lambda text: text.split(","), default=offered_actions())
    parser.add_argument("--delays", type=lambda text: [float(part) for part in text.split(",")], default=[])
    parser.add_argument("--libraries", type=Path, help="a folder that --set-up has filled")
    parser.add_argument("--set-up", type=Path, metavar="FOLDER", help="fill FOLDER with the libraries' pages (npm)")
    parser.add_argument("--only-libraries", action="store_true")
    parser.add_argument("--no-libraries", action="store_true")
    parser.add_argument("--jobs", type=int, default=2, help="browsers at once")
    parser.add_argument("--json", type=Path, help="write every case's result there")
    options = parser.parse_args()
    if options.set_up:
        options.set_up.mkdir(parents=True, exist_ok=True)
        set_up(options.set_up)
        options.libraries = options.set_up
    with tempfile.TemporaryDirectory() as empty:
        bundles = options.libraries.resolve() / "bundles" if options.libraries else Path(empty)
        if unmeasured := unmeasured_tools():
            print(f"note: no case for {', '.join(sorted(unmeasured))}", file=sys.stderr)
        if Image is None:
            print("note: screenshots are not looked at; that needs the package Pillow", file=sys.stderr)
        kinds = chosen_kinds(options, bundles)
        began = time.monotonic()
        with served(bundles) as site:
            todo = list(cases(kinds, site, options))
            results = asyncio.run(measure(todo, site, options))
    figures = {**summary(results, options.settle), "seconds": round(time.monotonic() - began)}
    report(results, figures)
    if options.json:
        options.json.write_text(json.dumps({**figures, "results": [asdict(one) for one in results]}, indent=2))
    sys.exit(0 if figures["within_bounds"] else 1)


if __name__ == "__main__":
    main()
