"""The client side of an assessment: sends the request to a judge, follows its progress, collects the results."""

import asyncio
import json
import re
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from judge.records.events import (
    BUSY_KEY,
    CONTINUES_KEY,
    RESUME_TOKEN_KEY,
    RUN_ID_KEY,
    Event,
    EventReader,
    JudgeText,
    RequestWarning,
    RunStarted,
    Sink,
    StepDone,
    TaskDone,
)
from judge.records.steps import StopReason
from judge.scenario.models import Scenario
from judge.store.layout import RUN_ID
from shared.a2a.client import ArtifactTexts, AssessmentClient, Final, StatusText
from shared.errors import ConfigError, ParticipantError, WabeError

FIRST_TASKS = 3
# How long a runner waits for a judge that it did not start, such as one that is being upgraded.
PATIENCE_S = 600.0
_REPEAT_S = 2.0
_CANCEL_TIMEOUT_S = 10.0
_PARTICIPANT_ERROR: StopReason = "participant_error"
_MAX_SHOWN_LINES = 50
_NUMBERS = re.compile(r"[0-9a-f]{8}[0-9a-f-]*|\d+")


@dataclass
class RunOutcome:
    """A judge's answer: result objects (`winner`, `detail`), the final state, its last message.

    `run_id` is the judge's id for the run, if it sent one.
    """

    results: tuple[dict[str, Any], ...] = ()
    state: str = "lost"
    message: str = "the connection to the judge ended before it was done"
    run_id: str | None = None

    def submission(self, scenario: Scenario) -> dict[str, Any] | None:
        """The leaderboard submission, or `None` if the judge gave no result."""
        if not self.results:
            return None
        ids = {agent.role: agent.agentbeats_id or "" for agent in scenario.participants}
        return {"participants": ids, "results": list(self.results)}


class UnusableParticipant(WabeError):
    """The first tasks all ended in the same participant error before any action, so the participant is unusable."""

    blame = "participant"


class FirstTasks:
    """Passes events on. Raises `UnusableParticipant` when the first three tasks (or all, if fewer) end in the same
    participant error before any action.

    A resumed run always needs three: its participant has worked before, so one or two errors prove nothing.
    """

    def __init__(self, emit: Sink) -> None:
        self._emit = emit
        self._needed = FIRST_TASKS
        self._acted: set[str] = set()
        self._reasons: dict[str, str] = {}
        self._is_over = False

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self._emit(event)
        match event:
            case RunStarted() if not event.kept:
                self._needed = min(FIRST_TASKS, event.attempts)
            case StepDone() if event.executed:
                self._acted.add(event.key)
            case TaskDone() if not self._is_over:
                self._take(event)

    def _take(self, event: TaskDone) -> None:
        self._reasons[event.key] = event.reason
        is_error = event.outcome == "failure" and event.reason_code == _PARTICIPANT_ERROR
        # Numbers are masked, because ports, counters and ids differ between messages with the same cause.
        causes = {_NUMBERS.sub("#", reason) for reason in self._reasons.values()}
        if not is_error or len(causes) > 1 or self._acted & self._reasons.keys():
            self._is_over = True
        elif len(self._reasons) == self._needed:
            count = "the only task" if self._needed == 1 else f"each of the first {self._needed} tasks"
            raise UnusableParticipant(f"{count} ended before any action: {event.reason}")


async def require_admission(endpoint: str, auth_token: SecretStr | None) -> None:
    """Raises `ConfigError` if the judge does not accept this token. One that does not answer is not an error here."""
    with suppress(ParticipantError):
        async with AssessmentClient(endpoint, auth_token=auth_token) as client:
            if await client.is_admitted():
                return
        problem = "does not accept this WABE_AUTH_TOKEN" if auth_token else "wants a token"
        raise ConfigError(f"the judge at {endpoint} {problem}", remedy="set WABE_AUTH_TOKEN to the judge's own")


async def request_assessment(
    endpoint: str, request: str, emit: Sink, *, auth_token: SecretStr | None = None, patience_s: float = 0.0
) -> RunOutcome:
    """Send `request` to the judge at `endpoint` and follow it to its end. A lost connection is an outcome too.

    If the judge is stopped, the request is repeated with the run's resume token until the judge is back, for at most
    `patience_s`. When this is cancelled, or `emit` raises `UnusableParticipant`, the assessment is cancelled.
    """
    token: str | None = None
    deadline = time.monotonic() + patience_s
    while True:
        outcome, metadata = await _followed(endpoint, _with_token(request, token), emit, auth_token)
        token = metadata.get(RESUME_TOKEN_KEY) or token
        is_stopped = outcome.state == "lost" or not metadata.keys().isdisjoint((CONTINUES_KEY, BUSY_KEY))
        if outcome.results or token is None or not is_stopped:
            return outcome
        if RUN_ID_KEY in metadata:
            # It has worked since it was last lost.
            deadline = time.monotonic() + patience_s
            if patience_s:
                emit(RequestWarning(text=f"{outcome.message}: waiting for the judge, for up to {patience_s:g} s"))
        if time.monotonic() >= deadline:
            return outcome
        await asyncio.sleep(_REPEAT_S)


def _with_token(request: str, token: str | None) -> str:
    return request if token is None else json.dumps({**json.loads(request), "resume_token": token})


async def _followed(
    endpoint: str, request: str, emit: Sink, auth_token: SecretStr | None
) -> tuple[RunOutcome, dict[str, str]]:
    """One request to its end, or until the connection is lost; and the metadata of its task."""
    outcome = RunOutcome()
    progress = _Progress(emit)
    metadata: dict[str, str] = {}
    try:
        async with AssessmentClient(endpoint, auth_token=auth_token) as client:
            metadata = client.metadata
            try:
                async with aclosing(client.run(request)) as answers:
                    async for answer in answers:
                        _take(answer, outcome, progress)
            except (asyncio.CancelledError, UnusableParticipant):
                # The user must be able to stop even if the judge is gone or busy.
                with suppress(WabeError, TimeoutError):
                    async with asyncio.timeout(_CANCEL_TIMEOUT_S):
                        await client.cancel()
                raise
    except UnusableParticipant:
        raise
    except WabeError as error:
        outcome.message = f"{outcome.message}: {error.message}" if outcome.results else error.message
    provenance = outcome.results[0]["detail"].get("provenance") if outcome.results else None
    run_id = metadata.get(RUN_ID_KEY) or (provenance.get("run_id") if isinstance(provenance, dict) else None)
    # Validated, because it is printed and comes from a judge that may not be ours.
    if isinstance(run_id, str) and RUN_ID.fullmatch(run_id):
        outcome.run_id = run_id
    return outcome, metadata


class _Progress:
    """Emits the events of updates. The prose of a judge that sends none is only shown."""

    def __init__(self, emit: Sink) -> None:
        self._emit = emit
        self._events = EventReader()
        self._last_prose = ""

    def take(self, update: StatusText) -> None:
        for event in self._events.read(update.metadata):
            self._emit(event)
        # A judge that has nothing new may repeat itself, so that the connection stays open.
        if not self._events.has_read and update.text != self._last_prose:
            self._last_prose = update.text
            for line in update.text.splitlines()[:_MAX_SHOWN_LINES]:
                self._emit(JudgeText(text=line))


def _take(answer: StatusText | ArtifactTexts | Final, outcome: RunOutcome, progress: _Progress) -> None:
    match answer:
        case StatusText():
            outcome.message = answer.text
            progress.take(answer)
        case ArtifactTexts(texts=texts):
            outcome.results += tuple(_results(texts))
        case Final():
            outcome.state, outcome.message = answer.state, answer.message or outcome.message


def _results(texts: tuple[str, ...]) -> list[dict[str, Any]]:
    """The result objects among the texts of an artifact; other texts are prose."""
    results = []
    for text in texts:
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            if isinstance(value, dict) and isinstance(value.get("detail"), dict):
                results.append(value)
    return results
