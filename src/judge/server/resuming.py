"""What a judge keeps of a run so that it can be continued after a stop: a digest of its token, and the request.

The token goes to the run's client only, and whoever has it may continue the run. A request that contains a secret is
not kept: its run waits until the client sends it again.
"""

import hashlib
import hmac
import logging
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judge.config import RunConfig
from judge.records.events import CONTINUES_KEY, RUN_ID_KEY, Continues
from judge.scenario.models import AssessmentRequest
from judge.store.layout import RUN_ID, RunStore, runs_in
from judge.store.run_files import RESUMING, SUBMISSION
from shared.a2a.tasks import Note
from shared.declarations import names_of
from shared.errors import ConfigError
from shared.files import read_json, write_json
from shared.models import Record

_log = logging.getLogger(__name__)
# Not in what `token_urlsafe` makes.
_SEPARATOR = "."
_TOKEN_BYTES = 32
# Of runs that were killed or stopped with their judge. Nobody cancelled them, and they did not fail by themselves.
_STOPPED = ("running", "stopped")


class Resumable(Record):
    """The content of `resuming.json`. `request` is `None` if the run waits for its client, or for its runner.

    `scenario` is the path of the scenario file that a runner started.
    """

    token_sha256: str
    request: AssessmentRequest | None = None
    scenario: str | None = None

    @property
    def continues(self) -> Continues:
        """Who continues the run after a stop."""
        return "itself" if self.request is not None else "on request"


def keep(store: RunStore, request: AssessmentRequest) -> str | None:
    """Keep what continues a run that begins. Returns its new token, `None` if it has one already. Raises `OSError`."""
    if _read(store) is not None:
        return None
    token = f"{store.run_id}{_SEPARATOR}{secrets.token_urlsafe(_TOKEN_BYTES)}"
    saved = Resumable(
        token_sha256=_digest(token),
        request=_without_run(request) if _is_continued_here(request) else None,
        scenario=request.launch.scenario_path if request.launch else None,
    )
    write_json(store.folder / RESUMING.name, saved.model_dump(mode="json", exclude_unset=True))
    return token


def run_of_token(output_dir: Path, token: str) -> str:
    """The id of the run that a token continues. Raises `ConfigError` for a token of no run here."""
    run_id = token.rpartition(_SEPARATOR)[0]
    saved = _read(RunStore(output_dir, run_id)) if RUN_ID.fullmatch(run_id) else None
    if saved is None or not hmac.compare_digest(saved.token_sha256, _digest(token)):
        raise ConfigError(
            "assessment request: resume_token belongs to no run of this judge",
            remedy="send the token of the run's first update, or leave it out to start a new run",
        )
    return run_id


def left_behind(output_dir: Path) -> list[tuple[RunStore, AssessmentRequest]]:
    """The runs that were stopped with their judge and need nothing to be continued, with their requests."""
    resumables = []
    for store in runs_in(output_dir):
        if not (store.folder / RESUMING.name).is_file() or store.is_being_judged:
            continue
        try:
            state = (store.read_run() or {}).get("state")
        except ConfigError as error:
            _log.warning("%s", error)
            continue
        # A judge may also be stopped between the end of a run and its submission, while browsers are being closed.
        is_stopped = state in _STOPPED or (state == "completed" and not (store.folder / SUBMISSION.name).exists())
        if is_stopped and (saved := _read(store)) is not None and saved.request is not None:
            resumables.append((store, saved.request))
    return resumables


def note_on_stop(output_dir: Path, metadata: Mapping[str, Any]) -> Note:
    """What the client of a stopped run should know, by its task's metadata: how the run continues."""
    run_id = metadata.get(RUN_ID_KEY)
    saved = _read(RunStore(output_dir, run_id)) if isinstance(run_id, str) and RUN_ID.fullmatch(run_id) else None
    if saved is None:
        return Note("Send the request again.")
    if saved.scenario:
        text = f"Continue with: wabe run {shlex.quote(saved.scenario)} --resume {run_id}, and the options of its start."
    else:
        again = 'send the same request again, with "resume_token" as the first update gave it.'
        text = f"Continue run {run_id}: {again}"
        if saved.request is not None:
            text = f"The judge continues run {run_id} as soon as it runs again. To follow it, {again}"
    return Note(text, {CONTINUES_KEY: saved.continues})


def _is_continued_here(request: AssessmentRequest) -> bool:
    """Whether the judge itself continues the run: it has no secret, no file, no runner, and a client that need not
    wait.
    """
    config = request.config
    secret = any(getattr(config, name) for name in names_of(RunConfig, lambda setting: setting.secret))
    secret = secret or any(task.storage_state is not None or task.http_credentials for task in request.tasks)
    secret = secret or any(task.files for task in request.tasks)
    return not (secret or request.participant_headers or request.launch or config.on_disconnect == "cancel")


def _without_run(request: AssessmentRequest) -> AssessmentRequest:
    # The folder says which run it is, and only a trusted request may.
    return request.model_copy(update={"config": request.config.model_copy(update={"run_id": None})})


def _read(store: RunStore) -> Resumable | None:
    """What is kept of a run; `None` if there is nothing, or if it cannot be read."""
    path = store.folder / RESUMING.name
    try:
        return Resumable.model_validate(read_json(path)) if path.is_file() else None
    except (OSError, ValueError, ValidationError) as error:
        _log.warning("%s: cannot be read: %s", path, type(error).__name__)
        return None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
