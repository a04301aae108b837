"""Recorded attempts made by hand: pages as snapshots, actions as lines, and what the task's checks make of them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from judge.browser.session import Traffic
from judge.evaluators.checks import evaluate
from judge.records.assertions import Assertion
from judge.records.attacks import Inserted
from judge.records.causes import Cause
from judge.records.ledger import Frozen, LedgerEntry
from judge.records.steps import JUDGE, Navigation, Outcome, ProbeValue, Step
from judge.records.tasks import Task
from judge.trajectory.fetched import Fetched
from judge.trajectory.network import MessagesLeftOut, RequestSource, Unread, write_har
from judge.trajectory.record import CURRENT_RULES, Attempt, Trajectory
from judge.trajectory.redaction import Redaction
from shared.models import Action, Record, Vanished

SHOP = "http://shop.test"
VIEWPORT = (1280, 720)
NONE_LEFT_OUT = MessagesLeftOut()


class RecordedRequest(Record):
    """One request and its answer; `sender` is as recorded: an origin, `browser`, or `None` if unknown."""

    method: str = "POST"
    path: str = "/api/cart"
    post: str | None = None
    mime_type: str = "application/json"
    status: int = 200
    response: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    sender: str | None = SHOP
    cause: Cause | None = Cause(by="site")
    is_cut: bool = False
    is_answer_cut: bool = False
    is_url_cut: bool = False
    has_no_headers: bool = False
    # Of a web socket: who says what; `None` is one that was too large.
    messages: tuple[tuple[Literal["send", "receive"], str | None], ...] = ()
    # In a form: field, name and content.
    files: tuple[tuple[str, str, bytes], ...] = ()

    def har_entry(self, step: int) -> dict[str, Any]:
        """As the browser's recorder gives it."""
        body = None if self.post is None else {"mimeType": self.mime_type, "params": [], "text": self.post}
        content: dict[str, Any] = {"size": 0, "mimeType": "application/json"}
        content |= {} if self.response is None else {"text": self.response}
        content |= {"_truncated": True} if self.is_answer_cut else {}
        return {
            "startedDateTime": "2026-01-02T03:04:05.678+00:00",
            "time": 5,
            "request": {
                "method": self.method,
                "url": self.path if "://" in self.path else SHOP + self.path,
                "httpVersion": "HTTP/1.1",
                "cookies": [],
                "headers": [{"name": name, "value": value} for name, value in self.headers.items()],
                "queryString": [],
                "headersSize": -1,
                "bodySize": -1,
                **({} if body is None else {"postData": body}),
                **({"postData": {"mimeType": "", "params": [], "_truncated": True}} if self.is_cut else {}),
            },
            "response": {
                "status": self.status,
                "statusText": "",
                "httpVersion": "HTTP/1.1",
                "cookies": [],
                "headers": [],
                "content": content,
                "redirectURL": "",
                "headersSize": -1,
                "bodySize": -1,
            },
            "cache": {},
            "timings": {"send": 0, "wait": 5, "receive": 0},
            "_resourceType": "fetch",
            "_step": step,
            "_sender": self.sender,
            **({} if self.cause is None else {"_cause": self.cause.model_dump()}),
            **({"_headersLeftOut": True} if self.has_no_headers else {}),
            **({"_urlCut": True} if self.is_url_cut else {}),
            **({} if not self.messages else self._socket(step)),
            **({"_files": [self._file(*each) for each in self.files]} if self.files else {}),
        }

    def _file(self, field: str, name: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        return {"name": field, "fileName": name, "contentType": "", "size": len(content), "sha256": digest}

    def _socket(self, step: int) -> dict[str, Any]:
        messages = [
            {"type": by, "time": 1.5, "opcode": 1, "_step": step}
            | ({} if self.cause is None else {"_cause": self.cause.model_dump()})
            | ({"_truncated": True} if text is None else {"data": text})
            for by, text in self.messages
        ]
        return {"_resourceType": "websocket", "_webSocketMessages": messages}


class RecordedStep(Record):
    """One observation, the action that followed it, and the requests that it caused."""

    path: str = "/"
    snapshot: str = '- heading "Shop" [level=1] [ref=e1]'
    title: str = "Shop"
    own_line: str | None = None
    line: str | None = None
    dialog: str | None = None
    tool: str = "browser_click"
    params: dict[str, Any] = Field(default_factory=dict)
    is_ok: bool = True
    attempted: str | None = None
    viewport: tuple[int, int] | None = VIEWPORT
    requests: tuple[RecordedRequest, ...] = ()
    probes: tuple[ProbeValue, ...] = ()
    # The references of the elements that the line names.
    refs: tuple[str, ...] = ()
    # Those of what the judge put in as an attack.
    inserted: tuple[str, ...] = ()
    vanished: tuple[Vanished | str, ...] = ()
    # Where the participant led the browser since the observation before.
    led_to: tuple[str, ...] = ()
    # The judge showed a page of its own there.
    is_judges: bool = False

    @property
    def url(self) -> str:
        """The address; a path is one of the shop."""
        return self.path if "://" in self.path or self.path.startswith(("about:", "data:")) else SHOP + self.path

    @property
    def origin(self) -> str:
        """That of the address, as the browser reports it."""
        if self.is_judges:
            return JUDGE
        return "/".join(self.url.split("/", 3)[:3]) if "://" in self.url else "null"


def recorded_attempt(
    folder: Path,
    checks: Sequence[dict[str, Any]],
    recorded_steps: Sequence[RecordedStep],
    answer: str | None = None,
    is_marked: bool = True,
    fetched: tuple[Fetched, ...] = (),
    messages_left_out: MessagesLeftOut | None = NONE_LEFT_OUT,
    seen_by: RequestSource | None = None,
    unread: Sequence[Unread] = (),
    **task: Any,
) -> Trajectory:
    """A finished attempt whose snapshots are on disk. Not `is_marked`: another program recorded it."""
    (folder / "snapshots").mkdir(parents=True, exist_ok=True)
    steps = []
    for index, one in enumerate(recorded_steps):
        name = f"snapshots/step_{index:03d}.yaml"
        (folder / name).write_text("" if one.dialog else one.snapshot, encoding="utf-8")
        steps.append(
            Step(
                index=index,
                url=one.url,
                origin=one.origin if is_marked else None,
                title=one.title,
                screenshot=None if one.dialog else f"trajectory/step_{index:03d}.jpg",
                snapshot=name,
                dialog=one.dialog,
                viewport=one.viewport,
                probes=one.probes,
                inserted=Inserted(refs=one.inserted) if one.inserted else None,
                vanished=one.vanished,
                navigations=tuple(Navigation(url=url, by="participant") for url in one.led_to),
                action=Action(tool=one.tool, params=one.params),
                outcome=Outcome(
                    ok=one.is_ok,
                    line=one.line if one.is_ok else None,
                    attempted=one.attempted,
                    refs=one.refs if is_marked else (),
                    own_line=one.own_line,
                ),
            )
        )
    entries = [one.har_entry(number) for number, seen_one in enumerate(recorded_steps, 1) for one in seen_one.requests]
    known = {"task_id": "t", "website": f"{SHOP}/", "task": "Do it.", "checks": list(checks), **task}
    task_played = Task.model_validate(known)
    digests = [each.sha256 for each in task_played.files if each.sha256]
    redacted = Redaction(salt=b"test", keep=task_played.named_fields, files=digests).entry
    write_har(
        folder, entries, redacted, messages_left_out=messages_left_out, seen_by=seen_by, unread=unread, versions={}
    )
    attempt = Attempt(
        task=task_played,
        steps=tuple(steps),
        stop_reason="finished",
        max_steps=max(1, len(steps)),
        final_answer=answer,
        started_at=0,
        ended_at=0,
        rules_version=CURRENT_RULES if is_marked else None,
        self_recorded=not is_marked,
        fetched=fetched,
    )
    return Trajectory(folder=folder, attempt=attempt, network=folder / "network.har")


def on_archive(trajectory: Trajectory, entries: Sequence[LedgerEntry], loaded: Sequence[int] = ()) -> Trajectory:
    """The attempt as one on a frozen site; in the steps `loaded` a certain document replaced the page."""
    documents = [
        LedgerEntry(step=step, method="GET", url=SHOP, kind="document", grade="exact", is_read=True) for step in loaded
    ]
    steps = tuple(each.model_copy(update={"is_loaded": each.index in loaded}) for each in trajectory.attempt.steps)
    frozen = Frozen(archives=()).with_ledger(sorted([*entries, *documents], key=lambda each: each.step))
    attempt = trajectory.attempt.model_copy(update={"frozen": frozen, "steps": steps})
    return trajectory.model_copy(update={"attempt": attempt})


def evaluate_check(
    folder: Path,
    check: dict[str, Any],
    steps: Sequence[RecordedStep] = (RecordedStep(),),
    answer: str | None = None,
    **task: Any,
) -> Assertion:
    """What one check makes of an attempt."""
    (assertion,) = evaluate(recorded_attempt(folder, [check], steps, answer, **task))
    return assertion


def checked(folder: Path, website: str, check: dict[str, Any], traffic: Traffic) -> Assertion:
    """What a check makes of what a browser recorded, written as in a run and read back."""
    trajectory = recorded_attempt(folder, [check], [RecordedStep(), RecordedStep()], website=website)
    redaction = Redaction(salt=b"x", keep=trajectory.task.named_fields)
    write_har(
        folder,
        traffic.entries,
        redaction.entry,
        left_out=traffic.left_out,
        messages_left_out=traffic.messages_left_out,
        seen_by=traffic.seen_by,
        unread=traffic.unread,
        versions={},
    )
    (assertion,) = evaluate(trajectory)
    return assertion
