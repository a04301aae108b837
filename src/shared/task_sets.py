"""The task sets that come with WABE: folders with a scenario and the files it needs."""

from pathlib import Path

from shared.settings import Settings

_INSTALLED = Path(__file__).parent / "scenarios"
_SOURCE_TREE = Path(__file__).parents[2] / "scenarios"


def task_sets_folder(settings: Settings) -> Path:
    """The folder of the sets: `WABE_SCENARIOS` (as in images), else the one in the wheel, or in the source tree."""
    if settings.scenarios:
        return Path(settings.scenarios)
    return _INSTALLED if _INSTALLED.is_dir() else _SOURCE_TREE


def task_sets(settings: Settings) -> dict[str, Path]:
    """The scenario file of each set, by the set's name."""
    return {path.parent.name: path for path in sorted(task_sets_folder(settings).glob("*/scenario.toml"))}
