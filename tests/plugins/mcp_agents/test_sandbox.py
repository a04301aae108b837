"""What a program can reach, by kind of sandbox."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.browser.hostile_site import hostile_site
from judge.plugins.mcp_agents.mcp import create
from judge.plugins.mcp_agents.sandbox import require_loopback, require_sandbox, shown_paths
from participants.base import ParticipantOptions
from plugins.mcp_agents.playing import playing, program
from shared.errors import ConfigError
from shared.settings import Settings

# Whether each of these can be reached: the expected values, the judge's variables, the site, and the model's meter.
LOOK = """
import os, pathlib, urllib.request
def can(work):
    try:
        return bool(work())
    except OSError:
        return False
print('REACHED', [
    can(lambda: pathlib.Path({expected!r}).read_text()),
    any(can(lambda: b'SECRET_OF_JUDGE' in p.read_bytes()) for p in pathlib.Path('/proc').glob('[0-9]*/environ')),
    can(lambda: urllib.request.urlopen({site!r}, timeout=5).read()),
    can(lambda: urllib.request.urlopen(os.environ['OPENAI_BASE_URL'], timeout=5).read()),
])
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_sandboxed", [False, True])
async def test_a_sandboxed_program_reaches_its_tools_and_its_model_only(tmp_path: Path, *, is_sandboxed: bool) -> None:
    if is_sandboxed:
        require_sandbox()
    expected = tmp_path / "expected.toml"
    expected.write_text("answer = 42")
    judge_of = subprocess_with_secret()
    try:
        with hostile_site({"/": "the site"}) as site, hostile_site({"/": "the meter"}) as meter:
            look = LOOK.format(expected=str(expected), site=site.url)
            settings = Settings.from_environ({**os.environ, "OPENAI_BASE_URL": meter.url})
            script = program(look, "call('browser_click')", "call('finish')")
            async with playing(script, tmp_path / "logs", sandbox=is_sandboxed, settings=settings) as judge:
                assert (await judge.show())[0] == "browser_click"
                assert (await judge.show())[0] == "finish"
    finally:
        judge_of.kill()
        judge_of.wait()
    log = (tmp_path / "logs" / "attempt.log").read_text()
    assert f"REACHED {[*[not is_sandboxed] * 3, True]}" in log


def subprocess_with_secret() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], env={"SECRET_OF_JUDGE": "key"}, stdin=subprocess.DEVNULL
    )


def test_the_program_and_its_installation_are_shown_but_no_home_folder(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.touch()
    shown = shown_paths([sys.executable, str(script), "word"], tmp_path / "work")
    assert shown[str(script)] is False
    assert shown[str(tmp_path / "work")] is True
    assert str(tmp_path) not in shown
    assert str(Path(sys.executable).parent.parent) in shown


def test_a_model_elsewhere_cannot_be_asked_from_a_sandbox() -> None:
    with pytest.raises(ConfigError, match=r"ANTHROPIC_BASE_URL is not an address on this machine.*--meter"):
        require_loopback({"ANTHROPIC_BASE_URL": "https://api.model.example/"})


def test_a_preset_whose_model_is_not_declared_is_refused() -> None:
    with pytest.raises(ConfigError, match="where opencode asks its model is not known"):
        create(ParticipantOptions(command="opencode", sandbox=True))
