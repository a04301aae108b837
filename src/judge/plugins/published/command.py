"""`wabe prompts`: prompt sets for judge models."""

from pathlib import Path
from typing import Annotated

import typer

from judge.commands import Command, plain_app
from judge.judges.prompt_set import load_prompts
from judge.judges.webjudge import WebJudge
from judge.plugins.published.source import read_source, write_prompts
from shared.errors import ConfigError
from shared.files import write_errors

prompts = plain_app(no_args_is_help=True)


@prompts.callback()
def group() -> None:
    """Prompt sets for judge models."""


@prompts.command("import")
def import_prompts(
    file: Annotated[Path, typer.Argument(help="webjudge_online_mind2web.py or webjudge_general_eval.py.")],
    output: Annotated[Path, typer.Option(help="The folder of the new prompt set.", metavar="DIR")],
) -> None:
    """Make a prompt set from your copy of Online-Mind2Web's evaluator. The file is read, never executed."""
    published = read_source(file)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"{output} exists already", remedy="choose another --output")
    bundled = load_prompts(None)
    reminders = {f"reminder_{kind}.txt": bundled.reminder(kind) + "\n" for kind in WebJudge.reminders}
    with write_errors(output, "choose another --output"):
        write_prompts(published, output, reminders)
    typer.echo(f"{output}: the {published.variant} variant, SHA-256 of its source {published.source_sha256}")
    typer.echo(f'use it with prompts = "{output}"; fidelity = "published" also reads replies as the source does')


COMMAND = Command(prompts, ("wabe prompts import webjudge_online_mind2web.py --output prompts",))
