"""Logging set-up: one format, to standard error, without secrets and of bounded volume."""

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TextIO

from pydantic import SecretStr

_PERIOD_S = 60.0
_MAX_REPEATS = 3
_MAX_CHARS = 100_000


class RedactSecrets(logging.Filter):
    """Replaces known secrets in every record."""

    def __init__(self, secrets: Iterable[SecretStr | None]) -> None:
        super().__init__()
        values = [secret.get_secret_value() for secret in secrets if secret]
        # Shorter values would occur in ordinary words.
        self._values = [value for value in values if len(value) >= 8]

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place; never drops one."""
        # Formatted first, because a secret may be in the arguments or in the traceback.
        text = logging.Formatter().format(record)
        for value in self._values:
            text = text.replace(value, "[secret]")
        record.msg, record.args = text, ()
        # The text already includes the traceback; these fields still contain the secrets.
        record.exc_info = record.exc_text = record.stack_info = None
        return True


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
        self._written: Counter[str] = Counter()
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
        if self._repeats[text] >= _MAX_REPEATS or self._written[source] + size > _MAX_CHARS:
            return False
        self._repeats[text] += 1
        self._written[source] += size
        return True

    def _begin_period(self) -> None:
        dropped, self._dropped = self._dropped, 0
        self._period_start = self._clock()
        self._repeats.clear()
        self._written.clear()
        if dropped:
            text = "%d log records were dropped because they were repeated or too many"
            super().emit(logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, (dropped,), None))


def configure_logging(*, verbose: bool = False, secrets: Iterable[SecretStr | None] = ()) -> None:
    """Send log records to standard error; libraries from WARNING on."""
    handler = BoundedHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(RedactSecrets(secrets))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in ("judge", "participants", "shared"):
        logging.getLogger(name).setLevel(logging.DEBUG if verbose else logging.INFO)
