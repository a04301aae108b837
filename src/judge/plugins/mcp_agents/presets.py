"""How a program is started: its command, environment and files, from a preset or from the user's own command.

A preset is a TOML file beside this module: data about one program, with the version with which it was tried.
"""

import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from shared.errors import ConfigError
from shared.fields import Table, closest, printable
from shared.files import read_errors, read_text
from shared.llm.opening import provider
from shared.llm.providers import provider_names
from shared.text import one_line
from shared.toml_text import parse_toml
from shared.validation import validated

_FOLDER = Path(__file__).parent / "presets"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
# A program of Node takes a second or two to start.
_VERSION_S = 20.0
Places = Mapping[str, str]
"""What stands for each placeholder, by its name without braces."""
PLACES = ("mcp_url", "mcp_token", "mcp_config", "instruction", "instruction_file", "workdir", "model")
_CommandText = Annotated[str, Field(min_length=1, max_length=10_000)]


class Preset(Table):
    """How one program is started.

    `env` and `files` (below its HOME) may have placeholders as the command does. `keys` are the variables of which it
    needs one of the participant's environment, `endpoints` those with the address of its model; of a user's command,
    all that it may use. `tools_off`: it has no tools but
    this server's. `options` are words that are added where what they are named after has a value: `model`, or an
    endpoint that the program does not read from its environment. `usage` says where its output tells what its model
    used: dotted paths in a JSON object.
    """

    command: _CommandText
    env: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    keys: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    options: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    tools_off: bool = False
    usage: dict[str, str] = Field(default_factory=dict)
    version: str | None = None
    tried: str | None = None
    name: str = ""
    is_preset: bool = True
    """Whether it is a preset, which gets a HOME of its own; a user's command runs in the user's environment."""

    def program_version(self) -> str | None:
        """What the program says is its version; `None` if it says nothing within seconds."""
        if self.version is None:
            return None
        try:
            done = subprocess.run(
                shlex.split(self.version), capture_output=True, text=True, timeout=_VERSION_S, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return one_line(done.stdout, 100) or None

    def argv(self, places: Places) -> list[str]:
        """The words of the command: split once, and each placeholder becomes part of one word."""
        added = [word for name, words in self.options.items() if places.get(name) for word in words]
        return [filled(word, places) for word in (*shlex.split(self.command), *added)]


_FILE: TypeAdapter[Preset] = TypeAdapter(Preset)


def filled(text: str, places: Places) -> str:
    """The text with what stands for its placeholders. Braces around other words stay, as in JSON."""
    return _PLACEHOLDER.sub(lambda match: places.get(match[1], match[0]), text)


def preset_names() -> list[str]:
    """The names of all presets."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_preset(command: str) -> Preset:
    """The preset of that name, or the user's own command. Raises `ConfigError`."""
    if command in preset_names():
        path = _FOLDER / f"{command}.toml"
        with read_errors(path):
            text = read_text(path)
            tables: dict[str, Any] = parse_toml(text)
        return validated(_FILE, {**tables, "name": command}, path, toml=text)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(
            f"mcp:{printable(command)}: {str(error).lower()}", remedy="close the quotes of the command"
        ) from None
    if not words or (len(words) == 1 and re.fullmatch(r"[\w-]+", words[0])):
        names = preset_names()
        raise ConfigError(
            f"mcp:{printable(command)} is neither a preset nor a command with {{mcp_url}} or {{mcp_config}}",
            remedy=f"{closest(command, names)}presets: {', '.join(names)}",
        )
    unknown = [name for name in _PLACEHOLDER.findall(command) if name not in PLACES]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACES)
        raise ConfigError(f"mcp: unknown placeholder {{{unknown[0]}}}", remedy=f"the known ones: {known}")
    # The program is started in another folder than the one in which its command was written.
    placed = [_absolute(word) if place or "/" in word else word for place, word in enumerate(words)]
    # It may use any provider's model.
    providers = [provider(name) for name in provider_names()]
    return Preset(
        command=shlex.join(placed),
        name=Path(words[0]).name,
        keys=tuple(name for each in providers for name in each.key_variables),
        endpoints=tuple(each.url_variable for each in providers),
        is_preset=False,
    )


def _absolute(word: str) -> str:
    try:
        return str(Path(word).absolute()) if Path(word).is_file() else word
    # Too long for a name, or with a null byte.
    except (OSError, ValueError):
        return word
