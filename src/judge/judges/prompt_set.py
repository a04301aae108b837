"""A judge's prompts: data files with a version and a checksum, the bundled set or a folder of the user's own."""

import hashlib
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

import jinja2
import jinja2.meta
import jinja2.sandbox

from shared.errors import ConfigError
from shared.files import decode, parse_toml, read_file, reason_of
from shared.models import Record

MANIFEST = "prompts.toml"
# What each template must make use of: a prompt that leaves evidence out would judge something else.
REQUIRED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "key_points": frozenset({"task_block"}),
        "image": frozenset({"task_block"}),
        "outcome": frozenset({"task_block", "key_points_block", "actions_block", "answer_block"}),
        "key_point": frozenset({"task_block", "key_point_block", "actions_block", "answer_block"}),
        "webvoyager": frozenset({"task_block", "answer_block"}),
        "autonomous": frozenset({"task_block", "actions_block", "answer_block"}),
        "agenttrek": frozenset({"task_block", "actions_block", "thoughts_block", "answer_block"}),
        "rubric_criteria": frozenset({"task_block"}),
        "rubric_image": frozenset({"task_block", "criteria_block"}),
        "rubric_process": frozenset({"task_block", "criteria_block", "actions_block", "notes_block"}),
        "rubric_outcome": frozenset({"task_block", "criteria_block", "actions_block", "answer_block"}),
    }
)
# What a template may use besides.
OPTIONAL: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "image": frozenset({"key_points_block"}),
        **dict.fromkeys(("outcome", "key_point", "webvoyager", "rubric_outcome"), frozenset({"image_count"})),
        "rubric_process": frozenset({"answer_block", "image_count"}),
    }
)
_MAX_FILE_BYTES = 200_000


class Prompt(Record):
    """One question: the system prompt and the template of the user's turn."""

    system: str
    user: str


class PromptSet:
    """The prompts that one judge method needs. `checksum` is SHA-256 over every file of the set."""

    def __init__(self, name: str, version: str, checksum: str, files: Mapping[str, str]) -> None:
        self.name = name
        self.version = version
        self.checksum = checksum
        self._files = files
        self._templates: dict[str, jinja2.Template] = {}
        self._jinja = jinja2.sandbox.SandboxedEnvironment(
            undefined=jinja2.StrictUndefined, keep_trailing_newline=False, trim_blocks=True, lstrip_blocks=True
        )

    def render(self, name: str, values: Mapping[str, object]) -> Prompt:
        """The two texts of prompt `name`. Names of `REQUIRED` and `OPTIONAL` that have no value count as empty."""
        known = dict.fromkeys(REQUIRED[name] | OPTIONAL.get(name, frozenset()), "")
        if name not in self._templates:
            self._templates[name] = self._jinja.from_string(self._files[f"{name}.user.j2"])
        user = self._templates[name].render({**known, **values})
        return Prompt(system=self._files[f"{name}.system.txt"].strip(), user=user.strip())

    def reminder(self, kind: str) -> str:
        """The sentence that is added when a reply could not be used; kinds are list, score, status and json."""
        return self._files[f"reminder_{kind}.txt"].strip()

    def check(self, names: tuple[str, ...], reminders: tuple[str, ...]) -> None:
        """Whether the set has everything that a method needs. Raises `ConfigError` naming what is missing."""
        for name in names:
            self._need(f"{name}.system.txt")
            self._check_template(name, self._need(f"{name}.user.j2"))
        for kind in reminders:
            self._need(f"reminder_{kind}.txt")

    def _need(self, file: str) -> str:
        if not self._files.get(file, "").strip():
            raise ConfigError(
                f"prompt set {self.name!r}: file {file} is missing or empty",
                remedy="start from a copy of the bundled set (src/judge/judges/prompts/default)",
            )
        return self._files[file]

    def _check_template(self, name: str, source: str) -> None:
        file = f"{name}.user.j2"
        try:
            used = jinja2.meta.find_undeclared_variables(self._jinja.parse(source))
            missing = REQUIRED[name] - used
            unknown = used - REQUIRED[name] - OPTIONAL.get(name, frozenset())
            if not missing and not unknown:
                self.render(name, {})
        except jinja2.TemplateError as error:
            line = getattr(error, "lineno", None)
            where = f" line {line}" if line else ""
            raise ConfigError(
                f"prompt set {self.name!r}: {file}{where}: {error}", remedy="correct the template"
            ) from None
        if missing:
            raise ConfigError(
                f"prompt set {self.name!r}: {file} does not use {{{{ {sorted(missing)[0]} }}}}",
                remedy="every prompt must show the judge model its evidence",
            )
        if unknown:
            raise ConfigError(
                f"prompt set {self.name!r}: {file} uses {{{{ {sorted(unknown)[0]} }}}}, which does not exist",
                remedy=f"use {', '.join(sorted(REQUIRED[name] | OPTIONAL.get(name, frozenset())))}",
            )


def load_prompts(folder: str | Path | None) -> PromptSet:
    """The bundled set (`None`) or a folder of the user's own. Raises `ConfigError` naming the file and the key."""
    source: Traversable = (
        resources.files("judge.judges").joinpath("prompts", "default") if folder is None else Path(folder)
    )
    if not source.is_dir():
        raise ConfigError(f"config.prompts: no folder {folder}", remedy="give a folder with a prompts.toml in it")
    files = {entry.name: _read(entry) for entry in source.iterdir() if _is_prompt_file(entry)}
    if MANIFEST not in files:
        raise ConfigError(f"config.prompts: {folder} has no {MANIFEST}", remedy="it gives the set's name and version")
    try:
        manifest = parse_toml(files[MANIFEST])
    except ValueError as error:
        raise ConfigError(f"{folder}/{MANIFEST}: {error}", remedy="correct the TOML") from None
    for key in ("name", "version"):
        if not isinstance(manifest.get(key), str) or not manifest[key].strip():
            raise ConfigError(f"{folder}/{MANIFEST}: key {key!r} is missing or no text", remedy=f'add {key} = "…"')
    for key in manifest.keys() - {"name", "version"}:
        raise ConfigError(f"{folder}/{MANIFEST}: unknown key {key!r}", remedy="known are name and version")
    return PromptSet(manifest["name"], manifest["version"], _checksum(files), files)


def _is_prompt_file(entry: Traversable) -> bool:
    return entry.is_file() and entry.name.endswith((".toml", ".txt", ".j2")) and not entry.name.startswith(".")


def _read(entry: Traversable) -> str:
    try:
        # A resource of the package may lie in an archive; a user's prompts are files.
        data = read_file(entry, max_bytes=_MAX_FILE_BYTES) if isinstance(entry, Path) else entry.read_bytes()
        # Line ends are not content: a checkout on another system must give the same checksum.
        return decode(data).replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{entry}: {reason_of(error)}", remedy="prompts are short UTF-8 texts") from None


def _checksum(files: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        data = files[name].encode()
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()
