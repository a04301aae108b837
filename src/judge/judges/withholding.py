"""Withholds evidence, step by step, from a judge model that refuses a question, and decides who caused the refusal.

A provider's filter sees a question as a whole, so the judge finds out what it objects to by asking again with less.
Every step withholds something that the participant caused, in addition to what earlier steps withheld:

1. `text`: what the participant wrote (typed text, addresses, answer, thoughts), except words of the task, and its
   words in element names and notes from pages that were observed afterwards;
2. `off_site`: screenshots, element names and notes from pages off the task's sites;
3. `after_text`: the same from pages of the task's sites observed after the participant had first written text of its
   own, because such a page may show that text in any form.

What is left is the task, and pages of its sites without anything by the participant. So an answer after any step proves
that the participant caused the refusal; a refusal after the last step proves nothing.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from judge.evaluators.evidence import own_site
from judge.records.sites import NONE_SHARED, RunSites, created_by, site_of
from judge.records.tasks import Task
from judge.records.tools import texts_of, tools, verb_of
from judge.trajectory.record import Texts, Trajectory
from shared.text import split_line

Withholding = Literal["text", "off_site", "after_text"]
STEPS: tuple[Withholding, ...] = ("text", "off_site", "after_text")
MARK = "[withheld]"

_TOKEN = re.compile(r"[^\W_]+|[^\w\s]")
# Parts of any address, which the participant did not choose.
_OF_ADDRESSES = frozenset({"http", "https", "www"})
_OF_SERVER = re.compile("browser_[a-z_]+")
# A field in an action line, with the value written into it; the last one may be cut off.
_FILLED = re.compile(r'("[^"]*" = )"([^"]*)(?:"|$)')


@dataclass(frozen=True)
class AttemptView:
    """An attempt as a question shows it. `withheld` is `None` for all of it, else the last of the steps.

    `hidden` are the withheld screenshots, `late` those on which `words` of the participant's may be seen, and
    `masked` the numbers of the action lines withheld in whole or in part, from 1.
    """

    trajectory: Trajectory
    withheld: Withholding | None = None
    hidden: frozenset[Path] = frozenset()
    masked: tuple[int, ...] = ()
    late: frozenset[Path] = frozenset()
    words: frozenset[str] = frozenset()

    def shows(self, screenshot: Path) -> bool:
        """Whether a screenshot, and notes on it, may be shown."""
        return screenshot not in self.hidden

    def note(self, screenshot: Path, text: str) -> str:
        """A judge model's note on a shown screenshot, without the words that the participant wrote."""
        return _without(text, self.words) if screenshot in self.late else text


class Provenance:
    """Which parts of an attempt the participant caused, from its steps.

    In layouts of flat lists, the n-th screenshot was taken before the n-th action, on the task's site.
    """

    def __init__(self, trajectory: Trajectory, sites: RunSites = NONE_SHARED) -> None:
        self._trajectory = trajectory
        self._site = own_site(trajectory, sites).with_home(*trajectory.task.start_urls)
        self._steps = trajectory.steps
        lines, shots = trajectory.action_history, trajectory.screenshots
        self._places_of_lines = _places(
            [place for place, step in enumerate(self._steps) if step.outcome and step.outcome.line], len(lines)
        )
        self._places_of_shots = _places(
            [place for place, step in enumerate(self._steps) if step.screenshot], len(shots)
        )
        self._task_words = words_of_task(trajectory.task)
        texts_by_participant = list(self._texts_by_participant())
        self._own = frozenset(words(text for _, text in texts_by_participant)) - self._task_words
        at = [place for place, text in texts_by_participant if text is None or set(words([text])) - self._task_words]
        self._first_text = min(at, default=None)

    def views(self) -> Iterator[AttemptView]:
        """The attempt with less and less of it, one view for each step."""
        lines = self._trajectory.action_history
        late = frozenset(path for path, place in self._shots() if self._is_late(place))
        for number, step in enumerate(STEPS, 1):
            kinds = STEPS[:number]
            lines_shown = tuple(
                self._withheld_line(line) if self._kind(place) in kinds else self._line(line, place)
                for line, place in zip(lines, self._places_of_lines, strict=True)
            )
            answer = self._trajectory.final_answer
            texts = Texts(
                action_history=lines_shown,
                thoughts=tuple(map(self._task_words_in, self._trajectory.thoughts)),
                final_answer=None if answer is None else self._task_words_in(answer),
            )
            yield AttemptView(
                trajectory=self._trajectory.model_copy(update={"texts": texts}),
                withheld=step,
                hidden=frozenset(path for path, place in self._shots() if self._kind(place) in kinds),
                masked=tuple(n for n, (line, was) in enumerate(zip(lines_shown, lines, strict=True), 1) if line != was),
                late=late,
                words=self._own,
            )

    def is_participants(self, screenshot: Path) -> bool:
        """Whether a screenshot shows something that the participant caused."""
        return any(path == screenshot and self._kind(place) is not None for path, place in self._shots())

    def _shots(self) -> Iterator[tuple[Path, int]]:
        """The screenshots with their places."""
        return zip(self._trajectory.screenshots, self._places_of_shots, strict=True)

    def _kind(self, place: int) -> Withholding | None:
        """The step at which the page observed at this place is withheld; `None` if it never is."""
        url = created_by(self._steps[place].url) if place < len(self._steps) else ""
        if site_of(url) is not None and not self._site.holds(url):
            return "off_site"
        return "after_text" if self._is_late(place) else None

    def _is_late(self, place: int) -> bool:
        """Whether the page at this place was observed after the participant had written text of its own."""
        return self._first_text is not None and place > self._first_text

    def _texts_by_participant(self) -> Iterator[tuple[int, str | None]]:
        """What the participant wrote into pages, and where; `None` for text not on record, such as a paste."""
        of_steps = {place: step.action for place, step in enumerate(self._steps) if step.action is not None}
        ours = {
            place: action
            for place, action in of_steps.items()
            if action.tool in tools() or _OF_SERVER.fullmatch(action.tool)
        }
        for place, action in ours.items():
            for text in texts_of(action.tool, action.params):
                yield place, text
        for line, place in zip(self._trajectory.action_history, self._places_of_lines, strict=True):
            if place not in ours:
                for text in _texts_of_line(line):
                    yield place, text

    def _withheld_line(self, line: str) -> str:
        """An action line of a withheld page: only what kind of action it was."""
        parts = split_line(line)
        return MARK if parts is None else f"<{MARK}> -> {parts[1]}"

    def _line(self, line: str, place: int) -> str:
        """An action line without what the participant wrote."""
        parts = split_line(line)
        if parts is None:
            return self._task_words_in(line)
        _, verb, value = parts
        own = self._own if self._is_late(place) else frozenset()
        if not value or not _is_written(verb, value):
            return _without(line, own)
        head = _without(line.removesuffix(value), own)
        if _FILLED.search(value) is None:
            return head + self._task_words_in(value)
        return head + _FILLED.sub(lambda part: f'{_without(part[1], own)}"{self._task_words_in(part[2])}"', value)

    def _task_words_in(self, text: str) -> str:
        """The words of the task in a text that the participant wrote, with a mark for all others."""
        if not set(words([text])) - self._task_words:
            return text
        parts: list[str] = []
        for token in _TOKEN.findall(text):
            word = token if token.casefold() in self._task_words else MARK if _is_word(token) else ""
            if word and not (word == MARK and parts[-1:] == [MARK]):
                parts.append(word)
        return " ".join(parts)


def words(texts: Iterable[str | None]) -> Iterator[str]:
    """The words of texts, folded. Symbols such as emoji are words, punctuation is not."""
    for text in texts:
        yield from (token.casefold() for token in _TOKEN.findall(text or "") if _is_word(token))


def words_of_task(task: Task) -> frozenset[str]:
    """The words that the task itself gives the participant: its text and its addresses."""
    return frozenset(words((task.task, task.website, *task.start_urls))) | _OF_ADDRESSES


def _is_word(token: str) -> bool:
    return token.isalnum() or (not token.isascii() and unicodedata.category(token[0])[0] in "SCM")


def _without(text: str, own: frozenset[str]) -> str:
    return _TOKEN.sub(lambda match: MARK if match[0].casefold() in own else match[0], text)


def _places(places: Sequence[int], count: int) -> Sequence[int]:
    """The steps to which `count` lines or screenshots belong."""
    return places if len(places) == count else range(count)


def _texts_of_line(line: str) -> Iterator[str | None]:
    """The written text in an action line. A line in another tool's wording counts as a whole."""
    parts = split_line(line)
    if parts is None:
        yield line
        return
    _, verb, value = parts
    if value and not verb_of(verb).asks:
        yield from verb_of(verb).texts(value)


def _is_written(verb: str, value: str) -> bool:
    """Whether the participant wrote the value of an action line."""
    return any(True for _ in verb_of(verb).texts(value))
