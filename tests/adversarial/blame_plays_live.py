"""Plays of `blame_plays` in a real browser: two websites on loopback, one of which is the task's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from helpers.browser.hostile_site import Handler, Site, hostile_site
from helpers.episode.blame_plays import ELSEWHERE, HOME, OWN, BlamePlay, Move, WebPage, address
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, crash, finish, ref, tool_call
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks
from judge.network.policy import NetworkPolicy

ATTEMPTS = 2


@contextmanager
def two_sites() -> Iterator[dict[str, Site]]:
    """The task's site and another one, by the words that stand for them in addresses.

    The network guard lets this machine's other sites pass, as it would public ones.
    """
    with pytest.MonkeyPatch.context() as monkeypatch, hostile_site() as own, hostile_site() as elsewhere:
        monkeypatch.setattr(NetworkPolicy, "refuse_address", lambda *_: None)
        monkeypatch.setattr("judge.network.guard.is_this_machine", lambda _: False)
        yield {OWN: own, ELSEWHERE: elsewhere}


class _LivePlay:
    """Serves the pages of a play below a folder of its own, and plays its moves; the last one arms the trap."""

    def __init__(self, play: BlamePlay, folder: str, sites: Mapping[str, Site], judge: LiveJudge) -> None:
        self._play = play
        self._judge = judge
        self._is_armed = False
        self._bases = {site: f"{served.url}{folder}" for site, served in sites.items()}
        self.website = address(HOME, self._bases)
        for to, page in play.web.items():
            site, _, path = to.partition(":")
            sites[f"{site}:"].pages[f"/{folder}{path.partition('?')[0]}"] = self._answer(to, page)

    def _answer(self, to: str, page: WebPage) -> Callable[[Handler], None]:
        def answer(handler: Handler) -> None:
            if to == self._play.trap and self._is_armed:
                crash(self._judge.browser_files)
            if page.redirect:
                handler.redirect(address(page.redirect, self._bases))
            else:
                handler.send(self._html(page).encode(), Cache_Control="no-store")

        return answer

    def _html(self, page: WebPage) -> str:
        policy = "" if self._play.sends_referrer else '<meta name="referrer" content="no-referrer">'
        parts = [f"{policy}<title>Page</title><input aria-label='Field'>"]
        for name, to in page.links.items():
            target = " target=_blank" if name.endswith("in a tab") else ""
            parts.append(f"<a href='{address(to, self._bases)}'{target}>{name}</a> ")
        for name, to in page.buttons.items():
            parts.append(f"<button onclick=\"location = '{address(to, self._bases)}'\">{name}</button>")
        if page.has_back:
            parts.append("<button onclick='history.back()'>Way back</button>")
        parts += [f"<iframe src='{address(to, self._bases)}'></iframe>" for to in page.frames]
        if page.leads:
            parts.append(f"<script>location = '{address(page.leads, self._bases)}'</script>")
        return "".join(parts)

    def script(self, turn: ParticipantTurn) -> str:
        """The participant's reply: the next move."""
        if turn.n >= len(self._play.moves):
            return finish()
        if turn.n == 0:
            self._is_armed = False
        self._is_armed |= turn.n == len(self._play.moves) - 1
        return self._reply(self._play.moves[turn.n], turn)

    def _reply(self, move: Move, turn: ParticipantTurn) -> str:
        match move.kind:
            case "click":
                kind = "button" if move.to in ("Button", "Way back") else "link"
                return tool_call("browser_click", ref=ref(turn, f'{kind} "{move.to}"'))
            case "go":
                return tool_call("browser_navigate", url=address(move.to, self._bases))
            case "tab":
                return tool_call("browser_tabs", action="new", url=address(move.to, self._bases))
            case "select":
                return tool_call("browser_tabs", action="select", index=0)
            case "write":
                return tool_call("browser_type", ref=ref(turn, 'textbox "Field"'), text="desk")
            case "press":
                return tool_call("browser_press_key", key="Shift")
            case "back":
                return tool_call("browser_navigate_back")
        return tool_call("browser_wait_for", time=0.1)


async def play_live(judge: LiveJudge, plays: Sequence[BlamePlay], sites: Mapping[str, Site]) -> list[PlayedTask]:
    """Play one after the other, because the trap kills every browser of the judge."""
    live = [_LivePlay(play, f"p{number}", sites, judge) for number, play in enumerate(plays)]
    scripts: list[Script] = [each.script for each in live]
    tasks = {f"{n}": Play(scripts[n], each.website) for n, each in enumerate(live)}
    done = await play_tasks(judge, tasks, max_steps=30, max_task_retries=ATTEMPTS - 1)
    return [done[f"{number}"] for number in range(len(plays))]


def fault_of(task: PlayedTask) -> str:
    """Whose fault an attempt counts as; the participant's only if it was not played again."""
    attempts = task.result()["attempt"]
    match task.verdict:
        case ("failure", "participant_error"):
            return "participant" if attempts == 1 else f"participant after {attempts} attempts"
        case ("aborted", "environment_fault"):
            return "site"
    return task.summary()
