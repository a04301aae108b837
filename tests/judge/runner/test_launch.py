"""Who takes part in a local run, and where their logs go."""

from pathlib import Path

import pytest

from helpers.ports import free_port
from judge.runner.launch import Member, running_cast
from shared.errors import ConfigError

ROLES = ("white_agent", "my agent", "агент", "a_b", "a/b", "../../up", "..", ".hidden", "long " * 20)


async def test_a_role_may_have_any_name_and_its_log_stays_in_the_folder(tmp_path: Path) -> None:
    members = tuple(
        Member(name=role, endpoint=f"http://127.0.0.1:{free_port()}", cmd="true", is_agent=False) for role in ROLES
    )
    logs = tmp_path / "run" / "logs"
    with pytest.raises(ConfigError, match="ended with exit code 0"):
        async with running_cast(members, scenario_dir=tmp_path, environ={"PATH": "/bin:/usr/bin"}, logs=logs):
            pass
    assert len(list(logs.glob("*.log"))) == len(list(logs.iterdir())) == len(ROLES)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (logs / "white_agent.log").is_file()
