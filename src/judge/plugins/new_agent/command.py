"""`wabe new-agent`: creates a folder with a working agent as a starting point for one's."""

import re
import shlex
from importlib import metadata, resources
from pathlib import Path
from typing import Annotated

import jinja2
import typer

from judge.commands import Command
from shared.errors import ConfigError
from shared.files import write_errors

FILES = ("agent.py", "scenario.toml", "Dockerfile", "README.md")


def new_agent(
    folder: Annotated[Path, typer.Argument(help="The folder to create; the agent is named after it.", metavar="DIR")],
) -> None:
    """Write a folder with an agent that runs as it is. It has a scenario that it plays, a Dockerfile and a README."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists already", remedy="choose another folder")
    # Also used as an image name, so restricted to its characters.
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-") or "agent"
    templates = resources.files(__package__) / "agent_template"
    # Not escaped, because the files are code and TOML, not HTML.
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
    with write_errors(folder, "choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for file in FILES:
            template = environment.from_string((templates / f"{file}.j2").read_text("utf-8"))
            (folder / file).write_text(template.render(name=name, version=metadata.version("wabe")), "utf-8")
    typer.echo(f"{folder}: {', '.join(FILES)}")
    # A plain name could also mean a bundled participant or a file.
    agent = folder if folder.is_absolute() or len(folder.parts) > 1 else f"./{folder}"
    typer.echo(f"next: wabe run demo --agent {shlex.quote(str(agent))}")


COMMAND = Command(new_agent, ("wabe new-agent my-agent",))
