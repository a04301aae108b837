"""What a run's submission says beside its attempts, from other files of the run: metered calls, people's labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from judge.results.label_files import labels_folder
from judge.results.metering import published_of
from judge.store.layout import RunStore


def with_additions(submission: dict[str, Any], store: RunStore) -> dict[str, Any]:
    """The submission with what was metered and labelled in the run, if anything was. Raises `ConfigError`."""
    additions = published_of(store)
    if labels_folder(store).is_dir():
        # Imported here because few runs have labels when they end.
        from judge.results.corrections import labelled_detail

        additions |= labelled_detail(store)
    if not additions or not submission["results"]:
        return submission
    results: Sequence[Mapping[str, Any]] = submission["results"]
    first = {**results[0], "detail": {**results[0]["detail"], **additions}}
    return {**submission, "results": [first, *results[1:]]}
