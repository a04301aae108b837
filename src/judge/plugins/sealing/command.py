"""`wabe tasks seal`: encrypts the tasks of a scenario."""

import os
from pathlib import Path
from typing import Annotated

import typer

from judge.commands import Command
from judge.plugins.sealing.sealing import seal as sealed_text
from judge.scenario.toml import SEALED, load_scenario, read_scenario_bytes
from judge.store.sealing import KEY_VARIABLE, SealKey
from shared.errors import ConfigError
from shared.files import decode, read_errors, read_text, write_atomic, write_errors
from shared.text import counted


def seal(
    file: Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO.toml")],
    key: Annotated[Path, typer.Option(help="The file of the key; a new key is written if there is none.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write. [default: SCENARIO.sealed, beside it]", metavar="FILE"),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The public name of the set. [default: the file's folder]")] = None,
    public_sites: Annotated[bool, typer.Option("--public-sites", help="Publish the websites' hosts.")] = False,
) -> None:
    """Encrypt the tasks of a scenario, with their checks, log-ins and reference scripts, into one file.

    Ids, levels, the number of tasks and a digest stay in the clear. A judge opens it with the key in WABE_SEAL_KEY.
    """
    target = output or file.with_suffix(SEALED)
    scenario = load_scenario(file)
    if scenario.sealed is not None:
        raise ConfigError(f"{file} is sealed already", remedy="give the scenario's TOML file")
    used, is_new = _key_of(key)
    set_name = name or file.resolve().parent.name
    text = sealed_text(scenario, decode(read_scenario_bytes(file)), used, name=set_name, with_sites=public_sites)
    with write_errors(target, "choose another --output"):
        write_atomic(target, text.encode())
    typer.echo(f"{target}: {counted(len(scenario.task_ids), 'task')} sealed with the key {used.id} in {key}")
    if is_new:
        typer.echo(f"The key is new. Keep it secret, and set {KEY_VARIABLE} to the content of {key} for the judge.")


def _key_of(path: Path) -> tuple[SealKey, bool]:
    """The key in a file, or a new one, written there; and whether it is new."""
    if path.exists():
        with read_errors(path, "give the file of a key"):
            return SealKey.read(read_text(path, max_bytes=1000), str(path)), False
    key = SealKey.new()
    with (
        write_errors(path, "choose another --key"),
        os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream,
    ):
        stream.write(f"{key.text}\n")
    return key, True


COMMAND = Command(seal)
