"""Plays a script: finds the elements it names in the snapshot it is sent, asks no model, always does the same.

The script is given by `--script` or `WABE_REPLAY_SCRIPT`; several files are joined by the system's path separator
(`:`; `;` on Windows). Without one, those of the task sets that come with WABE are played. The format is in
`participants.replay_script`.
"""

import os
from pathlib import Path

from participants.base import Decide, ParticipantOptions, Reply, per_episode
from participants.replay_player import Player
from participants.replay_script import ScriptBook, load_book
from shared.errors import ConfigError
from shared.models import Action, Observation


def create(options: ParticipantOptions) -> Decide:
    """A replay participant. Raises `ConfigError` when there is no script at all, or for one that cannot be used."""
    written = options.script or options.settings.replay_script or ""
    paths = [Path(part) for part in written.split(os.pathsep) if part]
    paths = paths or sorted(options.settings.scenarios_folder.glob("*/replay.toml"))
    if not paths:
        raise ConfigError(
            "the replay participant has no script", remedy="give --script FILE, or set WABE_REPLAY_SCRIPT"
        )
    book = load_book(paths)
    return per_episode(lambda: _Episode(book).reply)


class _Episode:
    """One episode: the script is chosen by the first message, which alone holds the task."""

    def __init__(self, book: ScriptBook) -> None:
        self._book = book
        self._player: Player | None = None

    async def reply(self, observation: Observation) -> Reply:
        """The reply to one message."""
        if observation.instruction is not None:
            script = self._book.find(observation.instruction, observation.website)
            self._player = None if script is None else Player(script)
        if self._player is None:
            answer = "There is no script for this task."
            return Action(tool="finish", params={"answer": answer}, thought=answer)
        return self._player.reply(observation.page.snapshot, observation.feedback)
