"""`wabe sign`: a signed statement about the files of a run."""

from pathlib import Path
from typing import Annotated

import typer

from judge.commands import Command, OutputDir
from judge.plugins.verification.signing import sign_run
from judge.store.layout import output_folder, resolve_run, run_at
from shared.text import counted


def sign(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its folder, wherever it is, or `latest`.")],
    key: Annotated[Path, typer.Option(metavar="FILE", help="Your private Ed25519 key, as PEM or OpenSSH.")],
    output_dir: OutputDir = None,
) -> None:
    """Sign a run: write an in-toto statement with the SHA-256 of each of its files, in a DSSE envelope.

    `wabe verify RUN --key FILE` checks it. Reports and exports are left out, because they can be made again.
    """
    folder, output = Path(run), output_folder(output_dir)
    store = (run_at(folder, output) if folder.is_dir() else None) or resolve_run(run, output)
    path, fingerprint, files = sign_run(store, key)
    typer.echo(f"{path}: {counted(files, 'file')}, signed with {fingerprint}")


COMMAND = Command(sign, ("wabe sign latest --key key.pem",))
