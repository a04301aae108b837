"""How label files grow: what was there earlier is still in them, and the shards of a run are joined."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from judge.plugins.labels.corrections import PLAN_FILE
from judge.plugins.labels.label_files import LABELLER, LABELS, labels_folder
from judge.plugins.labels.label_plan import LabelPlan, read_plan, write_plan
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.files import read_errors, read_file, write_atomic, write_errors
from shared.text import counted

_MAX_FILE_BYTES = 64_000_000
_REMEDY = "move it elsewhere"


def growth(name: str, path: Path, sha256: str) -> str:
    """What was added to a label file or plan since it had this digest, such as `3 lines`; empty if it did not grow so.

    `name` is its path in the run's folder.
    """
    place = PurePosixPath(name)
    if str(place.parent) != LABELS or path.is_symlink():
        return ""
    try:
        if place.name == PLAN_FILE:
            return _of_plan(path, sha256)
        is_labels = place.suffix == ".jsonl" and LABELLER.fullmatch(place.stem)
        return _of_lines(read_file(path, max_bytes=_MAX_FILE_BYTES), sha256) if is_labels else ""
    except (OSError, ValueError, ConfigError):
        return ""


def _of_lines(data: bytes, sha256: str) -> str:
    lines, digest = data.splitlines(keepends=True), hashlib.sha256()
    for number, line in enumerate(lines, 1):
        digest.update(line)
        if digest.hexdigest() == sha256:
            return counted(len(lines) - number, "line")
    return ""


def _of_plan(path: Path, sha256: str) -> str:
    plan = read_plan(path)
    if plan is None:
        return ""
    for count in range(len(plan.sizes) - 1, 0, -1):
        earlier = json.dumps(plan.at(count).model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
        if hashlib.sha256(earlier.encode()).hexdigest() == sha256:
            return counted(len(plan.sizes) - count, "draw")
    return ""


def merge_labels(run: RunStore, shards: Sequence[RunStore]) -> None:
    """Add the labels and plans of a run's shards to its own, once. Raises `ConfigError`."""
    names = sorted({path.name for shard in shards for path in labels_folder(shard).glob("*.jsonl")})
    for name in names:
        target = labels_folder(run) / name
        whole = _read(target) if target.exists() else b""
        for part in (labels_folder(shard) / name for shard in shards):
            data = _read(part) if part.exists() else b""
            # A line that was torn when the machine stopped is ended.
            data += b"" if data.endswith(b"\n") or not data else b"\n"
            whole += b"" if data in whole else data
        with write_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, whole)
    plans = [plan for shard in shards if (plan := read_plan(labels_folder(shard) / PLAN_FILE)) is not None]
    path = labels_folder(run) / PLAN_FILE
    own = read_plan(path)
    merged = _merged(own, plans)
    if merged is not None and merged != own:
        write_plan(path, merged)


def _merged(own: LabelPlan | None, plans: Sequence[LabelPlan]) -> LabelPlan | None:
    known = {stratum.attempts for stratum in own.strata} if own else set()
    added = [
        (stratum, sample_size)
        for plan in plans
        for stratum, sample_size in zip(plan.strata, plan.sample_sizes, strict=True)
        if stratum.attempts not in known
    ]
    if not added:
        return own
    before = own or LabelPlan(strata=(), sizes=())
    sizes = (*before.sample_sizes, *(sample_size for _, sample_size in added))
    return LabelPlan(strata=(*before.strata, *(each for each, _ in added)), sizes=(*before.sizes, sizes))


def _read(path: Path) -> bytes:
    with read_errors(path, _REMEDY):
        return read_file(path, max_bytes=_MAX_FILE_BYTES)


def stored_lines(lines: object) -> Iterator[tuple[str, int]]:
    """The numbers of lines that a submission names, by labeller; what is none is left out."""
    for name, count in lines.items() if isinstance(lines, dict) else ():
        if isinstance(name, str) and LABELLER.fullmatch(name) and type(count) is int and count >= 0:
            yield name, count
