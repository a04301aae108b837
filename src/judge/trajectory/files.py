"""Reads one trajectory folder: of our runs, and through their readers other layouts."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judge.records.steps import Step
from judge.records.verdicts import Verdict
from judge.trajectory.formats import FormatReader, reader_of
from judge.trajectory.paths import inside
from judge.trajectory.record import Attempt, Trajectory, evidence_sha256
from shared.errors import TrajectoryError
from shared.fields import first_mistake
from shared.files import read_errors, read_file, read_json, sha256_file


def load_trajectory(folder: Path | str) -> Trajectory:
    """Read a task folder. Raises `TrajectoryError`, which names the file and what is wrong with it.

    The evidence is compared with its digests. The attempt's verdict is not evidence: `wabe verify` compares it with the
    judge's under `verdicts/`.
    """
    folder = Path(folder)
    layout = _layout(folder)
    if layout is not None:
        return layout.load(folder)
    result = read_result(folder)
    # Including unknown versions, which `_load_own` refuses.
    if str(result.get("schema_version")).startswith("wabe-"):
        return _load_own(folder, result)
    from judge.trajectory.mind2web import load_mind2web

    return load_mind2web(folder, result)


def is_trajectory(folder: Path) -> bool:
    """Whether a folder contains one trajectory, readable or not."""
    return os.path.lexists(folder / "result.json") or _layout(folder) is not None


def foreign_verdicts(folder: Path) -> dict[str, Verdict]:
    """The verdicts of other evaluators in a trajectory's folder, by an id like our judges'."""
    layout = _layout(folder)
    try:
        return {} if layout is None else layout.verdicts(folder)
    except TrajectoryError:
        # Reading the trajectory says what is wrong with it.
        return {}


def foreign_task_id(folder: Path) -> str:
    """The task's id as its layout gives it."""
    layout = _layout(folder)
    return folder.name if layout is None else layout.task_id(folder)


def _layout(folder: Path) -> FormatReader | None:
    """The layout of a folder without a `result.json`; `None` if it has one, which this module reads."""
    if os.path.lexists(folder / "result.json"):
        return None
    reader = reader_of(folder)
    return reader[1] if reader else None


def read_result(folder: Path, *, source: str = "") -> dict[str, Any]:
    """The object in a task folder's `result.json`. Raises `TrajectoryError`, which names `source` or else the path."""
    source = source or str(folder / "result.json")
    with read_errors(source, kind=TrajectoryError):
        try:
            result = read_json(folder / "result.json")
        except FileNotFoundError:
            raise TrajectoryError(
                "no such file", location=source, remedy="give a folder with a result.json in it"
            ) from None
    if not isinstance(result, dict):
        raise TrajectoryError(f"expected a JSON object, found {type(result).__name__}", location=source)
    return result


def read_attempt(folder: Path, *, source: str = "") -> Attempt:
    """The attempt in our `result.json`. Does not check files and digests. Raises `TrajectoryError`."""
    return Attempt.from_json(read_result(folder, source=source), source=source or str(folder / "result.json"))


def read_steps(path: Path) -> tuple[Step, ...]:
    """The steps of a `steps.jsonl`. Skips a torn last line (left by a kill while writing).

    Raises `TrajectoryError` for other damage, naming the file without its folder.
    """
    with read_errors(path.name, kind=TrajectoryError):
        lines = read_file(path).split(b"\n") if path.exists() else []
    steps = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            steps.append(Step.model_validate_json(line))
        except ValidationError as error:
            if number == len(lines):
                break
            raise TrajectoryError(f"line {number} is not a step: {first_mistake(error)}", location=path.name) from None
    return tuple(steps)


def with_digests(folder: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """A `result.json` with the current digests of its files, `None` for a missing file.

    Raises `TrajectoryError` for a file that cannot be read.
    """
    with_sums = {**result, "steps": [_with_digests(folder, step) for step in result["steps"]]}
    if result.get("final_look"):
        with_sums["final_look"] = _with_digests(folder, result["final_look"])
    if result.get("network"):
        with_sums["network"] = {**result["network"], "sha256": _digest(folder / result["network"]["file"])}
    return with_sums


def _with_digests(folder: Path, page: Mapping[str, Any]) -> dict[str, Any]:
    digests = {
        f"{kind}_sha256": _digest(folder / page[kind]) if page.get(kind) else None
        for kind in ("screenshot", "snapshot")
    }
    page_with_digests = {**page, **digests}
    if page.get("downloaded"):
        page_with_digests["downloaded"] = [
            {**each, "sha256": _digest(folder / each["file"])} if each.get("file") else each
            for each in page["downloaded"]
        ]
    return page_with_digests


def _digest(path: Path) -> str | None:
    with read_errors(path, kind=TrajectoryError):
        return sha256_file(path) if path.is_file() else None


def recorded_pages(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps of a `result.json` and its final observation."""
    pages = list(result["steps"])
    if final_look := result.get("final_look"):
        pages.append(final_look)
    return pages


def evidence_problems(recorded: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[str]:
    """Every difference between the recorded digests and the files, one sentence each.

    `recorded` is a `result.json`, `actual` the result of `with_digests` for it.
    """
    for step, now in zip(recorded_pages(recorded), recorded_pages(actual), strict=True):
        for kind in ("screenshot", "snapshot"):
            digest = now[f"{kind}_sha256"]
            if step.get(f"{kind}_sha256") != digest:
                yield f"{step.get(kind)}: {_problem(digest)}, step {step['index']}"
        for download, stored_download in zip(step.get("downloaded", ()), now.get("downloaded", ()), strict=True):
            if download.get("sha256") != stored_download.get("sha256"):
                yield f"{download['file']}: {_problem(stored_download['sha256'])}, step {step['index']}"
    network, network_now = recorded.get("network"), actual.get("network")
    if network and network_now and network["sha256"] != network_now["sha256"]:
        yield f"{network['file']}: {_problem(network_now['sha256'])}"
    if recorded.get("trajectory_sha256") != evidence_sha256(recorded):
        yield "result.json: trajectory_sha256 is not the digest of the recorded task, steps, answer and stop reason"


def _problem(digest: str | None) -> str:
    return "missing" if digest is None else "not the file that was recorded (SHA-256)"


def _load_own(folder: Path, result: dict[str, Any]) -> Trajectory:
    return own_trajectory(folder, result, Attempt.from_json(result, source=str(folder / "result.json")))


def own_trajectory(
    folder: Path, result: Mapping[str, Any], attempt: Attempt, evidence: dict[str, Any] | None = None
) -> Trajectory:
    """What `load_trajectory` returns for a run's `result.json`, and the attempt in it, that were just read.

    `evidence` is the result of `with_digests` for it, if the files were just read as well. Raises `TrajectoryError`.
    """
    path = folder / "result.json"
    screenshots = tuple(inside(folder, step.screenshot) for step in attempt.steps if step.screenshot)
    final_look = attempt.final_look
    others = [step.snapshot for step in attempt.observations] + ([final_look.screenshot] if final_look else [])
    others += [each.file for step in attempt.observations for each in step.downloaded]
    # Not read here, but a name that leads out of the folder is refused at once.
    for name in filter(None, others):
        inside(folder, name)
    evidence = with_digests(folder, result) if evidence is None else dict(evidence)
    network: Path | None = None
    missing = attempt.network_missing
    if attempt.network is not None:
        network = folder / attempt.network.file
        if network.parent != folder:
            raise TrajectoryError(f"{attempt.network.file[:100]!r} points outside its folder", location=str(path))
        if evidence["network"]["sha256"] is None:
            # A run may be shared without its network traces; then only verdicts that need them are unscored.
            evidence["network"], network, missing = result["network"], None, f"{attempt.network.file}: no such file"
    # The same is true of downloads.
    for recorded, now in zip(recorded_pages(result), recorded_pages(evidence), strict=True):
        if recorded.get("downloaded"):
            both = zip(recorded["downloaded"], now["downloaded"], strict=True)
            now["downloaded"] = [each if download.get("sha256") is None else download for each, download in both]
    try:
        if (problem := next(evidence_problems(result, evidence), None)) is not None:
            raise TrajectoryError(f"{folder}/{problem}", remedy="resume the run to play this task again")
        sha256 = evidence_sha256(evidence)
    except (ValueError, RecursionError) as error:
        raise TrajectoryError(f"not readable: {error}", location=str(path)) from None
    return Trajectory(
        folder=folder,
        attempt=attempt,
        screenshots=screenshots,
        sha256=sha256,
        is_digested=True,
        network=network,
        network_missing=missing,
    )
