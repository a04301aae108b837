"""The judging code: its files, and the checksum that every verdict records."""

import importlib.metadata
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from judge.judges.base import files_checksum
from judge.records.checks import CHECKS, plain_checks
from judge.records.verdicts import Verdict
from judge.trajectory.formats import READERS, reader_of
from judge.trajectory.record import Trajectory
from shared.seams import PluginInfo

# Code that can change the verdict on a trajectory: packages, and single files.
_JUDGING = (
    "judge/evaluators",
    "judge/evaluators/kinds",
    "judge/evaluators/rules_1",
    "judge/evaluators/rules_2",
    "judge/judges",
    "judge/parsing",
)
_JUDGING_FILES = (
    "judge/records/attacks.py",
    "judge/records/checks.py",
    "judge/records/elements.py",
    "judge/records/findings.py",
    "judge/records/holds.py",
    "judge/records/ids.py",
    "judge/records/json_paths.py",
    "judge/records/keys.py",
    "judge/records/lines.py",
    "judge/records/normalise.py",
    "judge/records/patterns.py",
    "judge/records/policies.py",
    "judge/records/result_keys.py",
    "judge/records/tools.py",
    "judge/records/user.py",
    "judge/trajectory/earlier.py",
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
    "shared/quotations.py",
    "shared/reasoning.py",
    "shared/seen.py",
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


def found_plugins(*found: PluginInfo | None) -> tuple[PluginInfo, ...]:
    """The plug-ins among them, each once, by name."""
    by_name = {plugin.name: plugin for plugin in found if plugin is not None}
    return tuple(by_name[name] for name in sorted(by_name))


def with_plugins(verdict: Verdict, trajectory: Trajectory) -> Verdict:
    """The verdict, which also names the plug-ins that read the trajectory and provide its checks."""
    if verdict.judge is None:
        return verdict
    is_read_by_plugin = trajectory.is_foreign and not (trajectory.folder / "result.json").exists()
    reader = reader_of(trajectory.folder) if is_read_by_plugin else None
    kinds = {check.kind for check in (*plain_checks(trajectory.task.checks), *trajectory.task.watched)}
    read_by = READERS.plugin(reader[0]) if reader else None
    plugins = found_plugins(*verdict.judge.plugins, read_by, *map(CHECKS.plugin, kinds))
    return verdict.model_copy(update={"judge": verdict.judge.model_copy(update={"plugins": plugins})})


def installed_code() -> dict[str, str]:
    """The two fields of `JudgeInfo` that identify this installation."""
    return {"package_version": importlib.metadata.version("wabe"), "code_checksum": code_checksum()}
