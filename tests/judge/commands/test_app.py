"""The command line as a whole: what it offers, and what a command has to wait for."""

import os
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from judge.commands.app import app, command_names, expand_resume, find_command


def test_the_help_names_every_command_with_a_line_of_what_it_does() -> None:
    lines = CliRunner().invoke(app, ["--help"]).output.partition("Commands:")[2].strip().splitlines()
    text = dict(line.split(None, 1) for line in lines)
    assert list(text) == list(command_names())


@pytest.mark.parametrize("name", command_names())
def test_every_command_has_a_help_of_its_own(name: str) -> None:
    answer = CliRunner().invoke(app, [name, "--help"])
    assert answer.exit_code == 0
    assert f"{name} [OPTIONS]" in answer.output


def test_a_mistyped_command_gets_a_suggestion() -> None:
    answer = CliRunner().invoke(app, ["docter"])
    assert answer.exit_code == 2
    assert "'doctor'" in answer.output


@pytest.mark.parametrize("name", command_names())
def test_every_command_ends_its_help_with_examples_that_can_be_parsed(name: str) -> None:
    assert find_command(name).examples
    command = typer.main.get_command(app)
    for example in find_command(name).examples:
        assert f"\n    {example}\n" in CliRunner().invoke(app, [name, "--help"]).output
        first, *words = expand_resume(shlex.split(example))
        assert first == "wabe"
        parse(command, words)


def parse(command: Any, words: list[str]) -> None:
    """Raises for an option that does not exist or a value that is none of the choices; runs nothing."""
    context = command.make_context("wabe", words)
    while isinstance(context.command, TyperGroup) and (context._protected_args or context.args):
        name, inner, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert inner is not None
        context = inner.make_context(name, rest, parent=context)


def modules_for(expression: str) -> tuple[str, set[str]]:
    """What an expression prints, and the names of the modules that are loaded then."""
    code = (
        f"import sys; from judge.commands.app import app, command_app; sys.argv = ['x']; {expression}\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, set(done.stderr.split())


LARGE = {"a2a", "mcp", "playwright", "httpx", "jinja2", "starlette"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    ["app(['run', '--help'], standalone_mode=False)", "command_app('run')(['--help'], standalone_mode=False)"],
    ids=["wabe", "agentbeats-run"],
)
def test_the_help_of_a_run_needs_none_of_the_large_libraries(expression: str) -> None:
    printed, loaded = modules_for(expression)
    assert "--fail-under" in printed
    # The options are derived from the settings, so `judge.config` is needed.
    assert loaded.isdisjoint(LARGE)


def test_the_list_of_commands_needs_neither_the_commands_nor_the_settings() -> None:
    printed, loaded = modules_for("app(['--help'], standalone_mode=False)")
    assert "Run an assessment." in printed
    assert loaded.isdisjoint(LARGE | {"judge.config", "judge.plugins"})
    assert {name for name in loaded if name.startswith("judge.commands.")} == {
        f"judge.commands.{name}" for name in ("app", "examples", "summary")
    }


def test_the_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"wabe {metadata.version('wabe')}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "typed", "offered"),
    [
        ("wabe", "wabe do", ["doctor"]),
        ("wabe", "wabe run d", ["demo", "docs"]),
        ("wabe", "wabe run demo --display p", ["plain"]),
        ("wabe", "wabe run demo --level e", ["easy"]),
        ("agentbeats-run", "agentbeats-run demo --fail", ["--fail-under"]),
    ],
)
def test_a_shell_completes_commands_options_and_values(program: str, typed: str, offered: list[str]) -> None:
    variable = f"_{program.upper().replace('-', '_')}_COMPLETE"
    environ = {variable: "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    command = [str(Path(sys.executable).parent / program)]
    done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered
