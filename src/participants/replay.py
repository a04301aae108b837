"""Plays a script: finds the elements it names in the current snapshot, asks no model, always does the same.

The script is given by `--script` or `WABE_REPLAY_SCRIPT`; several files are separated by the system's path separator
(`:`; `;` on Windows). Without one, the scripts of the bundled task sets are played.

A file contains `[[scripts]]`, each with the `task` as the judge sends it (white space is normalised), an optional
`website`, and `[[scripts.steps]]`. One with `site_tools = true` is played where the first page's tools are offered.
A step is either `say` (a raw reply) or `tool`, with `params`, `thought` and, to
name an element, `role`, `name` and `nth` (from 0; negative counts from the end). `browser_drag` takes two of them as
`start = { role, name }` and `end`, `browser_fill_form` several as `fields = [{ role, name, value }]`. With `then =
true`, the next step is sent in the same reply, where the judge takes several actions per reply. `after = { role,
name }` delays a step until such an element is there, so that the effect of an earlier step has arrived. Each element
may have `within = { role, name, nth }`: it is looked for inside that one only.

`--close` names buttons that are pressed whenever they are there, such as those of what covers a page.
`--reload` loads a page again, once in an attempt, that does not have what the next step needs.

Dates such as `{next friday}` in `task` and `steps` are written out as in a scenario, relative to the day of the run:
`--today`, or `WABE_TODAY`, which a run sets for the participants that it starts, or else the present day in UTC.
"""

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from pydantic import Field, TypeAdapter, ValidationInfo, model_validator

from participants.base import Decide, Observation, ParticipantOptions, Reply, one_or_all, per_attempt
from shared.dates import with_dates
from shared.elements import ElementQuery, find_element
from shared.errors import ConfigError
from shared.fields import Invalid, Table
from shared.files import read_errors, read_text
from shared.models import Action
from shared.protocol import is_result
from shared.snapshot import Snapshot, parse_snapshot
from shared.text import plain
from shared.toml_lines import line_of, lines_of
from shared.toml_text import parse_toml
from shared.validation import mistake, validated

MAX_WAITS = 4
_WAIT_S = 1
# Roles of fields that `browser_fill_form` knows under another name.
_FIELD_TYPES = MappingProxyType({"searchbox": "textbox", "spinbutton": "textbox", "switch": "checkbox"})
# Where dates are written out.
_DATED = ("task", "steps")
# A task and its website, normalised; without a website it applies to any. Whether it uses the site's tools.
_Key = tuple[str, str | None, bool]


def create(options: ParticipantOptions) -> Decide:
    """A replay participant. Raises `ConfigError` if there is no script, or for one that cannot be used."""
    script_path = options.script or options.settings.replay_script or ""
    paths = [Path(part) for part in script_path.split(os.pathsep) if part]
    paths = paths or sorted(options.settings.scenarios_folder.glob("*/replay.toml"))
    if not paths:
        raise ConfigError("the replay participant has no script", remedy="give --script FILE or set WABE_REPLAY_SCRIPT")
    texts = [(path, _text_of(path)) for path in paths]

    @lru_cache(maxsize=2)
    def book_of(day: date) -> Mapping[_Key, Script]:
        return _book(texts, day)

    def book() -> Mapping[_Key, Script]:
        return book_of(options.today or datetime.now(UTC).date())

    # Mistakes are reported at the start.
    book()

    def begin(first: Observation) -> Decide:
        script = find_script(book(), first.instruction, first.website, has_tools=bool(first.page.page_tools))
        player = None if script is None else Player(script, options.close, reloads=options.reload)

        async def decide(observation: Observation) -> Reply:
            if player is None:
                return _finish("There is no script for this task.")
            return player.reply(
                observation.page.snapshot,
                observation.feedback,
                executed=observation.executed,
                max_actions=observation.max_actions,
                url=observation.page.url,
            )

        return decide

    return per_attempt(begin)


class FormField(ElementQuery):
    """A field of `browser_fill_form`; `type` is the element's role unless given."""

    value: str
    type: str | None = None


class ScriptStep(Table):
    """One reply. With `repeat` it is sent again until the attempt ends."""

    say: str | None = None
    tool: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    role: str | None = None
    name: str | None = None
    nth: int = 0
    within: ElementQuery | None = None
    start: ElementQuery | None = None
    end: ElementQuery | None = None
    fields: tuple[FormField, ...] = ()
    after: ElementQuery | None = None
    thought: str = ""
    repeat: bool = False
    # The next step belongs to the same reply.
    then: bool = False

    @model_validator(mode="after")
    def _is_one_reply(self) -> Self:
        if (self.say is None) == (self.tool is None):
            raise Invalid("a step has either `tool` or `say`", "keep or add one of them")
        if self.say is not None and (self.params or self.elements or self.name or self.thought):
            raise Invalid("a step with `say` takes no `params`, `thought` or elements", "remove them")
        if self.name is not None and self.role is None:
            raise Invalid("`name` needs a `role`", "add the element's role", key="name")
        if self.within is not None and self.role is None:
            raise Invalid("`within` needs a `role`", "add the role of the element inside", key="within")
        if self.then and (self.say is not None or self.repeat):
            raise Invalid("a step with `then` takes neither `say` nor `repeat`", "remove `then`", key="then")
        if (self.start is None) != (self.end is None):
            raise Invalid("`start` and `end` need each other", "add the other one")
        return self

    @property
    def element(self) -> ElementQuery | None:
        """The element that the step acts on."""
        return (
            None
            if self.role is None
            else ElementQuery(role=self.role, name=self.name, nth=self.nth, within=self.within)
        )

    @property
    def elements(self) -> tuple[ElementQuery, ...]:
        """Every element that the step names."""
        return tuple(filter(None, (self.element, self.start, self.end, *self.fields)))

    def action(self, page: Snapshot) -> Action:
        """The step's action on a page that has its elements."""
        refs = {query: node.ref for query in self.elements if (node := find_element(page, query)) and node.ref}
        thought = self.thought or f"Next: {self.tool}" + (f" on {self.element}." if self.element else ".")
        return Action(tool=self.tool or "", params=self.params_for(refs), thought=thought)

    def params_for(self, refs: Mapping[ElementQuery, str]) -> dict[str, Any]:
        """The parameters, including the elements' references. Descriptions are only for readers of the recording."""
        params = dict(self.params)
        if self.element is not None:
            params |= {"element": str(self.element), "target": refs[self.element]}
        if self.start is not None and self.end is not None:
            params |= {"startElement": str(self.start), "startTarget": refs[self.start]}
            params |= {"endElement": str(self.end), "endTarget": refs[self.end]}
        if self.fields:
            params["fields"] = [
                {
                    "target": refs[field],
                    "name": str(field),
                    "type": field.type or _FIELD_TYPES.get(field.role, field.role),
                    "value": field.value,
                }
                for field in self.fields
            ]
        return params


class Script(Table):
    """What to do for one task."""

    task: str = Field(min_length=1)
    website: str | None = None
    site_tools: bool = False
    steps: tuple[ScriptStep, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _is_of_a_day(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping) or not isinstance(info.context, date):
            return data
        return with_dates(data, _DATED, info.context)

    @property
    def key(self) -> _Key:
        """The key by which the script is looked up."""
        return _key(self.task, self.website, self.site_tools)


class _ScriptFile(Table):
    scripts: tuple[Script, ...] = Field(min_length=1)


_FILE = TypeAdapter(_ScriptFile)


def _key(task: str, website: str | None, has_tools: bool) -> _Key:
    return plain(task), None if website is None else website.strip().rstrip("/"), has_tools


def find_script(
    book: Mapping[_Key, Script], task: str, website: str | None, *, has_tools: bool = False
) -> Script | None:
    """The script for this task; one for the website takes precedence over one for any website.

    `has_tools`: the page offers tools of its own, so that a script that uses them takes precedence over both.
    """
    keys = (_key(task, place, uses) for uses in ([True, False] if has_tools else [False]) for place in (website, None))
    return next((book[key] for key in keys if key in book), None)


def load_book(paths: Iterable[Path], today: date | None = None) -> dict[_Key, Script]:
    """The scripts of all files, on that day; without one, dates stay as they are written.

    Raises `ConfigError` for one that cannot be read, is malformed, or has another script for the same task.
    """
    return _book([(path, _text_of(path)) for path in paths], today)


def _text_of(path: Path) -> str:
    with read_errors(f"{path}: cannot be read", "give the path of a replay script"):
        return read_text(path)


def _book(texts: Iterable[tuple[Path, str]], today: date | None) -> dict[_Key, Script]:
    book: dict[_Key, Script] = {}
    sources: dict[_Key, Path] = {}
    for path, text in texts:
        for number, script in enumerate(parse_scripts(text, path, today)):
            # The same task of another set, such as one on recorded sites, is played in the same way.
            if script.key in sources and (sources[script.key] == path or book[script.key] != script):
                problem = f"{sources[script.key]} has a script for this task already"
                remedy = "keep one script for each task, or distinguish them by `website`"
                key = ("scripts", number, "task")
                raise mistake(path, key, problem, remedy, is_toml=True, line=line_of(lines_of(text), key))
            sources[script.key] = path
            book[script.key] = script
    return book


def parse_scripts(text: str, source: object, today: date | None = None) -> tuple[Script, ...]:
    """The scripts in `text`, with their dates written out if `today` is given.

    Raises `ConfigError` naming `source` and the wrong key.
    """
    with read_errors(source, "scenarios/README.md describes the format of replay scripts"):
        tables = parse_toml(text)
    return validated(_FILE, tables, source, toml=text, context=today).scripts


class Player:
    """The position of one attempt in its script. Waits up to `MAX_WAITS` times for a missing element."""

    def __init__(self, script: Script, closes: Sequence[str] = (), *, reloads: bool = False) -> None:
        self._reloads = reloads
        self._closes = closes
        self._steps = script.steps
        self._at = 0
        self._waits = 0
        self._failures = 0
        # How many steps the last reply had.
        self._actions_sent = 0

    def reply(
        self,
        snapshot: str,
        feedback: str | None,
        *,
        executed: tuple[int, int] | None = None,
        max_actions: int = 1,
        url: str = "",
    ) -> Reply:
        """The next reply: one or more actions, or text that is sent unchanged. The rest is what the judge sent."""
        if self._actions_sent and (problem := self._advance(feedback, executed)):
            return _finish(problem)
        self._actions_sent = 0
        if self._at >= len(self._steps):
            return _finish("The script ends here.")
        page = parse_snapshot(snapshot)
        if (cover := _closing(page, self._closes)) is not None:
            return cover
        first, *later = self._together()[:max_actions]
        if (missing := _missing(page, first)) is not None:
            return self._wait(missing, url)
        # Later steps only if all of their elements are there already.
        steps = [first, *itertools.takewhile(lambda step: _missing(page, step) is None, later)]
        self._actions_sent = len(steps)
        if first.say is not None:
            return first.say
        return one_or_all([step.action(page) for step in steps])

    def _advance(self, feedback: str | None, executed: tuple[int, int] | None) -> str | None:
        """Go on after what was executed of the last reply. Returns the reason to give up, if there is one."""
        step = self._steps[self._at]
        done = executed[0] if executed else 1
        # An unreadable reply is meant to fail; an action is tried once more, on the new snapshot.
        has_failed = feedback is not None and not is_result(feedback) and step.tool is not None
        if has_failed and (executed is None or done == 0):
            self._failures += 1
            return f"Step {self._at + 1} failed twice: {feedback}" if self._failures > 1 else None
        self._at += 0 if step.repeat else done
        self._failures = self._waits = 0
        return None

    def _together(self) -> Sequence[ScriptStep]:
        """The steps sent in one reply."""
        remaining = self._steps[self._at :]
        return remaining[: next((at for at, step in enumerate(remaining, 1) if not step.then), len(remaining))]

    def _wait(self, query: ElementQuery, url: str) -> Action:
        if self._reloads and url:
            self._reloads = False
            return Action(tool="browser_navigate", params={"url": url}, thought=f"{query} may be there another time.")
        self._waits += 1
        if self._waits > MAX_WAITS:
            return _finish(f"I could not find {query} on the page.")
        return Action(tool="browser_wait_for", params={"time": _WAIT_S}, thought=f"{query} is not there yet.")


def _closing(page: Snapshot, names: Iterable[str]) -> Action | None:
    """The click on a button of one of these names, if there is one."""
    steps = (ScriptStep(tool="browser_click", role="button", name=name) for name in names)
    return next((step.action(page) for step in steps if _missing(page, step) is None), None)


def _missing(page: Snapshot, step: ScriptStep) -> ElementQuery | None:
    """The first element that the step needs and the page does not have."""
    if step.after is not None and find_element(page, step.after) is None:
        return step.after
    return next((query for query in step.elements if find_element(page, query) is None), None)


def _finish(answer: str) -> Action:
    return Action(tool="finish", params={"answer": answer}, thought="There is nothing more I can do.")
