"""A judge's prompts: data files with a version and a checksum, either bundled or from the user's folder."""

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

import jinja2
import jinja2.meta
import jinja2.sandbox
from pydantic import Field, TypeAdapter

from judge.judges.base import files_checksum
from judge.judges.published import FILE, PublishedEvaluator
from shared.errors import ConfigError
from shared.files import decode, read_errors, read_file
from shared.images import require_pillow
from shared.models import Record
from shared.strict_json import parse_json
from shared.toml_text import parse_toml
from shared.validation import validated

MANIFEST = "prompts.toml"
# The blocks that each template must use: a prompt without this evidence would be another method.
REQUIRED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "key_points": frozenset({"task_block"}),
        "image": frozenset({"task_block", "key_points_block"}),
        "outcome": frozenset({"task_block", "key_points_block", "actions_block", "answer_block", "reasons_block"}),
        "key_point": frozenset({"task_block", "key_point_block", "actions_block", "answer_block", "reasons_block"}),
        "webvoyager": frozenset({"task_block", "answer_block"}),
        "autonomous": frozenset({"task_block", "actions_block", "answer_block"}),
        "agenttrek": frozenset({"task_block", "actions_block", "thoughts_block", "answer_block"}),
        "rubric_criteria": frozenset({"task_block"}),
        "rubric_image": frozenset({"task_block", "criteria_block"}),
        "rubric_process": frozenset({"task_block", "criteria_block", "actions_block", "notes_block"}),
        "rubric_outcome": frozenset({"task_block", "criteria_block", "actions_block", "answer_block"}),
    }
)
# The blocks that a template may use in addition.
OPTIONAL: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("outcome", "key_point"), frozenset({"image_count", "thoughts_block"})),
        **dict.fromkeys(("webvoyager", "rubric_outcome"), frozenset({"image_count"})),
        "rubric_process": frozenset({"answer_block", "image_count"}),
    }
)
WEBJUDGE_PROMPTS = ("key_points", "image", "outcome")
_MAX_FILE_BYTES = 200_000


class Prompt(Record):
    """One question: the system prompt and the user's turn."""

    system: str
    user: str


class _Manifest(Record):
    name: str = Field(pattern=r"\S")
    version: str = Field(pattern=r"\S")


_MANIFEST = TypeAdapter(_Manifest)
_PUBLISHED = TypeAdapter(PublishedEvaluator)


@cache
def _environment() -> jinja2.Environment:
    # Sandboxed, because a third party's prompt set must not run code here.
    return jinja2.sandbox.SandboxedEnvironment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=False, trim_blocks=True, lstrip_blocks=True
    )


# Cached, because a server opens a judge for each run, usually with the bundled prompts.
@lru_cache(64)
def _template(text: str) -> jinja2.Template:
    return _environment().from_string(text)


@lru_cache(64)
def _blocks_in(text: str) -> frozenset[str]:
    return frozenset(jinja2.meta.find_undeclared_variables(_environment().parse(text)))


class PromptSet:
    """The prompts of a folder. `checksum` is SHA-256 over all of its files.

    `published` replaces all prompts of an imported set (`wabe prompts import`).
    """

    def __init__(self, name: str, version: str, files: Mapping[str, str], published: PublishedEvaluator | None) -> None:
        self.name = name
        self.version = version
        self.checksum = files_checksum({name: text.encode() for name, text in files.items()})
        self.published = published
        self._files = files

    def render(self, name: str, values: Mapping[str, object]) -> Prompt:
        """The system and user text of prompt `name`. Known blocks without a value count as empty."""
        known = dict.fromkeys(_known_blocks(name), "")
        user = _template(self._files[f"{name}.user.j2"]).render({**known, **values})
        return Prompt(system=self._files[f"{name}.system.txt"].strip(), user=user.strip())

    def reminder(self, kind: str) -> str:
        """The sentence added after an unusable reply; kinds are list, score, status and json."""
        return self._files[f"reminder_{kind}.txt"].strip()

    def check(self, names: tuple[str, ...], reminders: tuple[str, ...], *, is_published: bool = False) -> None:
        """Raises `ConfigError` naming a file that a method needs but is missing or unusable.

        `is_published` requires a set created by `wabe prompts import`.
        """
        if self.published is not None:
            require_pillow("imported prompts", "published")
            if names != WEBJUDGE_PROMPTS:
                raise self._error("it was imported for webjudge only", 'set judge_method = "webjudge"')
            names = ()
        elif is_published:
            raise self._error(
                'fidelity = "published" needs imported prompts', "run wabe prompts import, and set prompts"
            )
        files = [f"{name}{suffix}" for name in names for suffix in (".system.txt", ".user.j2")]
        for file in (*files, *(f"reminder_{kind}.txt" for kind in reminders)):
            if not self._files.get(file, "").strip():
                raise self._error(
                    f"file {file} is missing or empty", "copy it from the bundled set, judge/judges/prompts/default"
                )
        for name in names:
            self._check_template(name)

    def _check_template(self, name: str) -> None:
        file = f"{name}.user.j2"
        try:
            used = _blocks_in(self._files[file])
            missing, unknown = sorted(REQUIRED[name] - used), sorted(used - _known_blocks(name))
            # Some errors appear only when a template is rendered.
            if not missing and not unknown:
                self.render(name, {})
        except jinja2.TemplateError as error:
            line = getattr(error, "lineno", None)
            where = f" line {line}" if line else ""
            raise self._error(f"{file}{where}: {error}", "correct the template") from None
        if missing:
            raise self._error(
                f"{file} does not use {{{{ {missing[0]} }}}}", "every prompt must show the judge model its evidence"
            )
        if unknown:
            raise self._error(
                f"{file} uses {{{{ {unknown[0]} }}}}, which does not exist",
                f"use {', '.join(sorted(_known_blocks(name)))}",
            )

    def _error(self, problem: str, remedy: str) -> ConfigError:
        return ConfigError(f"prompt set {self.name!r}: {problem}", remedy=remedy)


def load_prompts(folder: str | Path | None) -> PromptSet:
    """The bundled set (`None`) or the user's. Raises `ConfigError` naming the file and the key."""
    source: Traversable = (
        resources.files("judge.judges").joinpath("prompts", "default") if folder is None else Path(folder)
    )
    if not source.is_dir():
        raise ConfigError(
            f"no folder {folder}", key="config.prompts", remedy="give a folder that contains a prompts.toml"
        )
    files = {entry.name: _read(entry) for entry in source.iterdir() if _is_prompt_file(entry)}
    if MANIFEST not in files:
        raise ConfigError(
            f"{folder} has no {MANIFEST}", key="config.prompts", remedy="it gives the set's name and version"
        )
    with read_errors(f"{folder}/{MANIFEST}", "correct the TOML"):
        tables = parse_toml(files[MANIFEST])
    manifest = validated(_MANIFEST, tables, f"{folder}/{MANIFEST}")
    published = None
    if FILE in files:
        with read_errors(f"{folder}/{FILE}", "run wabe prompts import again"):
            value = parse_json(files[FILE])
        published = validated(_PUBLISHED, value, f"{folder}/{FILE}")
    return PromptSet(manifest.name, manifest.version, files, published)


def _known_blocks(name: str) -> frozenset[str]:
    return REQUIRED[name] | OPTIONAL.get(name, frozenset())


def _is_prompt_file(entry: Traversable) -> bool:
    return (
        entry.is_file()
        and (entry.name == FILE or entry.name.endswith((".toml", ".txt", ".j2")))
        and not entry.name.startswith(".")
    )


def _read(entry: Traversable) -> str:
    with read_errors(entry, "prompts are short UTF-8 texts"):
        # Bundled prompts may be inside an archive; a user's prompts are files.
        data = read_file(entry, max_bytes=_MAX_FILE_BYTES) if isinstance(entry, Path) else entry.read_bytes()
        # A checkout with other line endings must have the same checksum.
        return decode(data).replace("\r\n", "\n")
