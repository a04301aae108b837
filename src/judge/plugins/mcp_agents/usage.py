"""What a program says at its end that its model used: a claim, for comparison with a meter."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_EVERY = "*"


def usage_in(output: str, paths: Mapping[str, str]) -> dict[str, float] | None:
    """The values at `paths` in the last JSON object of the output that has any; `None` if there is none.

    The whole output may be one object, or each line. `*` in a path stands for every key: the values are added up.
    """
    for text in (output, *reversed(output.splitlines())):
        if text.lstrip().startswith("{"):
            try:
                document = json.loads(text)
            except (ValueError, RecursionError):
                continue
            found = {name: list(_at(document, path.split("."))) for name, path in paths.items()}
            if any(found.values()):
                return {name: sum(values) for name, values in found.items() if values}
    return None


def _at(value: Any, path: list[str]) -> Iterator[float]:
    if not path:
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield value
    elif isinstance(value, Mapping):
        for key in value if path[0] == _EVERY else [path[0]]:
            yield from _at(value.get(key), path[1:])
