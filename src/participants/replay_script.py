"""Replay scripts: what to do for which task, read from TOML and checked whole. Pure but for reading the files.

A file holds `[[scripts]]`, each with the `task` as the judge sends it (white space is folded before comparing), an
optional `website`, and `[[scripts.steps]]`. A step is either `say` (a raw reply) or `tool`, with `params`, `thought`
and, to name an element, `role`, `name` and `nth` (from 0; negative counts from the end). `after = { role, name }`
holds a step back until such an element is there: what an earlier step brought about has then arrived.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from shared.errors import ConfigError
from shared.files import parse_toml, read_text, reason_of
from shared.models import Record


class Wanted(Record):
    """An element by role and name."""

    role: str
    name: str | None = None
    nth: int = 0

    def __str__(self) -> str:
        which = f" number {self.nth + 1}" if self.nth > 0 else ""
        return f'{self.role} "{self.name}"{which}' if self.name is not None else f"{self.role}{which}"


class ScriptStep(Record):
    """One reply. `repeat` plays it again for as long as the episode lasts."""

    say: str | None = None
    tool: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    role: str | None = None
    name: str | None = None
    nth: int = 0
    after: Wanted | None = None
    thought: str = ""
    repeat: bool = False

    @model_validator(mode="after")
    def _is_one_reply(self) -> Self:
        if (self.say is None) == (self.tool is None):
            raise ValueError("a step has either `tool` or `say`")
        if self.say is not None and (self.params or self.role or self.name or self.thought):
            raise ValueError("a step with `say` takes no `params`, `role`, `name` or `thought`")
        if self.name is not None and self.role is None:
            raise ValueError("`name` needs a `role`")
        return self

    @property
    def element(self) -> Wanted | None:
        """The element that the step is about."""
        return None if self.role is None else Wanted(role=self.role, name=self.name, nth=self.nth)


class Script(Record):
    """What to do for one task."""

    task: str = Field(min_length=1)
    website: str | None = None
    steps: tuple[ScriptStep, ...] = Field(min_length=1)

    def key(self) -> tuple[str, str | None]:
        """What a script is found by."""
        return fold(self.task), None if self.website is None else fold_website(self.website)


class ScriptFile(Record):
    """A whole file."""

    scripts: tuple[Script, ...] = Field(min_length=1)


def fold(text: str) -> str:
    """`text` with every run of white space as one space."""
    return " ".join(text.split())


def fold_website(url: str) -> str:
    """`url` without white space around it and without a closing slash."""
    return url.strip().rstrip("/")


class ScriptBook:
    """Every script of some files, found by task and website."""

    def __init__(self, scripts: Iterable[Script]) -> None:
        self._scripts = {script.key(): script for script in scripts}

    def find(self, task: str, website: str | None) -> Script | None:
        """The script for this task; one that names the website goes before one that names none."""
        wanted = fold(task)
        exact = None if website is None else self._scripts.get((wanted, fold_website(website)))
        return exact or self._scripts.get((wanted, None))

    def __len__(self) -> int:
        return len(self._scripts)


def parse_scripts(text: str, source: str) -> tuple[Script, ...]:
    """The scripts in `text`. Raises `ConfigError` naming `source` and the key that is wrong."""
    try:
        data = parse_toml(text)
    except ValueError as error:
        raise ConfigError(f"{source}: {error}", remedy="correct the file at that place") from error
    try:
        return ScriptFile.model_validate(data).scripts
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "scripts"
        message = first["msg"].removeprefix("Value error, ")
        raise ConfigError(
            f"{source}: {key}: {message}", remedy="scenarios/README.md describes the format of replay scripts"
        ) from error


def load_book(paths: Iterable[Path]) -> ScriptBook:
    """Read every file. Raises `ConfigError` for a file that cannot be read, is malformed, or repeats a task."""
    seen: dict[tuple[str, str | None], Path] = {}
    scripts: list[Script] = []
    for path in paths:
        try:
            text = read_text(path)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{path}: cannot be read: {reason_of(error)}", remedy="give the path of a replay script"
            ) from error
        for number, script in enumerate(parse_scripts(text, str(path))):
            if script.key() in seen:
                raise ConfigError(
                    f"{path}: scripts.{number}.task: the task has a script already in {seen[script.key()]}",
                    remedy="keep one script for each task, or tell them apart by `website`",
                )
            seen[script.key()] = path
            scripts.append(script)
    return ScriptBook(scripts)
