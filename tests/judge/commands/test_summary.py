"""What a command does is read from its source, and is what Typer would say."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from judge.commands.app import app, command_app, command_names
from judge.commands.summary import summary_of


@pytest.mark.parametrize("name", command_names())
def test_the_list_of_commands_has_the_first_sentence_of_each_commands_help(name: str) -> None:
    output = CliRunner().invoke(app, ["--help"]).output
    (line,) = [line.split(None, 1)[1] for line in output.splitlines() if line.split()[:1] == [name]]
    whole = typer.main.get_command(command_app(name)).get_short_help_str(1_000)
    assert whole == line or (line.endswith("...") and whole.startswith(line.removesuffix("...")))


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ('def hello():\n    """Say hello."""\n', "Say hello."),
        ('hello = Typer(help="Greetings.")\n', "Greetings."),
        ('hello = Typer()\n@hello.callback()\ndef group():\n    """Many greetings."""\n', "Many greetings."),
        ('hello = Typer(help=TEXT)\n@hello.callback()\ndef group():\n    """Greet."""\n', "Greet."),
        ('hello = Typer(help="A.")\n@hello.callback()\ndef group():\n    """B."""\n', "A."),
        ("def hello():\n    pass\n", None),
        ('def other():\n    """Say hello."""\n', None),
        ("def hello(:\n", None),
    ],
)
def test_a_summary_is_that_of_the_function_or_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, summary: str | None
) -> None:
    (tmp_path / "greeting.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert summary_of("greeting", "hello") == summary


def test_a_module_that_does_not_exist_has_no_summary() -> None:
    assert summary_of("judge.nowhere", "hello") is None
