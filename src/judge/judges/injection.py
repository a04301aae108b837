"""Flags text in an attempt's evidence addressed to the judge model: a suspected injection.

Patterns miss other wordings, and a page may contain such words legitimately. So a flag does not affect the verdict, and
prompts mark all evidence as untrusted.
"""

import re
from collections.abc import Iterator

from judge.trajectory.record import Trajectory
from shared.files import read_file
from shared.models import Record
from shared.reasoning import find_mark
from shared.text import bounded_line, split_line

FLAG = "suspected_injection"
MAX_FOUND = 20
# Snapshots may be large; only this much of each is read and searched.
_MAX_SNAPSHOT_BYTES = 8_000_000
_MAX_SEARCHED_CHARS = 400_000
_AROUND = 60
_ATTEMPT = r"(?:this|the|my|our)[ ](?:task|attempt|trajectory|run|screenshot|answer)"
# Instructions to a judge model. Every quantifier is bounded, so that a search takes linear time.
_ORDER = re.compile(
    r"(?im)\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:instructions?|rules|prompts?|criteria|guidelines|above)\b"
    rf"|\b(?:mark|judge|rate|grade|score|evaluate|consider|count)[ ]{_ATTEMPT}[ ](?:as|to be)\b"
    r"|\b(?:dear|attention|note to(?: the)?|message (?:to|for)(?: the)?|hey|hello)[ ,:]{1,3}"
    r"(?:ai[ ])?(?:judge|evaluator|grader|reviewer)s?\b"
    r"|\byou(?:['’]re| are)(?: now)? (?:an?|the) (?:\w+ )?(?:judge|evaluator|grader)\b"
    r"|\b(?:all|every)(?: of the)? key points? (?:is|are|has been|have been) (?:met|fulfilled|satisfied)\b"
    r"|\[\[\s?(?:begin|end)\b|<\|?(?:system|im_start|assistant)\b|^\W{0,8}#{2,3} (?:system|instructions?)\b"
)
# Typical ends of a judge's reply. Only participants' text is searched for these and for marks of reasoning, because
# pages show statuses and scores too.
_REPLY = re.compile(r"(?i)\b(?:status|verdict|decision)\W{1,6}(?:success|passed|met)\b|\bscore\W{1,6}[1-5]\b")


class Suspicion(Record):
    """Where suspicious text was found, and the text with its surroundings, in one line."""

    where: str
    text: str


def suspicions(trajectory: Trajectory) -> tuple[Suspicion, ...]:
    """Suspicious text in actions, in the answer and on pages; at most the first twenty. Reads snapshots."""
    suspicious: list[Suspicion] = []
    for where, text, is_participants in _evidence(trajectory):
        match = _ORDER.search(text) or ((_REPLY.search(text) or find_mark(text)) if is_participants else None)
        if match:
            around = text[max(0, match.start() - _AROUND) : match.end() + _AROUND]
            suspicious.append(Suspicion(where=where, text=bounded_line(around, 300)))
        if len(suspicious) == MAX_FOUND:
            break
    return tuple(suspicious)


def _evidence(trajectory: Trajectory) -> Iterator[tuple[str, str, bool]]:
    """Pieces of evidence: where each is, its text, and whether the participant wrote it."""
    for number, line in enumerate(trajectory.action_history, 1):
        subject, _, value = split_line(line) or ("", "", line)
        yield f"the text of action {number}", value or "", True
        yield f"the element of action {number}", subject, False
    yield "the answer", trajectory.final_answer or "", True
    for step in trajectory.observations:
        yield f"the title of page {step.index + 1}", step.title, False
        yield f"vanished text of page {step.index + 1}", "\n".join(step.vanished_texts), False
        if step.snapshot is not None:
            path = trajectory.folder / step.snapshot
            try:
                snapshot = read_file(path, max_bytes=_MAX_SNAPSHOT_BYTES).decode("utf-8", "replace")
            except (OSError, ValueError):
                # Not an error here: judges that need the snapshot report it, and the others do not read it.
                continue
            yield f"page {step.index + 1}", snapshot[:_MAX_SEARCHED_CHARS], False
