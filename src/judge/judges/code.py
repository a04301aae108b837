"""The judging code: its files, and the checksum that every verdict records."""

import importlib.metadata
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from judge.judges.base import files_checksum

# Code that can change the verdict on a trajectory: packages, and single files.
_JUDGING = ("judge/evaluators", "judge/evaluators/rules_1", "judge/judges", "judge/parsing")
_JUDGING_FILES = (
    "judge/records/checks.py",
    "judge/records/elements.py",
    "judge/records/ids.py",
    "judge/records/json_paths.py",
    "judge/records/lines.py",
    "judge/records/normalise.py",
    "judge/records/patterns.py",
    "judge/records/tools.py",
    "judge/trajectory/fetched.py",
    "judge/trajectory/files.py",
    "judge/trajectory/foreign.py",
    "judge/trajectory/forms.py",
    "judge/trajectory/network.py",
    "judge/trajectory/record.py",
    "judge/trajectory/redaction.py",
    "shared/concurrency.py",
    "shared/fields.py",
    "shared/images.py",
    "judge/sites.py",
    "shared/snapshot.py",
    "shared/strict_json.py",
    "shared/text.py",
    "shared/toml_lines.py",
    "shared/validation.py",
)


def judging_code() -> Mapping[str, Traversable]:
    """The files that can change the verdict on a trajectory, by name."""
    packages = {name: resources.files(name) for name in ("judge", "shared")}
    files = {name: packages[name.partition("/")[0]].joinpath(name.partition("/")[2]) for name in _JUDGING_FILES}
    for folder in _JUDGING:
        for entry in packages["judge"].joinpath(folder.partition("/")[2]).iterdir():
            files[f"{folder}/{entry.name}"] = entry
    return {name: file for name, file in sorted(files.items()) if name.endswith(".py")}


@cache
def code_checksum() -> str:
    """SHA-256 over the judging code. Line endings do not matter."""
    return files_checksum({name: file.read_bytes().replace(b"\r\n", b"\n") for name, file in judging_code().items()})


def installed_code() -> dict[str, str]:
    """The two fields of `JudgeInfo` that identify this installation."""
    return {"package_version": importlib.metadata.version("wabe"), "code_checksum": code_checksum()}
