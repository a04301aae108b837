"""Logging set-up: one format, to standard error, secrets kept out, and a bound on its volume."""

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TextIO

from pydantic import SecretStr


class RedactSecrets(logging.Filter):
    """Replaces known secrets in a record's text, whoever logs it."""

    def __init__(self, secrets: Iterable[SecretStr | None]) -> None:
        super().__init__()
        self._values = [
            secret.get_secret_value() for secret in secrets if secret and len(secret.get_secret_value()) >= 8
        ]

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place; never drops one."""
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
        if record.stack_info:
            text = f"{text}\n{record.stack_info}"
        # Another handler may have written the traceback down already, with all that is in it.
        record.exc_info = record.exc_text = record.stack_info = None
        for value in self._values:
            text = text.replace(value, "[secret]")
        record.msg, record.args = text, ()
        return True


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Writes records to a stream; of warnings and errors, which a stranger may cause at will, a bounded amount.

    In every `period_s` the same text is written `repeats` times at most, and a top-level logger writes `max_chars` at
    most, so that one library's noise does not hide another's warning. How many records were dropped is logged when the
    next period begins. Lesser records report progress: their volume follows from the work that was accepted.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        period_s: float = 60.0,
        repeats: int = 3,
        max_chars: int = 100_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(stream)
        self._period_s = period_s
        self._repeats = repeats
        self._max_chars = max_chars
        self._clock = clock
        self._period_began = clock()
        self._repeated: Counter[str] = Counter()
        self._written: Counter[str] = Counter()
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record`, or count it as dropped."""
        if self._clock() - self._period_began >= self._period_s:
            self._begin_period()
        if record.levelno >= logging.WARNING and not self._admits(record):
            self._dropped += 1
            return
        super().emit(record)

    def _admits(self, record: logging.LogRecord) -> bool:
        speaker, said = record.name.partition(".")[0], record.getMessage()
        size = len(self.format(record))
        if self._repeated[said] >= self._repeats or self._written[speaker] + size > self._max_chars:
            return False
        self._repeated[said] += 1
        self._written[speaker] += size
        return True

    def _begin_period(self) -> None:
        dropped, self._dropped = self._dropped, 0
        self._period_began = self._clock()
        self._repeated.clear()
        self._written.clear()
        if dropped:
            told = "%d log records were dropped: they repeated others, or were too many"
            super().emit(logging.LogRecord(__name__, logging.WARNING, __file__, 0, told, (dropped,), None))


def configure_logging(*, verbose: bool = False, secrets: Iterable[SecretStr | None] = ()) -> None:
    """Send log records to standard error; libraries speak from WARNING on."""
    handler = BoundedHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(RedactSecrets(secrets))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("judge", "participants", "shared"):
        logging.getLogger(name).setLevel(logging.DEBUG if verbose else logging.INFO)
