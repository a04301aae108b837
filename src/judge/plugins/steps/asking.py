"""Asks a participant for the next action on each recorded page, over A2A and in the judge's protocol.

Every step is a separate conversation (teacher forcing): the participant sees the task, the true actions so far and the
page, but not its own earlier choices. It sees neither boxes nor the actions from this step on. The page is a snapshot,
or only its elements with a reference, and the actions so far may be the last ones only, as in Mind2Web.
"""

import re
from collections.abc import Callable, Iterable
from typing import Literal
from uuid import uuid4

from judge.browser.replies import understand
from judge.config import RunConfig
from judge.plugins.steps.metrics import Choice, StepScore, score_step
from judge.plugins.steps.reference import TOOLS, Reference, ReferencePage, operation_of
from shared.concurrency import for_each
from shared.errors import ParticipantError
from shared.images import media_type
from shared.models import ObservationMessage, Record
from shared.models import Page as ShownPage
from shared.protocol import Participant, render_observation
from shared.snapshot import as_shown, cut_snapshot, parse_snapshot
from shared.text import clip, escape_line, without_surrogates

_MAX_REPLY_CHARS = 10_000
_MAX_ACTION_CHARS = 500
_HAS_REFERENCE = re.compile(r"\[ref=\w+\]")


ObservationForm = Literal["snapshot", "elements"]


class ShownStep(Record):
    """What a participant sees of a step; without `previous`, all actions so far."""

    form: ObservationForm = "snapshot"
    previous: int | None = None


class ScoredStep(Record):
    """One step with the participant's reply, its choice and the scores."""

    reference: Reference
    reply: str
    choice: Choice
    score: StepScore


async def ask_all(
    pages: Iterable[ReferencePage],
    participant: Participant,
    *,
    max_parallel: int,
    done: Callable[[ScoredStep, bytes | None], None],
    shown: ShownStep,
) -> None:
    """Ask about every page, at most `max_parallel` at once, and call `done` for each with its screenshot.

    A participant that fails at a step scores 0 there. Errors from reading the pages are re-raised.
    """

    async def ask(page: ReferencePage) -> None:
        reference, image = page
        reply, choice = await _ask(participant, reference, image, shown)
        answered = ScoredStep(reference=reference, reply=reply, choice=choice, score=score_step(reference, choice))
        done(answered, image)

    await for_each(pages, ask, at_once=max_parallel)


async def _ask(
    participant: Participant, reference: Reference, image: bytes | None, shown: ShownStep
) -> tuple[str, Choice]:
    kind = media_type(image) if image is not None else None
    text = render_observation(observation_of(reference, shown))
    try:
        reply = await participant.send(
            text, image=image if kind else None, media_type=kind or "image/jpeg", context_id=uuid4().hex
        )
    except ParticipantError as error:
        return "", Choice(complaint=f"participant: {error.message}", failed=True)
    reply = without_surrogates(reply)
    return clip(reply, _MAX_REPLY_CHARS), choice_of(reply, reference)


def observation_of(reference: Reference, shown: ShownStep) -> ObservationMessage:
    """The participant's observation. The history is part of the instruction, one line per action."""
    lines = [escape_line(clip(line, _MAX_ACTION_CHARS)) for line in reference.history]
    numbered = [f"{n}. {line}" for n, line in enumerate(lines, 1)]
    recent = numbered if shown.previous is None else numbered[max(0, len(numbered) - shown.previous) :]
    so_far = "\n\nThe task is under way. Actions so far:\n" + "\n".join(recent)
    snapshot = as_shown(reference.snapshot)
    if shown.form == "elements":
        snapshot = "\n".join(line.strip() for line in snapshot.splitlines() if _HAS_REFERENCE.search(line))
    return ObservationMessage(
        page=ShownPage(
            url=reference.url, title=reference.title, snapshot=cut_snapshot(snapshot, RunConfig().max_snapshot_chars)
        ),
        tools=TOOLS,
        instruction=reference.task + (so_far if recent else ""),
        website=reference.website,
    )


def choice_of(reply: str, reference: Reference) -> Choice:
    """The choice in a reply."""
    reply_read = understand(reply, TOOLS, parse_snapshot(reference.snapshot))
    if reply_read.checked is None:
        return Choice(complaint=reply_read.complaint)
    operation = operation_of(reply_read.checked)
    return Choice(element=operation[0], operation=operation[1]) if operation else Choice(complaint="names no element")
