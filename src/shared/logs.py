"""Logging set-up: lines or JSON, to standard error, without secrets, in plain lines and of bounded volume.

A record names the run, task and attempt that it belongs to: see `log_context`.

Libraries log what clients, pages and models sent: it may contain line breaks and terminal controls, and may be as long
as a request. So every record passes through `CleanRecords`, regardless of its logger.
"""

import contextlib
import json
import logging
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType, TracebackType
from typing import Literal, TextIO

from pydantic import SecretStr

from shared.text import clip, show_hidden

_PERIOD_S = 60.0
_MAX_REPEATS = 3
_MAX_CHARS = 100_000
_OWN = frozenset({"judge", "participants", "shared", "wabe"})
# Every request passes through this code, regardless of its handler.
_PASSED_BY_ALL = frozenset({"shared.a2a.serving"})
_MAX_LINE_CHARS = 2_000
_MAX_FOREIGN_CHARS = 1_000
_MAX_LINES = 200
LogFormat = Literal["text", "json"]
# Marks a record (as `extra`) that contains nothing of what a task or a page says.
PUBLIC: Mapping[str, object] = MappingProxyType({"is_public": True})
_WITHHELD = "(values withheld: a sealed task set is played)"
_CONTEXT: ContextVar[Mapping[str, object]] = ContextVar("log_context", default=MappingProxyType({}))
# Marks the lines of a traceback, so that no text in it can pass for a record of its own.
_CONTINUED = "  | "


@contextlib.contextmanager
def log_context(**fields: object) -> Iterator[None]:
    """Log what the body does as belonging to this `run`, `task` or `attempt`; `None` removes one.

    Tasks and threads of asyncio that the body starts inherit it.
    """
    before = _CONTEXT.set(MappingProxyType({**_CONTEXT.get(), **fields}))
    try:
        yield
    finally:
        _CONTEXT.reset(before)


def current_log_context() -> Mapping[str, object]:
    """The fields of `log_context`, for code called from elsewhere later."""
    return _CONTEXT.get()


@contextlib.contextmanager
def sealed_logs() -> Iterator[None]:
    """While the body runs, no record of this process contains values, unless it is `PUBLIC`, whoever logs it.

    For the whole process, because libraries log from threads that know no context.
    """
    filters = [each for handler in logging.getLogger().handlers for each in handler.filters]
    cleaning = [each for each in filters if isinstance(each, CleanRecords)]
    for each in cleaning:
        each.sealed += 1
    try:
        yield
    finally:
        for each in cleaning:
            each.sealed -= 1


def _place() -> dict[str, object]:
    return {name: value for name, value in _CONTEXT.get().items() if value is not None}


class Lines(logging.Formatter):
    """One line of text per record, and further lines of its traceback."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(place)s%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        words = " ".join(f"{name} {value}" for name, value in _place().items())
        record.place = f"[{words}] " if words else ""
        return super().format(record)


class JsonLines(logging.Formatter):
    """One JSON object per record: time (UTC, ISO 8601), level, logger, message, and run, task and attempt."""

    def format(self, record: logging.LogRecord) -> str:
        time_of_it = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        head = {"time": time_of_it, "level": record.levelname, "logger": record.name}
        return json.dumps({**head, **_place(), "message": record.getMessage()}, ensure_ascii=False)


class CleanRecords(logging.Filter):
    """Makes every record plain: no secrets, no control characters, bounded.

    A message is one line. A traceback follows in marked lines if our code logged the error or is part of it; what a
    library reports about an error of its own, such as a request that it could not read, is one line.
    """

    def __init__(self, secrets: Iterable[SecretStr | None]) -> None:
        super().__init__()
        values = [secret.get_secret_value() for secret in secrets if secret]
        # Shorter values would occur in ordinary words.
        self._values = [value for value in values if len(value) >= 8]
        # How many sealed task sets are being played.
        self.sealed = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place; never drops one."""
        if self.sealed and not getattr(record, "is_public", False):
            record.msg, record.args = _without_values(record), ()
            record.exc_info = record.exc_text = record.stack_info = None
            return True
        # The secrets are replaced first: they are also found where a text is cut or contains controls.
        message, error, trace = (self._redacted(text).strip() for text in _texts_of(record))
        is_own = record.name.partition(".")[0] in _OWN
        if not trace and error:
            message = f"{message}: {error}"
        line = _plain(message, _MAX_LINE_CHARS if is_own else _MAX_FOREIGN_CHARS)
        record.msg, record.args = "\n".join([line, *_marked(trace)]), ()
        # The text already includes the traceback; these fields still contain the secrets.
        record.exc_info = record.exc_text = record.stack_info = None
        return True

    def _redacted(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, "[secret]")
        return text


def _without_values(record: logging.LogRecord) -> str:
    """What a record says without any value: our words, and where an error arose."""
    is_own = record.name.partition(".")[0] in _OWN
    words = [_plain(str(record.msg), _MAX_LINE_CHARS)] if is_own else []
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if error is not None:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_own]
        words.append(" ".join([type(error).__name__, *(f"{frame.name}:{frame.lineno}" for frame in frames)]))
    return " ".join([*words, _WITHHELD])


def _texts_of(record: logging.LogRecord) -> tuple[str, str, str]:
    """The message of a record, its error in short, and the traceback if it is to be shown."""
    try:
        message = record.getMessage()
    # A library's arguments may not fit its message, and an argument's code may raise anything.
    except Exception:  # noqa: BLE001
        message = f"{record.msg!r:.500} (cannot be formatted)"
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    is_own = record.name.partition(".")[0] in _OWN
    trace = ""
    if is_own or (error is not None and _is_through_our_code(error.__traceback__)):
        trace = "".join(traceback.format_exception(error)) if error is not None else record.exc_text or ""
        trace += f"\n{record.stack_info}" if record.stack_info else ""
    short = "".join(traceback.format_exception_only(error)) if error is not None else ""
    return message, short, trace


def _is_through_our_code(trace: TracebackType | None) -> bool:
    """Whether an error passed through our code, so that it may be our bug."""
    modules = (str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(trace))
    return any(name.partition(".")[0] in _OWN and name not in _PASSED_BY_ALL for name in modules)


def _plain(text: str, limit: int) -> str:
    """The text in one line, without control characters; breaks become visible."""
    return clip(show_hidden(clip(text, limit)).replace("\n", "\\n").replace("\t", " "), limit)


def _marked(trace: str) -> Iterator[str]:
    lines = trace.split("\n") if trace else []
    half = _MAX_LINES // 2
    if len(lines) > _MAX_LINES:
        lines = [*lines[:half], f"… {len(lines) - 2 * half} more lines …", *lines[-half:]]
    return (_CONTINUED + _plain(line, _MAX_LINE_CHARS) for line in lines)


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Writes records to a stream, but limits warnings and errors, because outsiders can cause any number of them.

    Per minute the same text is written at most three times, and each top-level logger writes a bounded number of
    characters, so that noise from one library does not hide a warning from another. The number of dropped records is
    logged when the next minute begins. Lower levels report progress and are bounded by the accepted work.
    """

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._period_start = clock()
        self._repeats: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record`, or count it as dropped."""
        if self._clock() - self._period_start >= _PERIOD_S:
            self._begin_period()
        if record.levelno >= logging.WARNING and not self._admits(record):
            self._dropped += 1
            return
        super().emit(record)

    def _admits(self, record: logging.LogRecord) -> bool:
        source, text = record.name.partition(".")[0], record.getMessage()
        size = len(self.format(record))
        if self._repeats[text] >= _MAX_REPEATS or self._counts[source] + size > _MAX_CHARS:
            return False
        self._repeats[text] += 1
        self._counts[source] += size
        return True

    def _begin_period(self) -> None:
        dropped, self._dropped = self._dropped, 0
        self._period_start = self._clock()
        self._repeats.clear()
        self._counts.clear()
        if dropped:
            text = "%d log records were dropped because they were repeated or too many"
            super().emit(logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, (dropped,), None))


def configure_logging(
    *, verbose: bool = False, secrets: Iterable[SecretStr | None] = (), form: LogFormat = "text"
) -> None:
    """Send log records and Python's warnings to standard error; libraries from WARNING on."""
    handler = BoundedHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else Lines())
    handler.addFilter(CleanRecords(secrets))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(True)
    for name in ("judge", "participants", "shared"):
        logging.getLogger(name).setLevel(logging.DEBUG if verbose else logging.INFO)
