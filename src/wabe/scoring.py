"""Judges stored trajectories from Python, like `wabe score` without its output."""

from contextlib import aclosing
from pathlib import Path

from judge.config import RunConfig
from judge.judges.factory import open_judge
from judge.judges.rescoring import Scored
from judge.judges.stored import find_trajectories, score_all
from shared.settings import Settings


async def score(
    folder: Path | str, config: RunConfig | None = None, *, max_parallel: int = 8, again: bool = False
) -> list[Scored]:
    """Judge every trajectory in or under `folder`, by its checks or with the judge model of `config`.

    Without `config` only checks count: a task without checks is unscored. Verdicts are written to `verdicts/` beside
    each trajectory; an existing one of a judge model is kept unless `again` is set. The model's key is read from the
    environment.
    Raises `ConfigError` for an unknown judge model, a missing key, or a folder without trajectories.
    """
    config = config or RunConfig(judge_model="offline")
    folders = find_trajectories(Path(folder))
    scored: list[Scored] = []
    async with aclosing(open_judge(config, Settings.from_environ(), cache_dir=None)) as judge:
        await score_all(
            folders, judge, max_parallel=max_parallel, off_site=config.off_site, again=again, done=scored.append
        )
    return scored
