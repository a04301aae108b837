"""The bundled participants by name: what `wabe participant` serves, and what a run can start.

They are entry points of `wabe.participants`, ours and other packages', and every provider of models is
one under its own name. A module put into the package `participants` is found without an entry point, if it has
a function `create(options) -> Decide`; ours are described by the docstrings of their modules.
"""

import ast
import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shared.errors import ConfigError
from shared.fields import closest
from shared.files import read_file
from shared.llm.opening import provider
from shared.llm.provider import Provider
from shared.llm.providers import provider_names
from shared.seams import Seam, file_of

# The participant for a person, and where it serves its page.
HUMAN = "human"
PLAY_PATH = "/play"
# What replaces the participants of the first version.
_FORMER: Mapping[str, str] = MappingProxyType({"adk_default": "gemini", "reliability": "replay"})
# Functions `create(options) -> Decide`, under names of Python modules.
PARTICIPANTS: Seam[Callable[..., Any]] = Seam("participants", "participant")


def list_participants(folders: Iterable[str] | None = None) -> dict[str, str]:
    """All participants with what they do: providers of models, and modules with the first lines of their docstrings.

    Modules are parsed, not imported: a broken one is left out and hides no other.
    """
    participants, paths = dict[str, str](), dict[str, Path]()
    if folders is None:
        for name, entry in PARTICIPANTS.entries().items():
            if entry.is_own and (file := file_of(entry.module)):
                paths[name] = file
            else:
                participants[name] = f"Of the package {entry.package}."
        participants |= {each.name: _description(each) for each in map(provider, provider_names())}
        folders = importlib.import_module("participants").__path__
    paths |= {path.stem: path for folder in folders for path in Path(folder).glob("*.py")}
    for name, path in paths.items():
        try:
            tree = ast.parse(read_file(path))
        except (OSError, SyntaxError, ValueError):
            continue
        if any(isinstance(node, ast.FunctionDef) and node.name == "create" for node in tree.body):
            participants[name] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return dict(sorted(participants.items()))


def module_of(name: str) -> str:
    """The name of the participant's module, for its name on a command line. Raises `ConfigError` if it is unknown."""
    known, module = list_participants(), name.replace("-", "_")
    if module not in known and module in _FORMER:
        raise ConfigError(f"there is no participant {name!r} any more", remedy=f"use {_FORMER[module]!r}")
    if module not in known:
        raise ConfigError(f"unknown participant {name!r}", remedy=f"{closest(name, known)}one of: {', '.join(known)}")
    return module


def _description(provider: Provider) -> str:
    endpoint = f" (or {provider.url_note})" if provider.url_note else ""
    receives = "the page's snapshot and its screenshot" if provider.images else "the page's snapshot"
    return f"Asks a model of {provider.title}{endpoint}, which receives {receives}."
