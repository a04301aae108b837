"""A single-flight cache of model replies: an answered request, or is in flight, is not sent again.

Replies on disk outlive the process, so a resumed run does not pay for the same reply twice.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import ModelBlocked
from shared.files import read_file, write_atomic
from shared.llm.limits import Spending
from shared.llm.model import Completion, Model, ModelRequest
from shared.models import TokenUsage

if TYPE_CHECKING:
    from shared.llm.sharing import SharedReplies

log = logging.getLogger(__name__)


class CachedModel:
    """A model whose replies are kept under `folder`, or in memory when that is `None` or cannot be written to.

    `namespace` is the prompt set's checksum. Errors are not cached, except that the provider refused the request
    (`ModelBlocked`), which is raised again without being paid for again. Cancelling one caller does not cancel a call
    that others wait for; `aclose` does. With `shared`, all shards of a run ask for each reply only once. `spending`
    counts the replies from the cache.
    """

    def __init__(
        self,
        model: Model,
        *,
        namespace: str,
        folder: Path | None,
        shared: "SharedReplies | None" = None,
        spending: Spending | None = None,
    ) -> None:
        self.name = model.name
        # Identifies the callers that count a reply once: of this object, or of all shards of a run.
        self._id = f"{shared.id if shared else uuid.uuid4().hex} "
        self._model = model
        self._namespace = namespace
        self._folder = folder
        self._shared = shared
        self._spending = spending or Spending()
        self._memory: dict[str, Completion] = {}
        self._calls: dict[str, asyncio.Task[Completion]] = {}

    async def complete(self, request: ModelRequest, payer: str | None = None) -> Completion:
        """The cached reply, the reply in flight, or a new one. Raises `ModelBlocked` for a cached refusal as well.

        Usage and cost count for the first `payer` of all shards only, even when it asks again; for others the reply is
        free. A reply cached by an earlier process counts in full, so that judging again reports the same cost.
        """
        key = request_key(self.name, self._namespace, request)
        if (reply := self._read(key)) is not None:
            self._spending.reused += 1
        else:
            if key not in self._calls:
                self._calls[key] = asyncio.create_task(self._ask(key, request))
                self._calls[key].add_done_callback(lambda call: self._forget_call(key, call))
            reply = await asyncio.shield(self._calls[key])
            # Another caller that waited for it may have paid for it already.
            reply = self._read(key) or reply
        if payer is not None:
            reply = await self._counted(key, reply, payer)
        if reply.finish_reason == "blocked":
            refusal = ModelBlocked(reply.text, usage=reply.usage)
            refusal.cost_usd = reply.cost_usd
            raise refusal
        return reply

    async def _counted(self, key: str, reply: Completion, payer: str) -> Completion:
        """The reply with its usage if `payer` is the first, else without."""
        counted_by = f"{self._id}{payer}"
        if not (reply.payer or "").startswith(self._id):
            first = counted_by if self._shared is None else await self._shared.payer(key, counted_by)
            reply = reply.model_copy(update={"payer": first})
            self._keep(key, reply)
        return reply if reply.payer == counted_by else reply.model_copy(update={"usage": TokenUsage(), "cost_usd": 0.0})

    async def discard(self, request: ModelRequest) -> None:
        """Forget the reply to `request`: it was unusable, and asking again may give a better one."""
        key = request_key(self.name, self._namespace, request)
        self._memory.pop(key, None)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                _path(self._folder, key).unlink(missing_ok=True)
        if self._shared is not None:
            await self._shared.discard(key)

    async def aclose(self) -> None:
        """Cancel the calls under way and close the wrapped model."""
        calls = list(self._calls.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._model.aclose()
        if self._shared is not None:
            await self._shared.aclose()

    async def _ask(self, key: str, request: ModelRequest) -> Completion:
        if self._shared is None:
            completion = await self._complete(request)
        else:
            completion = await self._shared.once(key, lambda: self._complete(request))
        self._keep(key, completion)
        return completion

    async def _complete(self, request: ModelRequest) -> Completion:
        """The model's answer, or its refusal in the form in which it is kept."""
        try:
            return await self._model.complete(request)
        except ModelBlocked as error:
            # Refused before the model saw it, a request costs nothing.
            charge = {"usage": error.usage, "cost_usd": error.cost_usd} if error.usage else {"cost_usd": 0.0}
            return Completion(text=error.message, model=self.name, finish_reason="blocked", **charge)

    def _keep(self, key: str, completion: Completion) -> None:
        if self._folder is not None:
            path = _path(self._folder, key)
            try:
                # Not flushed: thousands of flushes would hold up the event loop, and a damaged file is asked for again.
                write_atomic(path, completion.model_dump_json().encode(), flush=False)
                return
            except OSError as error:
                # The reply is paid for and can still be used.
                log.warning("%s: the reply is kept in memory only: %s", path, error.strerror or error)
        self._memory[key] = completion

    def _forget_call(self, key: str, call: asyncio.Task[Completion]) -> None:
        del self._calls[key]
        if not call.cancelled():
            call.exception()  # Retrieved here, because every caller may have been cancelled.

    def _read(self, key: str) -> Completion | None:
        if self._folder is None or key in self._memory:
            return self._memory.get(key)
        # A damaged file counts as absent and is replaced.
        with contextlib.suppress(OSError, ValueError):
            return Completion.model_validate_json(read_file(_path(self._folder, key)))
        return None


def request_key(model: str, namespace: str, request: ModelRequest) -> str:
    """SHA-256 over the model, the prompt set and the whole request; images by their hash."""
    lead, parts = (
        [
            part
            if isinstance(part, str)
            else [part.media_type, part.named_type, part.detail, hashlib.sha256(part.data).hexdigest()]
            for part in turn
        ]
        for turn in (request.lead, request.parts)
    )
    options = [request.max_output_tokens, request.temperature, request.seed]
    canonical = json.dumps([model, namespace, request.system, lead, parts, options], ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _path(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.json"
