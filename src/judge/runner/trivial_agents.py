"""`wabe run --trivial-agents`: the same tasks played by participants that know nothing, into the run's folder."""

from collections.abc import Awaitable, Callable

from rich.console import Console

from judge.results.trivial_agents import FOLDER, TRIVIAL_AGENTS
from judge.runner.boundary import Interrupted
from judge.runner.options import RunOptions
from judge.store.layout import RunStore
from shared.settings import Settings

Play = Callable[[RunOptions, Settings, Console], Awaitable[int]]


async def play_trivial_agents(
    store: RunStore, options: RunOptions, settings: Settings, console: Console, play: Play, resume: str
) -> None:
    """Play each of them, or continue where an earlier start was stopped. `resume` is the command that does so."""
    for player in TRIVIAL_AGENTS:
        console.out(f"Trivial agent {player}", highlight=False)
        try:
            await play(options.of_trivial_agent(player, store.folder / FOLDER), settings, console)
        except Interrupted:
            why = f"interrupted during the run of the trivial agent {player}, everything is stopped"
            raise Interrupted(why, remedy=f"resume with: {resume}") from None
