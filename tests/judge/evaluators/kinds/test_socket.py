"""`request` checks with `socket = true` on recorded messages."""

from pathlib import Path
from typing import Any, Literal

import pytest

from helpers.trajectory.recordings import SHOP, RecordedRequest, RecordedStep, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.records.assertions import Assertion
from judge.trajectory.network import MessagesLeftOut

SAVED = '{"type": "saved", "item": {"id": 5}}'
CHECK: dict[str, Any] = {
    "kind": "request",
    "socket": True,
    "url": "/ws",
    "direction": "received",
    "message": {"type": "saved", "item.id": 5},
}
NONE_LEFT_OUT = MessagesLeftOut()
SocketText = tuple[Literal["send", "receive"], str | None]


def a_socket(*texts: str | SocketText | None, **changes: Any) -> RecordedRequest:
    """A socket of the shop on which these messages were received, or sent."""
    messages = tuple(each if isinstance(each, tuple) else ("receive", each) for each in texts)
    known = {"method": "GET", "path": SHOP.replace("http", "ws") + "/ws", "messages": messages}
    return RecordedRequest(**known | changes)


def decided(
    folder: Path, check: dict[str, Any], *sockets: RecordedRequest, left_out: MessagesLeftOut | None = NONE_LEFT_OUT
) -> Assertion:
    steps = [RecordedStep(requests=sockets), RecordedStep(path="/done")]
    (assertion,) = evaluate(recorded_attempt(folder, [check], steps, messages_left_out=left_out))
    return assertion


@pytest.mark.parametrize(
    ("message", "text", "passed"),
    [
        ({"type": "saved"}, SAVED, True),
        ({"type": "saved", "item": {"id": 5}}, SAVED, True),
        ({"type": "s*"}, SAVED, True),
        ({"[0]": "saved", "[1].id": 5}, '42["saved",{"id":5}]', True),
        ({"[0]": "saved"}, '42/shop,7["saved"]', True),
        ('"type": "saved"', SAVED, True),
        ("^saved [0-9]+$", "saved 5", True),
        ({"type": "saved", "item.id": 6}, SAVED, False),
        ({"kind": "saved"}, SAVED, False),
        ({"type": "saved"}, "saved", False),
        ({"type": "saved"}, '"saved"', False),
        ({"type": "saved"}, SAVED[:-1], False),
        ("^saved$", "not saved", False),
    ],
)
def test_a_message_matches_by_json_path_or_pattern(tmp_path: Path, message: Any, text: str, passed: bool) -> None:
    assert decided(tmp_path, {**CHECK, "message": message}, a_socket("ping", text, "pong")).passed is passed


@pytest.mark.parametrize(
    ("socket", "passed"),
    [
        (a_socket(SAVED, path="ws://shop.test/ws?room=1"), True),
        (a_socket(SAVED, path="ws://shop.test/other"), False),
        (a_socket(SAVED, path="ws://evil.test/ws"), False),
        (a_socket(SAVED, path="ws://shop.test:81/ws"), False),
        (a_socket(SAVED, sender="http://evil.test"), False),
        (a_socket(SAVED, sender=None), False),
        (a_socket(SAVED, sender="null"), False),
        (a_socket(SAVED, is_url_cut=True), False),
        (a_socket(("send", SAVED)), False),
        (a_socket(None), False),
    ],
)
def test_only_what_a_socket_of_the_site_received_counts(tmp_path: Path, socket: RecordedRequest, passed: bool) -> None:
    assert decided(tmp_path, CHECK, socket).passed is passed


def test_what_was_sent_counts_as_sent(tmp_path: Path) -> None:
    assert decided(tmp_path, {**CHECK, "direction": "sent"}, a_socket(("send", SAVED))).passed is True


def test_a_socket_is_not_an_answer_to_a_request(tmp_path: Path) -> None:
    check = {"kind": "request", "method": "GET", "url": "/ws"}
    assert decided(tmp_path, check, a_socket(SAVED)).passed is False


@pytest.mark.parametrize(("on", "passed"), [("/", True), ("/done", False)])
def test_on_limits_messages_to_those_of_actions_on_a_page(tmp_path: Path, on: str, passed: bool) -> None:
    assertion = decided(tmp_path, {**CHECK, "on": on}, a_socket(SAVED))
    assert (assertion.passed, assertion.step) == (passed, 0 if passed else None)


@pytest.mark.parametrize(
    ("socket", "left_out", "passed"),
    [
        (a_socket("ping"), MessagesLeftOut(), True),
        (a_socket(SAVED), MessagesLeftOut(), False),
        (a_socket(SAVED, sender="http://evil.test"), MessagesLeftOut(), False),
        (a_socket(SAVED, sender=None), MessagesLeftOut(), False),
        (a_socket(SAVED, path="ws://evil.test/ws"), MessagesLeftOut(), True),
        (a_socket(None), MessagesLeftOut(), False),
        (a_socket("ping"), MessagesLeftOut(own=1), False),
        (a_socket("ping"), MessagesLeftOut(other=1), False),
    ],
)
def test_what_must_not_be_sent_must_be_known_not_to_be(
    tmp_path: Path, socket: RecordedRequest, left_out: MessagesLeftOut, passed: bool
) -> None:
    assert decided(tmp_path, {**CHECK, "not": True}, socket, left_out=left_out).passed is passed


@pytest.mark.parametrize(
    ("sockets", "left_out", "message"),
    [
        ((), MessagesLeftOut(), "no such socket was opened by the task's site"),
        ((a_socket(("send", SAVED)),), MessagesLeftOut(), "no message was received"),
        ((a_socket("a", "b"),), MessagesLeftOut(), "no such message; instead a; b"),
        ((a_socket("a"),), MessagesLeftOut(own=3), "at least 3 messages that could decide went unrecorded; otherwise"),
        ((a_socket("a"),), MessagesLeftOut(other=3), "no such message; instead a"),
    ],
)
def test_the_finding_says_what_there_was_instead(
    tmp_path: Path, sockets: tuple[RecordedRequest, ...], left_out: MessagesLeftOut, message: str
) -> None:
    assertion = decided(tmp_path, CHECK, *sockets, left_out=left_out)
    assert assertion.passed is False
    assert assertion.found.startswith(message)


def test_a_recording_without_messages_is_undecided(tmp_path: Path) -> None:
    assertion = decided(tmp_path, CHECK, a_socket("a"), left_out=None)
    assert assertion.passed is None
    assert assertion.found.startswith("messages of web sockets were not recorded")


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ('{"password": "hunter22"}', '{"password": "[redacted]"}'),
        ('42["login",{"password":"hunter22"}]', '42["login", {"password": "[redacted]"}]'),
        ('{"password": "hunter22"', None),
        ("plain words", "plain words"),
    ],
)
def test_messages_are_redacted_like_bodies(tmp_path: Path, text: str, stored: str | None) -> None:
    trajectory = recorded_attempt(tmp_path, [CHECK], [RecordedStep(requests=(a_socket(text),))])
    assert ("hunter22" in (trajectory.folder / "network.har").read_text()) is False
    seen = {**CHECK, "message": "."}
    (assertion,) = evaluate(trajectory.as_task(_task_with(trajectory.task, seen)))
    assert assertion.found.endswith(stored or "no such message; instead one that was not recorded")


def _task_with(task: Any, check: dict[str, Any]) -> Any:
    return type(task).model_validate({**task.model_dump(), "checks": [check]})
