"""A scenario's tasks as environments for training, from Python.

    async with environment("demo") as env:
        answer = await env.reset("deal_of_the_day")
        while not answer.done:
            answer = await env.step(policy(answer.text))
        print(answer.reward)

The scenario's sites and a browser run while the body does. `docs/training.md` says what a reward means.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from judge.commands.run import scenario_file
from judge.config import RewardKind
from judge.environment.host import EnvironmentHost, HostSettings
from judge.environment.opening import open_host
from judge.environment.session import EnvironmentSession
from shared.settings import Settings


@asynccontextmanager
async def environment(
    scenario: Path | str,
    *,
    reward: RewardKind | None = None,
    images: bool = False,
    idle_s: float = 600.0,
    record: Path | str | None = None,
    config: Mapping[str, Any] | None = None,
) -> AsyncIterator[EnvironmentSession]:
    """One session on a scenario: a file, or a bundled task set by its name.

    `reward`: what the scenario's `[config]` says, unless given. `images`: answers have the page's screenshot. `idle_s`:
    an episode without a reply for so many seconds is abandoned. `record`: the output folder in which episodes are kept.
    `config` are settings of `[config]` that differ from the scenario's.
    Raises `ConfigError` for a scenario that cannot be used, or whose sites do not start.
    """
    options = {"reward": reward, "images": images, "idle_s": idle_s, "record": record, "config": config}
    async with environments(scenario, 1, **options) as host:
        yield host.session()


@asynccontextmanager
async def environments(scenario: Path | str, sessions: int, **options: Any) -> AsyncIterator[EnvironmentHost]:
    """A host that has up to `sessions` sessions at once: `host.session()`. The options are `environment`'s."""
    options_set = {name: value for name, value in options.items() if value is not None}
    settings = Settings.from_environ()
    file = scenario_file(str(scenario), settings.bundled_scenarios)
    async with open_host(file, HostSettings(sessions=sessions, **options_set), settings) as host:
        yield host
