"""A program plays over MCP what a judge asks over A2A: turns, ends, faults, and what is left of its processes."""

import shlex
from pathlib import Path

import pytest

from judge.plugins.mcp_agents.mcp import create
from participants.base import ParticipantOptions
from plugins.mcp_agents.playing import MARK, SDK_PROGRAM, Judge, playing, program
from shared.errors import ConfigError, ParticipantError

pytestmark = pytest.mark.slow


async def test_calls_are_replies_and_results_the_next_pages(tmp_path: Path) -> None:
    script = program("print(tools())", "print(call('browser_click', target='e1'))", "print(call('finish', answer='a'))")
    async with playing(script, tmp_path) as judge:
        assert await judge.show() == ("browser_click", {"target": "e1"})
        assert await judge.show() == ("finish", {"answer": "a"})
    log = (tmp_path / "attempt.log").read_text()
    assert "['current_page', 'browser_click', 'finish']" in log
    # The result is the page after the action, without the task, and its picture.
    assert "Page: http://shop.test/\nTitle: page 1" in log
    assert "Buy a lamp" not in log
    assert "[image]\nThe task has ended." in log
    assert "[2 calls; the largest result had " in log


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["print('no keys')"], r"never used a tool: it ended with status 0: no keys"),
        (["import sys; print('bad'); sys.exit(3)"], r"never used a tool: it ended with status 3: bad"),
        (["import os; os.kill(os.getpid(), 9)"], r"never used a tool: it ended by SIGKILL"),
    ],
)
async def test_a_program_that_never_uses_a_tool_is_a_fault_of_its_own(
    tmp_path: Path, statements: list[str], said: str
) -> None:
    async with playing(program(*statements), tmp_path) as judge:
        with pytest.raises(ParticipantError, match=said):
            await judge.show()


async def test_a_look_at_the_page_is_a_use_of_a_tool(tmp_path: Path) -> None:
    async with playing(program("call('current_page')"), tmp_path) as judge:
        assert await judge.show() == ("finish", {})
    script = program("call('current_page')", "import os; os.kill(os.getpid(), 9)")
    async with playing(script, tmp_path) as judge:
        with pytest.raises(ParticipantError, match="the command ended by SIGKILL"):
            await judge.show()


async def test_a_program_that_ends_well_after_a_call_has_finished_without_an_answer(tmp_path: Path) -> None:
    async with playing(program("call('browser_click')"), tmp_path) as judge:
        assert (await judge.show())[0] == "browser_click"
        assert await judge.show() == ("finish", {})


async def test_a_program_that_breaks_off_has_failed(tmp_path: Path) -> None:
    script = program("call('browser_click')", "import sys; print('quota'); sys.exit(2)")
    async with playing(script, tmp_path) as judge:
        await judge.show()
        with pytest.raises(ParticipantError, match=r"the command ended with status 2: quota"):
            await judge.show()


async def test_a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    async with playing("no-such-program {mcp_url}", tmp_path) as judge:
        with pytest.raises(ParticipantError, match=r"cannot start no-such-program: No such file"):
            await judge.show()


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
async def test_the_oldest_and_newest_revision_with_sessions_are_spoken(tmp_path: Path, revision: str) -> None:
    asked = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    script = program(
        f"VERSION = {revision!r}; spoken = post('initialize', {asked!r})['result']['protocolVersion']",
        "tools(); call('browser_click'); call('finish', answer=spoken)",
    )
    async with playing(script, tmp_path) as judge:
        assert [await judge.show() for _ in range(2)] == [("browser_click", {}), ("finish", {"answer": revision})]


async def test_the_official_sdk_plays(tmp_path: Path) -> None:
    calls = ('{"name": "browser_click", "arguments": {"target": "e1"}}', '{"name": "finish"}')
    async with playing(f"{SDK_PROGRAM} {shlex.join(calls)}", tmp_path) as judge:
        assert await judge.show() == ("browser_click", {"target": "e1"})
        assert await judge.show() == ("finish", {})
    assert '[image]"\n"The task has ended."' in (tmp_path / "attempt.log").read_text()


@pytest.mark.parametrize(
    "statement",
    [
        "import time; time.sleep(600)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600) # {MARK}'],"
        " start_new_session=True)",
    ],
    ids=["hangs", "ignores SIGTERM", "leaves a child in a session of its own"],
)
async def test_nothing_is_left_running_after_the_end(tmp_path: Path, statement: str) -> None:
    async with playing(program("call('browser_click')", statement), tmp_path) as judge:
        await judge.show()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("os.environ['WABE_MCP_TOKEN'] = 'guess'", "HTTP 401"),
        ("os.environ['WABE_MCP_URL'] = os.environ['WABE_MCP_URL'].replace('/mcp', 'x/mcp')", "HTTP 404"),
        (
            "VERSION = '2099-01-01'",
            r"POST, revision 2099-01-01, .*tools/list.*HTTP 400 .*spoken is MCP over .* 2024-11-05 to",
        ),
        ("post('message/send', {})['result']", "message/send.*Method not found.*spoken is MCP"),
    ],
)
async def test_what_is_not_spoken_here_is_refused_and_said(tmp_path: Path, change: str, said: str) -> None:
    script = program("import os, urllib.error", change, "tools()")
    async with playing(script, tmp_path) as judge:
        with pytest.raises(ParticipantError, match=rf"never used a tool: .*{said}"):
            await judge.show()


async def test_output_is_bounded_and_redacted(tmp_path: Path) -> None:
    script = program(
        "import os; print('token', os.environ['WABE_MCP_TOKEN'])",
        "print('x' * 79 + chr(10), end='', flush=True); [print('y' * 79) for _ in range(9_000)]; print('the end')",
        "call('finish')",
    )
    async with playing(script, tmp_path) as judge:
        await judge.show()
    log = (tmp_path / "attempt.log").read_text()
    assert log.startswith("token [redacted]\n")
    assert "the end" in log
    assert "characters left out]" in log
    assert len(log) < 202_000


_REMEMBERS = program("open('memory', 'a').write('x'); print('memory:', open('memory').read())", "call('finish')")


@pytest.mark.parametrize(("fresh", "second"), [("attempt", "memory: x\n"), ("run", "memory: xx\n")])
async def test_a_program_remembers_what_is_in_its_folder_only_if_that_is_asked_for(
    tmp_path: Path, fresh: str, second: str
) -> None:
    async with playing(_REMEMBERS, tmp_path, fresh=fresh) as judge:
        await judge.show()
        await judge.client.end(judge.context)
        other = Judge(judge.client, "other")
        await other.show()
        await judge.client.end(other.context)
    assert second in (tmp_path / "other.log").read_text()


async def test_programs_that_share_a_folder_play_one_at_a_time(tmp_path: Path) -> None:
    async with playing(_REMEMBERS, tmp_path, fresh="run") as judge:
        await judge.show()
        with pytest.raises(ParticipantError, match="set max_parallel = 1"):
            await Judge(judge.client, "other").show()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "has no --command"),
        ("claud", r"did you mean .*claude.*presets: claude, codex, gemini, opencode"),
        ("agent {url}", r"unknown placeholder \{url\}.*\{mcp_url\}, \{mcp_token\}"),
        ("agent 'a", "close the quotes"),
    ],
)
def test_a_command_that_cannot_be_used_is_refused_at_the_start(command: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        create(ParticipantOptions(command=command))
