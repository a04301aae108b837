"""What other files of a run say beside its attempts, such as calls that a meter saw, or labels of people.

Each kind is the part of a run of one plug-in (`shared.plugins.Plugin.run`). A part reads its files when it is asked.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from judge.results.corrected import Estimate
from judge.store.layout import RunStore
from judge.store.run_files import ENVELOPE, SUBMISSION
from shared.errors import ConfigError
from shared.files import read_json
from shared.plugins import ReportSection, plugins


class RunPart:
    """A part of the run in `store`. Every method may be left out; those that read files raise `ConfigError`.

    `keys` are its keys in the detail of a submission. `title` says whose its success rates are.
    `is_compared`: its section is shown for each run of a comparison.
    """

    keys: ClassVar[tuple[str, ...]] = ()
    is_compared: ClassVar[bool] = False
    title: ClassVar[str] = ""

    def __init__(self, store: RunStore) -> None:
        self.store = store

    def read(self) -> None:
        """Read its files, or the report of the run leaves it out: `wabe verify` reports what is damaged."""

    def totals(self) -> Mapping[str, Any]:
        """What the submission says of it, by key."""
        return {}

    def recorded_totals(self, detail: Mapping[str, Any]) -> Mapping[str, Any]:
        """The totals as they were when a submission with this detail was written."""
        return self.totals()

    def notes(self, detail: Mapping[str, Any]) -> Iterable[str]:
        """For `wabe verify`: what is odd, and contradicts nothing."""
        return ()

    def section(self, rows: Sequence[Any]) -> ReportSection | None:
        """The section of the report of a run with these rows (`AttemptRow`)."""
        return None

    def remark(self) -> str:
        """A line for the summary in Markdown."""
        return ""

    def estimate(self, tasks: Collection[str]) -> Estimate | None:
        """Another success rate over these tasks."""
        return None

    def growth(self, name: str, path: Path, sha256: str) -> str:
        """What was added to the file `name` since it had this digest; empty if it is another file, or changed."""
        return ""

    def join(self, shards: Sequence[RunStore]) -> None:
        """Add what the shards of the run have to its own files."""

    @classmethod
    def merged(cls, details: Sequence[Mapping[str, Any]], scored: Sequence[int]) -> Mapping[str, Any]:
        """The totals of submissions together, with so many scored attempts each."""
        return {}


def part_types() -> list[type[RunPart]]:
    """The parts that a run has."""
    return [plugin.run() for plugin in plugins().values() if plugin.run]


def parts_of(store: RunStore) -> tuple[RunPart, ...]:
    """The parts of a run."""
    return tuple(each(store) for each in part_types())


def with_totals(submission: dict[str, Any], store: RunStore) -> dict[str, Any]:
    """The submission with the present totals of the run's parts. Raises `ConfigError`."""
    if not submission["results"]:
        return submission
    first, *others = submission["results"]
    parts = parts_of(store)
    detail = {key: value for key, value in first["detail"].items() if not any(key in part.keys for part in parts)}
    for part in parts:
        detail |= part.totals()
    return {**submission, "results": [{**first, "detail": detail}, *others]}


def publish(store: RunStore, *, is_signed_again: bool = False) -> str:
    """Update a run's `results.json` with the present totals. Returns why it was left as it is; empty if it was not.

    A signed one changes only with its next signature. Raises `ConfigError`.
    """
    path = store.folder / SUBMISSION.name
    if not path.is_file() or store.folder != store.derived:
        return "without results.json, only reports have its totals"
    if store.is_in_progress:
        return "the run is being played or judged: its results are written when that has ended"
    if (store.folder / ENVELOPE.name).exists() and not is_signed_again:
        return "the run is signed: results.json changes when it is signed again (wabe sign)"
    try:
        submission = read_json(path)
        updated = with_totals(submission, store)
        if updated != submission:
            store.write_submission(updated)
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: the results could not be updated: {error}") from None
    return ""
