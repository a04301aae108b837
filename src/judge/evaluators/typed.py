"""Tells the words that a participant wrote from the site's own in a text that vanished. Pure.

A field's message repeats what was typed ("“Order placed” is not an e-mail address"). So such a text counts only if the
words that were typed would not do alone: with the site's punctuation, but without its words. If they would, only the
rest of the text counts. The rule knows the recorded actions; what was pasted or dropped is in no action, and then every
value that a field has shown counts as typed.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from judge.evaluators.evidence import Look, TrajectoryEvidence
from judge.records.tools import texts_of, tool_of, tools
from shared.models import Action
from shared.snapshot import FIELDS, Snapshot

_WORD = re.compile(r"\w+")
# In place of words left out: no pattern or text can name it, as no page can contain it.
_LEFT_OUT = "\uffff"
_MAX_WORDS = 5_000


class TypedWords:
    """The words that were typed, in any case and in any form of their characters."""

    def __init__(self, texts: Iterable[str]) -> None:
        forms = {form for text in texts for each in (text, unquote(text)) for form in _forms(each)}
        words = sorted({word for form in forms for word in _WORD.findall(form)}, key=len, reverse=True)[:_MAX_WORDS]
        self._text = "\n".join(forms)
        self._any = re.compile("|".join(map(re.escape, words)), re.IGNORECASE) if words else None

    def is_in(self, page: Snapshot) -> bool:
        """Whether any of the page's words was typed."""
        return any(self._parts(text)[1] for node in page.nodes for text in (node.name, node.text))

    def alone(self, page: Snapshot) -> Snapshot:
        """The page without the words of its site."""
        return self._changed(page, is_typed=False)

    def without(self, page: Snapshot) -> Snapshot:
        """The page without the words that were typed."""
        return self._changed(page, is_typed=True)

    def _changed(self, page: Snapshot, *, is_typed: bool) -> Snapshot:
        def left(text: str) -> str:
            return "".join(
                _LEFT_OUT if typed == is_typed and _WORD.search(part) else part for part, typed in self._parts(text)[0]
            )

        nodes = tuple(node._replace(name=left(node.name), text=left(node.text)) for node in page.nodes)
        return Snapshot(nodes, {at: left(value) for at, value in page.values.items()})

    def _parts(self, text: str) -> tuple[list[tuple[str, bool]], bool]:
        """The text in parts, each with whether it was typed, and whether any was."""
        parts: list[tuple[str, bool]] = []
        end = 0
        for match in _WORD.finditer(text):
            parts.append((text[end : match.start()], False))
            parts += self._in_word(match[0])
            end = match.end()
        parts.append((text[end:], False))
        return parts, any(typed for _, typed in parts)

    def _in_word(self, word: str) -> Iterator[tuple[str, bool]]:
        # Pages cut what they repeat, and some scripts have no spaces between words.
        if any(form in self._text for form in _forms(word)):
            yield word, True
            return
        end = 0
        for match in self._any.finditer(word) if self._any else ():
            yield word[end : match.start()], False
            yield match[0], True
            end = match.end()
        yield word[end:], False


def typed_until(recording: TrajectoryEvidence, look: Look) -> TypedWords:
    """What the participant had typed when a look was taken."""
    return TypedWords(_typed(recording, look.step.index))


def _typed(recording: TrajectoryEvidence, index: int) -> Iterator[str]:
    keys = ""
    is_complete = True
    for step in recording.trajectory.observations:
        if step.index >= index or step.action is None:
            continue
        texts = list(_texts(step.action))
        is_complete = is_complete and None not in texts
        if "key" in tool_of(step.action.tool).own_text:
            # One letter each.
            keys += "".join(filter(None, texts)) or " "
        else:
            yield from filter(None, texts)
    yield keys
    if is_complete:
        return
    for earlier in recording.looks:
        page = earlier.snapshot if earlier.step.index <= index else None
        for node in page.nodes if page else ():
            if page and (node.role in FIELDS or earlier.authorship[node.position].is_inside):
                yield from (node.text, page.value_of(node))


def _texts(action: Action) -> Iterable[str | None]:
    if action.tool in tools():
        return texts_of(action.tool, action.params)
    # A tool of the page's, which can do anything with what it is given.
    return _strings(action.params)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for each in value.values() for text in _strings(each))
    elif isinstance(value, list | tuple):
        yield from (text for each in value for text in _strings(each))


def _forms(text: str) -> set[str]:
    return {text.casefold(), unicodedata.normalize("NFKC", text).casefold()}
