"""`request` checks with `socket = true`: text messages of web sockets, as they were recorded.

Senders are treated as for requests: a socket counts if its recording says that a document of the task's site opened it.
In inverted checks, all sockets to the task's site count.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from judge.evaluators.addresses import matches
from judge.evaluators.base import CheckKind, ComparisonResult, Decision, happened, how_often
from judge.evaluators.evidence import MissingEvidence, TrajectoryEvidence
from judge.evaluators.looks import UNSURE, looks_at
from judge.evaluators.values import json_differences
from judge.evaluators.writes import Allowed, MessagePattern
from judge.records.checks import AddressPattern, LookCheck, Times, names_compared, plain_checks
from judge.records.sites import Site
from judge.trajectory.forms import inner_json
from judge.trajectory.network import Entry, Log, Message, as_http
from shared.models import omit_default
from shared.patterns import Pattern
from shared.strict_json import parse_json
from shared.text import clip, counted, plain

_TYPES: Mapping[str, str] = MappingProxyType({"sent": "send", "received": "receive"})
_MAX_SHOWN = 3


class SocketCheck(LookCheck):
    """A text message of a web socket to `url` matches `message`: values at JSON paths, or a pattern."""

    of_actions: ClassVar[bool] = True
    needs_network: ClassVar[bool] = True
    is_redacted: ClassVar[bool] = True

    kind: Literal["request"]
    socket: Literal[True]
    url: AddressPattern
    direction: Literal["sent", "received"]
    message: MessagePattern
    times: Times | None = omit_default(None)

    @property
    def compared(self) -> frozenset[str]:
        """The names, in lower case, of every compared value."""
        return names_compared(self.message)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The socket's."""
        return (self.url,)


def decide(check: SocketCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether one message matches (inverted: none), what was found, and the step that caused the first match."""
    whoever = inverted or recording.counts_all
    looks = looks_at(check, recording)
    traffic = recording.traffic
    if traffic.messages_left_out is None:
        raise MissingEvidence("messages of web sockets were not recorded: another program did it")
    acted_on = None if check.on is None else {look.step.index + 1 for look in looks}
    sockets = [entry for entry in traffic.entries if _is_of(check, recording.site, entry, inverted=whoever)]
    messages = [
        message
        for entry in sockets
        for message in entry.messages
        if message.type == _TYPES[check.direction]
        and (acted_on is None or message.step in acted_on)
        and (whoever or recording.is_caused_by_site(message.cause))
    ]
    if recording.is_absence_unsure and (inverted or check.times is not None):
        return Decision(False, UNSURE, None)
    messages = [message for message in messages if not recording.is_unsure(message.step)]
    hits = [message for message in messages if matches_message(check.message, recording, message)]
    unknown_count = _unknown_matches(check, recording, messages, inverted=whoever)
    # An unknown one may be one too many.
    is_sure = check.times is None or whoever or not unknown_count
    if is_sure and happened(check.times, len(hits), at_least=whoever):
        step = None if inverted or hits[0].step is None else max(0, hits[0].step - 1)
        return Decision(not inverted, ComparisonResult(True, describe(hits[0])), step)
    text = how_often(check.times, len(hits), "such message") if hits else _instead(check, sockets, messages)
    result = ComparisonResult(False, text)
    if unknown_count:
        text = (
            f"at least {counted(unknown_count, 'message')} that could decide went unrecorded; otherwise {result.text}"
        )
        return Decision(recording.counts_all, result._replace(text=text), None)
    return Decision(inverted, result, None)


def others(recording: TrajectoryEvidence, allow: Sequence[Allowed]) -> Iterator[Message]:
    """The messages to the task's sites that neither a check nor `allow` names, whoever sent them."""
    declared = plain_checks([each for each in recording.checks if not each.inverted])
    checks = [each for each in declared if isinstance(each, SocketCheck) and not each.inverted]
    site = recording.site
    for entry in recording.traffic.entries:
        url = as_http(entry.request.url)
        if entry.resource_type != "websocket" or not site.holds(url):
            continue
        allowed = [
            each
            for each in allow
            if each.socket and not entry.is_url_cut and matches(url, each.url, site, extra_query="?" not in each.url)
        ]
        if any(each.is_any_message for each in allowed):
            continue
        sent = [each for each in checks if each.direction == "sent" and _is_of(each, site, entry, inverted=False)]
        expected = [*(each.message for each in sent), *(each.message for each in allowed)]
        for message in entry.messages:
            is_sent = message.type == "send" and message.step != 0
            if is_sent and not any(matches_message(one, recording, message) for one in expected):
                yield message


def lost(recording: TrajectoryEvidence, allow: Sequence[Allowed]) -> int:
    """How many messages went unrecorded, any of which may have changed a site."""
    left_out = recording.traffic.messages_left_out
    if left_out is None or any(each.is_any_message for each in allow):
        return 0
    return left_out.own + left_out.other


def _is_of(check: SocketCheck, site: Site, entry: Entry, *, inverted: bool) -> bool:
    if entry.resource_type != "websocket":
        return False
    url = as_http(entry.request.url)
    if not site.holds(url) or not (inverted or (entry.sender is not None and site.holds(entry.sender))):
        return False
    if entry.is_url_cut:
        # Only the path can be compared, which proves nothing.
        path = check.url.partition("?")[0]
        return inverted and matches(url.partition("?")[0], path, site, extra_query=True)
    return matches(url, check.url, site, extra_query="?" not in check.url)


def matches_message(expected: str | Mapping[str, Any] | None, recording: TrajectoryEvidence, message: Message) -> bool:
    """Whether a message has the expected values, or matches the pattern."""
    if message.text is None or expected is None:
        return False
    if isinstance(expected, str):
        return Pattern(expected).search(recording.as_compared(message.text)) is not None
    _, text = inner_json(message.text)
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        content = recording.as_compared(parse_json(text))
    except ValueError:
        return False
    return next(json_differences("message", expected, content), None) is None


def _unknown_matches(
    check: SocketCheck, recording: TrajectoryEvidence, messages: Sequence[Message], *, inverted: bool
) -> int:
    """How many messages are unknown that could have matched."""
    traffic: Log = recording.traffic
    count = sum(message.text is None for message in messages)
    if (left_out := traffic.messages_left_out) is not None:
        # Sockets of others only matter for inverted checks.
        count += left_out.own + (left_out.other if inverted else 0)
    for omission in traffic.left_out:
        url = as_http(omission.url)
        path = check.url.partition("?")[0]
        is_to = omission.url.startswith("ws") and matches(url, path, recording.site, extra_query=True)
        if (omission.is_own or inverted) and (not omission.url or is_to):
            count += omission.count
    return count


def _instead(check: SocketCheck, sockets: Sequence[Entry], messages: Sequence[Message]) -> str:
    if not sockets:
        return "no such socket was opened by the task's site"
    if not messages:
        return f"no message was {check.direction}"
    return f"no such message; instead {'; '.join(map(describe, messages[-_MAX_SHOWN:]))}"


def describe(message: Message) -> str:
    """A message in one line."""
    return clip(plain(message.text or "one that was not recorded"), 150)


def warnings(check: SocketCheck) -> Iterator[str]:
    """A key without meaning, and messages that hold what the participant typed."""
    if "at" in check.model_fields_set:
        yield "'at' has no meaning for messages, of which any may match: remove it"
    if check.direction == "sent" and not check.inverted:
        yield "what is sent at each keystroke holds what the participant typed: prefer what is received"


KIND = CheckKind(SocketCheck, decide, weighs_answers=True, warnings=warnings)
