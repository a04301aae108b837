"""The results of participants that know nothing (`wabe run --trivial-agents`), kept in the folder of the run."""

from judge.results.entries import rate_of, read_entries
from judge.results.rates import Rate
from judge.results.submission import read_submissions
from judge.store.layout import RunStore
from shared.errors import ConfigError

# The folder of a run that contains `runs/<participant>`.
FOLDER = "baselines"
# `random` acts at random with seed 0, `idle` finishes at once.
TRIVIAL_AGENTS = ("random", "idle")


def trivial_rates_of(store: RunStore) -> dict[str, Rate]:
    """The rate of each trivial agent played with the run; one without readable results is left out."""
    rates: dict[str, Rate] = {}
    for player in TRIVIAL_AGENTS:
        path = store.folder / FOLDER / "runs" / player / "results.json"
        if not path.is_file():
            continue
        try:
            entries = [
                entry
                for submission in read_submissions(path)
                for result in submission["results"]
                for entry in result["detail"]["tasks"]
            ]
        except (ConfigError, KeyError, TypeError):
            continue
        rates[player] = rate_of(read_entries(entries))
    return rates
