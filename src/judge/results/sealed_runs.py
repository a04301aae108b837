"""Runs of sealed task sets: their folders contain the tasks, so commands that would show them need the key."""

from collections.abc import Iterable
from contextlib import suppress

from judge.records.sealing import KEY_VARIABLE, key_in
from judge.store.layout import RunStore
from judge.trajectory.files import read_result
from shared.errors import ConfigError, TrajectoryError
from shared.settings import Settings


def is_sealed(store: RunStore) -> bool:
    """Whether the run has an attempt at a task of a sealed set."""
    for task in store.tasks():
        with suppress(TrajectoryError, OSError):
            return bool(read_result(task.folder).get("sealed"))
    return False


def require_seal_key(stores: Iterable[RunStore], settings: Settings, remedy: str = "") -> None:
    """Raises `ConfigError` for a run of a sealed set without a key.

    Whoever has the folder has the tasks; this keeps a command in a public workflow from publishing them by accident.
    """
    if key_in(settings.seal_key) is None and (sealed := next((each for each in stores if is_sealed(each)), None)):
        raise ConfigError(
            f"run {sealed.run_id} is of a sealed task set, and this would show its tasks",
            remedy=f"{remedy}set {KEY_VARIABLE} if nobody else will see it",
        )
