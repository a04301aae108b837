"""Messages that a page sends over a web socket: which may change something, and how they are compared. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator

from judge.plugins.frozen.exchanges import RecordedExchange
from judge.plugins.frozen.matching.protobuf import in_order

_HEARTBEAT_BYTES = 2
# How a page says what it has received, or that it is still there: with whatever count it has reached.
_SIGNAL = re.compile(
    rb"""\d*\s*[\[{]\s*(?:"(?:type|event|action|topic)"\s*:\s*)?"(?:ack|ping|pong|heartbeat|keep-?alive)"[^{}]*"""
    rb"""(?:\{[^{}]*\}[^{}]*)?[\]}]\s*"""
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f]")


def sent_data(exchange: RecordedExchange) -> Iterator[tuple[int, bytes]]:
    """Messages of the page over a socket that may have changed something: neither heartbeats nor greetings."""
    received = [message.tick for message in exchange.messages if not message.sent]
    greeted = received[0] if received else exchange.began
    counts: defaultdict[bytes, int] = defaultdict(int)
    for message in exchange.messages:
        counts[message.data] += message.sent
    for message in exchange.messages:
        is_heartbeat = len(message.data) <= _HEARTBEAT_BYTES or counts[message.data] >= 3 or is_signal(message.data)
        if message.sent and message.tick > greeted and not is_heartbeat:
            yield message.tick, message.data


def is_signal(data: bytes) -> bool:
    """Whether a message only tells the site what the page has received, or that it is still there."""
    return _SIGNAL.fullmatch(data) is not None


def data_text(data: bytes) -> str:
    """The message as text; one in protocol buffers with its fields in a fixed order."""
    try:
        text = data.decode()
        if not _CONTROLS.search(text):
            return text
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
    return in_order(data) or text
