"""Errors as a user sees them."""

import asyncio
import os
import signal

import pytest
import typer

from judge.runner.boundary import Interrupted, run_command, run_interruptible
from shared.errors import ConfigError, WabeError


def left_with(
    capsys: pytest.CaptureFixture[str], error: Exception | None = None, *arguments: str
) -> tuple[object, str]:
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def main(number: int = 1) -> None:
        if error:
            raise error

    with pytest.raises(SystemExit) as left:
        run_command(app, list(arguments), name="it")
    return left.value.code, capsys.readouterr().err


def test_nothing_wrong_leaves_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_with(capsys) == (0, "")


def test_a_users_mistake_is_one_line_with_its_remedy_and_leaves_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError("s.toml: [config].max_steps: 0 is too few", remedy="give 1 or more")
    assert left_with(capsys, error) == (2, "error: s.toml: [config].max_steps: 0 is too few (give 1 or more)\n")


def test_another_failure_leaves_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_with(capsys, WabeError("the judge is gone")) == (1, "error: the judge is gone\n")


def test_an_interruption_leaves_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_with(capsys, Interrupted("interrupted", remedy="resume with: x"))[0] == 130


def test_an_option_of_the_wrong_type_names_it_and_leaves_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = left_with(capsys, None, "--number", "many")
    assert code == 2
    assert "--number': 'many' is not a whole number (see" in text
    assert "it --help" in text


def test_a_signal_cancels_and_lets_the_work_clean_up(capsys: pytest.CaptureFixture[str]) -> None:
    cleaned: list[bool] = []

    async def work() -> int:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(30)
        finally:
            # A second signal must not break the clean-up off.
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
            cleaned.append(True)
        return 0

    with pytest.raises(Interrupted):
        run_interruptible(work())
    assert cleaned == [True]
    assert "stopping" in capsys.readouterr().err


def test_a_group_without_a_command_answers_with_its_help_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True)
    app.command("one")(lambda: None)
    app.command("two")(lambda: None)
    with pytest.raises(SystemExit) as left:
        run_command(app, [], name="it")
    output = capsys.readouterr().err.splitlines()
    assert left.value.code == 2
    assert output[0] == "Usage: it [OPTIONS] COMMAND [ARGS]..."
    assert [line.strip() for line in output[-2:]] == ["one", "two"]
