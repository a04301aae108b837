"""A judge that does not accept the token of a run."""

from pathlib import Path

import pytest
from pydantic import SecretStr
from rich.console import Console

from helpers.a2a.agents import our_agent, served
from judge.runner.follow import require_admission
from judge.runner.options import RunOptions
from judge.runner.run import run
from shared.a2a.tasks import AgentMessage
from shared.errors import ConfigError
from shared.settings import Settings

TOKEN = SecretStr("token-planted-8a41")
SCENARIO = """
[green_agent]
endpoint = "{judge}"
[[participants]]
role = "p"
endpoint = "http://127.0.0.1:1"
cmd = "touch {mark}"
[[tasks]]
task_id = "t"
website = "https://shop.test/"
task = "Look."
"""


async def _unasked(turn: AgentMessage) -> str:
    raise AssertionError(turn)


@pytest.mark.parametrize(
    ("token", "problem"),
    [(None, "wants a token"), (SecretStr("another-token-1c55"), "does not accept this WABE_AUTH_TOKEN")],
)
async def test_a_wrong_token_is_found_before_any_agent_is_started(
    tmp_path: Path, token: SecretStr | None, problem: str
) -> None:
    async with served(our_agent(_unasked, auth_token=TOKEN)) as judge:
        path = tmp_path / "scenario.toml"
        path.write_text(SCENARIO.format(judge=judge, mark=tmp_path / "started"))
        options = RunOptions(scenario=path, output_dir=tmp_path / "out")
        with pytest.raises(ConfigError, match=problem):
            await run(options, Settings(auth_token=token), Console(quiet=True))
    assert not (tmp_path / "started").exists()


async def test_the_right_token_and_a_judge_that_does_not_answer_are_not_an_error_yet() -> None:
    async with served(our_agent(_unasked, auth_token=TOKEN)) as judge:
        await require_admission(judge, TOKEN)
    await require_admission(judge, None)
