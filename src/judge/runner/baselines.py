"""`wabe run --baselines`: the same tasks played by participants that know nothing, into the run's own folder."""

from collections.abc import Awaitable, Callable

from rich.console import Console

from judge.results.baselines import BASELINES, FOLDER
from judge.runner.boundary import Interrupted
from judge.runner.options import RunOptions
from judge.store.layout import RunStore
from shared.settings import Settings

Play = Callable[[RunOptions, Settings, Console], Awaitable[int]]


async def play_baselines(
    store: RunStore, options: RunOptions, settings: Settings, console: Console, play: Play, resume: str
) -> None:
    """Play each of them, or continue where an earlier start was stopped. `resume` is the command that does so."""
    for player in BASELINES:
        console.out(f"Baseline {player}", highlight=False)
        try:
            await play(options.of_trivial_agent(player, store.folder / FOLDER), settings, console)
        except Interrupted:
            why = f"interrupted during the baseline {player}, everything is stopped"
            raise Interrupted(why, remedy=f"resume with: {resume}") from None
