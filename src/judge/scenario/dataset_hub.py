"""The Online-Mind2Web dataset through the `datasets` package. The package is optional and found at run time."""

import importlib
from types import ModuleType

from judge.scenario.sources import dataset_tasks
from shared.errors import ConfigError
from shared.models import Task

DATASET = "osunlp/Online-Mind2Web"
_SPLIT = "test"


def hub_tasks() -> tuple[Task, ...]:
    """All tasks of the dataset. Raises `ConfigError` when the package is missing or the dataset is out of reach."""
    hub = _package()
    try:
        records = [dict(record) for record in hub.load_dataset(DATASET, split=_SPLIT)]
    # The package raises errors of every kind (network, access, its own): each means that there is no data.
    except Exception as error:  # noqa: BLE001
        raise ConfigError(
            f"dataset {DATASET} cannot be loaded: {type(error).__name__}: {str(error).splitlines()[:1]!a:.200}",
            remedy="ask for access on its page and log in, or give its JSON file",
        ) from None
    return dataset_tasks(records, DATASET)


def _package() -> ModuleType:
    try:
        return importlib.import_module("datasets")
    except ImportError:
        raise ConfigError(
            "no dataset file given, and the package 'datasets' is not installed",
            remedy="give the dataset's JSON file, or: pip install datasets",
        ) from None
