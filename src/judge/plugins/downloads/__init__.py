"""Downloads: the files that a task's site starts to download are kept, and checks of kind `download` compare them."""

from typing import Any

from shared.plugins import Plugin


def part(stage: Any) -> Any:
    """What attempts record of them."""
    from judge.plugins.downloads.part import Downloads

    return Downloads(stage)


PLUGIN = Plugin(part=part)
