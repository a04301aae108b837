"""Messages that a page sends over a web socket: which may change something, and how they are compared. Pure."""

import re
from collections.abc import Sequence

from judge.plugins.frozen.exchanges import RecordedSocketMessage
from judge.plugins.frozen.matching.binary import as_text, is_binary

_IDLE_BYTES = 2
# How a page says what it has received, or that it is still there: with whatever count it has reached.
_SIGNAL = re.compile(
    rb"""\d*\s*[\[{]\s*(?:"(?:type|event|action|topic)"\s*:\s*)?"(?:ack|ping|pong|heartbeat|keep-?alive)"[^{}]*"""
    rb"""(?:\{[^{}]*\}[^{}]*)?[\]}]\s*"""
)


def reply_to(messages: Sequence[RecordedSocketMessage], place: int) -> Sequence[RecordedSocketMessage]:
    """The message of the site that follows one of the page, if any."""
    return [each for each in messages[place + 1 : place + 2] if not each.is_from_page]


def is_idle(data: bytes) -> bool:
    """Whether a message is a text too short to change anything, or a signal."""
    return (len(data) <= _IDLE_BYTES and not is_binary(as_text(data))) or is_signal(data)


def is_signal(data: bytes) -> bool:
    """Whether a message only tells the site what the page has received, or that it is still there."""
    return _SIGNAL.fullmatch(data) is not None
