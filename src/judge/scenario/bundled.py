"""Task sets that come with the judge, for requests that name one (`config.scenario`)."""

from pathlib import Path

from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.models import Task


def bundled_tasks(name: str, folder: Path) -> tuple[Task, ...]:
    """The tasks of `<folder>/<name>/scenario.toml`. Raises `ConfigError` when there is no such set."""
    known = sorted(path.parent.name for path in folder.glob("*/scenario.toml"))
    if name not in known:
        raise ConfigError(
            f"config.scenario {name[:60]!r} is no bundled task set", remedy=f"one of: {', '.join(known) or 'none here'}"
        )
    return load_scenario(folder / name / "scenario.toml").tasks
