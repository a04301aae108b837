"""What a run runs on: entry points of `wabe.engines`."""

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from shared.errors import ConfigError
from shared.seams import Seam

# A store's address, after the object that opens it, if that is not an installed one: `package.module:NAME@s3://bucket`.
_OPENED_BY = re.compile(r"([A-Za-z_][\w.]*:[A-Za-z_]\w*)@(.*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What a run can run on. Each part is optional.

    `run` plays it (`--engine NAME`): a coroutine with options, settings and the console, which returns the exit code.
    `run_several` gets options, the scenarios by argument, and settings; it returns what plays them with a console, or
    `None` if they are one run.
    `shared_state` opens what shards share, with an address and the run's id (`shared.llm.sharing`). `object_store`
    opens a store of finished attempts, with an address (`judge.runner.uploads`). `meter` puts a meter between the
    participants and their models (`judge.runner.meter`). `merge_shards` makes one run of the shards in a run's folder,
    and returns its submission.
    """

    run: Callable[..., Coroutine[Any, Any, int]] | None = None
    run_several: Callable[..., Callable[[Any], Coroutine[Any, Any, int]] | None] | None = None
    shared_state: Callable[..., Any] | None = None
    object_store: Callable[[str], Any] | None = None
    meter: Callable[..., Any] | None = None
    merge_shards: Callable[..., dict[str, Any]] | None = None


# A store has the scheme of its addresses as its name.
ENGINES: Seam[Engine] = Seam("engines", "engine")


def opener_of(address: str) -> tuple[Engine | None, str]:
    """What opens a store, and the address that it opens. Raises `ConfigError` if it cannot be imported."""
    if match := _OPENED_BY.fullmatch(address):
        return ENGINES.resolve(match[1]), match[2]
    scheme, mark, _ = address.partition("://")
    return (ENGINES.find(scheme) if mark else None), address


def player_of(name: str) -> Callable[..., Coroutine[Any, Any, int]]:
    """What plays a run with `--engine NAME`, or `--engine module:attribute`. Raises `ConfigError`."""
    engine = ENGINES.resolve(name)
    if not isinstance(engine, Engine) or engine.run is None:
        players = [each for each in ENGINES.names() if ENGINES.load(each).run]
        raise ConfigError(f"--engine {name[:80]!r} does not play runs", remedy=f"one of: {', '.join(players)}")
    return engine.run
