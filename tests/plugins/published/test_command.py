"""`wabe prompts import`."""

from pathlib import Path

from typer.testing import CliRunner

from judge.commands.app import app
from judge.judges.prompt_set import load_prompts
from judge.judges.webjudge import WebJudge
from plugins.published.evaluator_source import evaluator_source
from shared.errors import ConfigError


def test_an_evaluator_source_becomes_a_prompt_set_with_its_checksum(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(evaluator_source("general"))
    result = CliRunner().invoke(
        app, ["prompts", "import", str(tmp_path / "source.py"), "--output", str(tmp_path / "set")]
    )
    assert result.exit_code == 0, result.output
    prompts = load_prompts(tmp_path / "set")
    prompts.check(WebJudge.prompts, WebJudge.reminders, is_published=True)
    assert prompts.published is not None
    assert prompts.published.source_sha256 in result.output
    assert prompts.version == prompts.published.source_sha256[:12]


def test_a_folder_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(evaluator_source("general"))
    result = CliRunner().invoke(app, ["prompts", "import", str(tmp_path / "source.py"), "--output", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    assert "exists already" in str(result.exception)
