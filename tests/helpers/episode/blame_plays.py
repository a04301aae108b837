"""Random ways to an address that kills the browser, with an oracle that knows whose fault it is.

A play is a small web of two sites and a list of moves; the last one leads to the address that kills, which was harmless
until then. The oracle looks at how the play was made, not at what the browser told. The same play can be played in a
scripted browser or in a real one.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from helpers.browser.hops import went
from helpers.episode.scripted import TOOLS, ScriptedBrowser, play_episode
from judge.browser.session import Hop, ToolResult
from judge.browser.settle import SettleMode
from shared.errors import BrowserFault
from shared.models import Action, Page, Tab, ToolSpec

OWN, ELSEWHERE = "own:", "else:"
HOME = f"{OWN}/"
Party = Literal["participant", "site"]
_TABS = {"properties": {"action": {"type": "string"}, "url": {"type": "string"}, "index": {"type": "integer"}}}


@dataclass(frozen=True)
class WebPage:
    """`links` by name; `buttons` are scripts that lead there; `leads` is where a script leads by itself."""

    links: dict[str, str] = field(default_factory=dict)
    buttons: dict[str, str] = field(default_factory=dict)
    frames: tuple[str, ...] = ()
    redirect: str = ""
    leads: str = ""
    has_back: bool = False


@dataclass(frozen=True)
class Move:
    """`click` a link or button by name, `go` to an address, open it in a `tab`; `write`, `press`, `back`, `select`."""

    kind: Literal["click", "go", "tab", "write", "press", "back", "select", "wait"]
    to: str = ""


@dataclass(frozen=True)
class BlamePlay:
    """`trap` is the address that kills the browser in the last move."""

    name: str
    web: dict[str, WebPage]
    moves: tuple[Move, ...]
    trap: str
    fault_of: Party
    sends_referrer: bool = True


@dataclass
class _Facts:
    """What the oracle knows of a play so far."""

    has_written: bool = False
    # The trap was in a page of the task's site, or the site led there, before the participant wrote anything.
    is_observed: bool = False
    is_named: bool = False
    # A page elsewhere that the participant named is still open.
    is_left_open: bool = False
    # The page of the task's site that is shown is one that the participant named.
    is_at_named: bool = False

    def write(self) -> None:
        """The participant writes something."""
        self.has_written = True

    def observe(self) -> None:
        """A page of the task's site with the trap's address is observed, or leads there."""
        self.is_observed |= not self.has_written


# What a participant does before: the moves from any page of the task's site to another one.
def _clicks(facts: _Facts) -> list[Move]:
    facts.is_at_named = False
    return [Move("click", "Plain")]


def _writes(facts: _Facts) -> list[Move]:
    facts.write()
    return [Move("write")]


def _presses(facts: _Facts) -> list[Move]:
    facts.write()
    return [Move("press")]


def _names_a_page(facts: _Facts) -> list[Move]:
    facts.write()
    facts.is_at_named = True
    return [Move("go", f"{OWN}/named")]


def _visits_elsewhere(facts: _Facts) -> list[Move]:
    facts.write()
    return [Move("go", f"{ELSEWHERE}/visited"), Move("back")]


def _sees_a_link(facts: _Facts) -> list[Move]:
    facts.is_at_named = False
    facts.observe()
    return [Move("click", "Gate")]


def _follows_a_link(facts: _Facts) -> list[Move]:
    facts.is_at_named = False
    facts.observe()
    return [Move("click", "Gate"), Move("click", "Trap"), Move("back")]


def _names_the_trap(facts: _Facts) -> list[Move]:
    facts.write()
    facts.is_named = True
    return [Move("go", "TRAP"), Move("back")]


def _leaves_a_tab(facts: _Facts) -> list[Move]:
    facts.write()
    facts.is_left_open = True
    return [Move("tab", f"{ELSEWHERE}/visited"), Move("select")]


def _waits(_: _Facts) -> list[Move]:
    return [Move("wait")]


_BEFORE: Sequence[tuple[Callable[[_Facts], list[Move]], int]] = (
    (_clicks, 6),
    (_writes, 5),
    (_presses, 2),
    (_names_a_page, 3),
    (_visits_elsewhere, 2),
    (_sees_a_link, 3),
    (_follows_a_link, 3),
    (_names_the_trap, 2),
    (_leaves_a_tab, 1),
    (_waits, 2),
)


@dataclass(frozen=True)
class _Way:
    """The last moves. `is_named`: the participant names an address that leads to the trap by itself.

    `is_sites`: a page of the task's site leads there. `is_in_front`: what the participant named is still in front then.
    """

    moves: tuple[Move, ...]
    is_named: bool = False
    is_sites: bool = True
    is_in_front: bool = False


_GATE = Move("click", "Gate")
_WAYS: dict[str, _Way] = {
    "its address": _Way((Move("go", "TRAP"),), is_named=True),
    "its address in a new tab": _Way((Move("tab", "TRAP"),), is_named=True),
    "the address of the site's redirect": _Way((Move("go", f"{OWN}/redirect"),), is_named=True),
    "the address of a redirect elsewhere": _Way((Move("go", f"{ELSEWHERE}/redirect"),), is_named=True),
    "the address of a page with a script": _Way((Move("go", f"{OWN}/script"),), is_named=True),
    "the address of a page with it in a frame": _Way((Move("go", f"{OWN}/framed"),), is_named=True, is_in_front=True),
    "a link": _Way((_GATE, Move("click", "Trap"))),
    "a link to a new tab": _Way((_GATE, Move("click", "Trap in a tab"))),
    "a link that redirects": _Way((_GATE, Move("click", "Redirect"))),
    "a button with a script": _Way((_GATE, Move("click", "Button"))),
    "a page with a script": _Way((_GATE, Move("click", "Script"))),
    "a frame": _Way((_GATE, Move("click", "Framed"))),
    "a frame that redirects": _Way((_GATE, Move("click", "Framed redirect"))),
    "a link of a page elsewhere": _Way((Move("click", "Partner"), Move("click", "Trap")), is_sites=False),
    "a link of a page elsewhere that it named": _Way(
        (Move("go", f"{ELSEWHERE}/visited"), Move("click", "Trap")), is_sites=False, is_in_front=True
    ),
    "the browser's way back": _Way((_GATE, Move("click", "Trap"), Move("go", f"{OWN}/named"), Move("back"))),
    "the site's way back": _Way((_GATE, Move("click", "Trap"), Move("go", f"{OWN}/named"), Move("click", "Way back"))),
}


def blame_play(chance: random.Random) -> BlamePlay:
    """A random play."""
    site = chance.choice([OWN, ELSEWHERE])
    trap = f"{site}/trap?{chance.randrange(10**6)}"
    facts = _Facts()
    moves: list[Move] = []
    makers, weights = zip(*_BEFORE, strict=True)
    for make in chance.choices(makers, weights, k=chance.randrange(4)):
        moves += make(facts)
    name = chance.choice(sorted(_WAYS))
    way = _WAYS[name]
    moves += way.moves
    has_advert = chance.random() < 0.3
    return BlamePlay(
        name=f"{site} {name}",
        web=_web(trap, has_advert=has_advert),
        moves=tuple(Move(move.kind, trap if move.to == "TRAP" else move.to) for move in moves),
        trap=trap,
        fault_of="participant" if _is_participants(site, way, facts) else "site",
        # Without one, nobody can tell whether the page or the frame in it was clicked.
        sends_referrer=has_advert or chance.random() < 0.8,
    )


def _is_participants(site: str, way: _Way, facts: _Facts) -> bool:
    stays_open = facts.is_at_named and way.moves[0].kind == "tab"
    if facts.is_left_open or way.is_in_front or stays_open:
        return True
    # The gate shows the link, and the way back begins at it.
    if way.is_sites and not way.is_named:
        facts.observe()
    if site == OWN:
        return facts.is_named or way.is_named
    # A redirect elsewhere is a page elsewhere, which the task's site does not have.
    return not facts.is_observed


def _web(trap: str, *, has_advert: bool) -> dict[str, WebPage]:
    advert = (f"{ELSEWHERE}/advert",) if has_advert else ()
    around = {"Plain": f"{OWN}/plain", "Gate": f"{OWN}/gate", "Partner": f"{ELSEWHERE}/partner"}
    gate = {
        "Trap": trap,
        "Trap in a tab": trap,
        "Redirect": f"{OWN}/redirect",
        "Script": f"{OWN}/script",
        "Framed": f"{OWN}/framed",
        "Framed redirect": f"{OWN}/framed-redirect",
    }
    plain = WebPage(links=around, frames=advert, has_back=True)
    return {
        HOME: plain,
        f"{OWN}/plain": plain,
        f"{OWN}/named": plain,
        f"{OWN}/gate": WebPage(links={**around, **gate}, buttons={"Button": trap}, frames=advert),
        f"{OWN}/redirect": WebPage(redirect=trap),
        f"{OWN}/script": WebPage(leads=trap),
        f"{OWN}/framed": WebPage(links=around, frames=(trap,)),
        f"{OWN}/framed-redirect": WebPage(links=around, frames=(f"{OWN}/redirect",)),
        f"{ELSEWHERE}/redirect": WebPage(redirect=trap),
        f"{ELSEWHERE}/visited": WebPage(links={"Trap": trap}),
        f"{ELSEWHERE}/partner": WebPage(links={"Trap": trap}),
        f"{ELSEWHERE}/advert": WebPage(),
        trap: WebPage(links=around),
    }


# In a scripted browser.
BASES = {OWN: "https://shop.example", ELSEWHERE: "https://other.example"}


def address(to: str, bases: dict[str, str] = BASES) -> str:
    """The web address of a page of a play."""
    site, _, path = to.partition(":")
    return bases[f"{site}:"] + path


def action_of(move: Move) -> Action:
    """What a participant asks a scripted browser for."""
    match move.kind:
        case "click":
            return Action(tool="browser_click", params={"element": move.to})
        case "go":
            return Action(tool="browser_navigate", params={"url": address(move.to)})
        case "tab":
            return Action(tool="browser_tabs", params={"action": "new", "url": address(move.to)})
        case "select":
            return Action(tool="browser_tabs", params={"action": "select", "index": 0})
        case "write":
            return Action(tool="browser_type", params={"text": "desk"})
        case "press":
            return Action(tool="browser_press_key", params={"key": "Shift"})
        case "back":
            return Action(tool="browser_navigate_back", params={})
    return Action(tool="browser_wait_for", params={"time": 1})


def blame_of(play: BlamePlay, folder: Path) -> str:
    """Whose fault an attempt in a scripted browser counts as; anything else that came of it in words."""
    end = play_episode(folder, PlayedWeb(play), *map(action_of, play.moves), max_steps=30)
    if (end.stop_reason, end.blame) == ("participant_error", "participant"):
        return "participant"
    return "site" if end.stop_reason == "environment_fault" else f"{end.stop_reason}: {end.error}"


class PlayedWeb(ScriptedBrowser):
    """A scripted browser that shows the web of a play, and tells of it what a real browser tells."""

    tools = (*TOOLS, ToolSpec(name="browser_tabs", description="", parameters=_TABS))

    def __init__(self, play: BlamePlay) -> None:
        super().__init__()
        self._play = play
        self._pages = {address(to): page for to, page in play.web.items()}
        self._moves = list(play.moves)
        # Of the tabs; the frames of each page follow its own number.
        self._histories = [[""]]
        self._tab = self._frames = 0
        self._reported: set[str] = set()

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        self._go(address(HOME), cause="goto")

    async def observe(self) -> Page:
        tabs = tuple(
            Tab(index=index, title="", url=history[-1], current=index == self._tab)
            for index, history in enumerate(self._histories)
        )
        url = self._histories[self._tab][-1]
        links = []
        if url.startswith(BASES[OWN]):
            page = self._pages[url]
            result = map(address, (*page.links.values(), *page.frames))
            links = [(BASES[OWN], link) for link in result if not link.startswith(BASES[OWN])]
        return Page(url=url, title="", snapshot="- text", screenshot=b"\xff\xd8", tabs=tabs, links=tuple(links))

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        move = self._moves.pop(0)
        history = self._histories[self._tab]
        page = self._pages[history[-1]]
        referrer = self._referrer()
        match move.kind:
            case "go":
                self._go(address(move.to), cause="goto")
            case "tab":
                self._open_tab(address(move.to), cause="goto")
            case "select":
                self._tab = 0
            case "back":
                history.pop()
                self._go(history.pop(), cause="back")
            case "click" if move.to == "Way back":
                history.pop()
                self._go(history.pop())
            case "click" if move.to == "Trap in a tab":
                self._open_tab(address(page.links[move.to]), referrer=referrer)
            case "click":
                self._go(address({**page.links, **page.buttons}[move.to]), referrer=referrer)
        return ToolResult(ok=True, text="")

    def _referrer(self) -> str:
        url = self._histories[self._tab][-1]
        return "/".join(url.split("/", 3)[:3]) if self._play.sends_referrer else ""

    def _open_tab(self, url: str, **about: Any) -> None:
        self._tab = len(self._histories)
        self._histories.append([])
        self._go(url, **about)

    def _go(self, url: str, **about: Any) -> None:
        """Load a page with its frames, and where its script leads."""
        if about.get("cause") == "goto":
            self.hops.append(Hop(event="goto", url=url, tab=self._tab))
        text = self._load(url, frame=self._tab, tab=self._tab, **about)
        self._histories[self._tab].append(text)
        page = self._pages[text]
        for frame in page.frames:
            self._frames += 1
            frame_id = 1000 + self._frames
            self._load(address(frame), frame=frame_id, tab=self._tab, in_frame=True, referrer=self._referrer())
        if page.leads:
            self._histories[self._tab].pop()
            self._go(address(page.leads), referrer=self._referrer())

    def _load(self, url: str, **about: Any) -> str:
        chain = [url]
        while redirect := self._pages[chain[-1]].redirect:
            chain.append(address(redirect))
        hops = went(*chain, **about)
        if not self._moves and chain[-1] == address(self._play.trap):
            # It dies of the last request, so there is no document.
            self.hops += hops[:-1]
            raise BrowserFault("the browser was killed")
        self.hops += hops
        return chain[-1]
