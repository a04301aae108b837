"""A cache of model replies with single flight: what was asked once, or is being asked, is not asked again.

On disk the replies outlive the process, so an interrupted run pays for nothing twice. A reply is keyed by the model,
the prompt set and a hash of everything sent.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from shared.llm.model import Completion, Model, ModelRequest

log = logging.getLogger(__name__)


class CachedModel:
    """A model whose replies are kept under `folder`, or in memory when that is `None` or cannot be written to.

    `namespace` is the prompt set's checksum. Errors are not kept. A caller that goes away does not end a call that
    others wait for; `aclose` ends what is still under way.
    """

    def __init__(self, model: Model, *, namespace: str, folder: Path | None) -> None:
        self._model = model
        self._namespace = namespace
        self._folder = folder
        self._kept: dict[str, Completion] = {}
        self._under_way: dict[str, asyncio.Task[Completion]] = {}

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """The kept reply, the reply under way, or a new one. Usage and cost are those of the call that was paid."""
        key = request_key(self.name, self._namespace, request)
        kept = self._read(key)
        if kept is not None:
            return kept
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._ask(key, request))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(task)

    def discard(self, request: ModelRequest) -> None:
        """Forget the reply to `request`: it was of no use, and asking again may give a better one."""
        key = request_key(self.name, self._namespace, request)
        self._kept.pop(key, None)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._path(self._folder, key).unlink(missing_ok=True)

    async def aclose(self) -> None:
        """End the calls under way and close the wrapped model."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._model.aclose()

    async def _ask(self, key: str, request: ModelRequest) -> Completion:
        completion = await self._model.complete(request)
        if self._folder is None:
            self._kept[key] = completion
            return completion
        path = self._path(self._folder, key)
        try:
            _write(path, completion.model_dump_json().encode())
        except OSError as error:
            # A reply that is paid for is not lost with the disk's last block, nor asked for again by this process.
            log.warning("%s: the reply is kept in memory only: %s", path, error.strerror or error)
            self._kept[key] = completion
        return completion

    def _landed(self, key: str, task: asyncio.Task[Completion]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # Marked as seen: whoever waits gets it, and nobody may be waiting.

    def _read(self, key: str) -> Completion | None:
        if self._folder is None or key in self._kept:
            return self._kept.get(key)
        # A file that is damaged counts as absent: the question is asked again and the file replaced.
        with contextlib.suppress(OSError, ValidationError):
            return Completion.model_validate_json(self._path(self._folder, key).read_bytes())
        return None

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / key[:2] / f"{key}.json"


def request_key(model: str, namespace: str, request: ModelRequest) -> str:
    """SHA-256 over the model, the prompt set and everything the request says; images by their own hash."""
    parts = [
        part if isinstance(part, str) else [part.media_type, hashlib.sha256(part.data).hexdigest()]
        for part in request.parts
    ]
    options = [request.max_output_tokens, request.temperature, request.seed]
    said = json.dumps([model, namespace, request.system, parts, options], ensure_ascii=True)
    return hashlib.sha256(said.encode("ascii")).hexdigest()


def _write(path: Path, data: bytes) -> None:
    """Write in one step, so that no reader and no later run sees half a reply."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
