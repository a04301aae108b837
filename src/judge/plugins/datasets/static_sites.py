"""Folders of static websites with tasks, as WebForge publishes them: `tasks.jsonl` beside `websites/ID/index.html`.

Each line has `id`, `task_prompt`, `ground_truth` and optionally `url` (a path below `websites`) and `level`. One server
serves all sites from the folder; they keep their state in the browser only.
"""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.plugins.datasets.rows import MAX_POINT_CHARS, Notes, given_file, read_rows, tasks_from, text_of, usable_id
from judge.scenario.importers import ImportedTasks, Importer, ImportRequest
from judge.scenario.models import SiteEntry
from shared.errors import ConfigError
from shared.text import clip, one_line

_WHAT = "the folder with tasks.jsonl and websites/"
_PORT = 9300
_SITE = "static-sites"
_LEVELS = MappingProxyType({"1": "easy", "2": "medium", "3": "hard", "l1": "easy", "l2": "medium", "l3": "hard"})
# Longer answers are sentences, whose wording an agent cannot be expected to repeat.
_MAX_CHECKED_CHARS = 40
_SETTINGS: Mapping[str, Any] = MappingProxyType({"max_steps": 50, "judge_sees_answer": True})


def import_tasks(request: ImportRequest) -> ImportedTasks:
    """The tasks of the folder, with the site that serves it. Raises `ConfigError`."""
    folder, notes = given_file(request, _WHAT), Notes()
    websites = folder / "websites"
    if not websites.is_dir():
        raise ConfigError(f"{folder}: no folder websites in it", remedy=f"give {_WHAT}")
    base = f"http://127.0.0.1:{_PORT}"

    def table_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
        name = usable_id(row.get("id"))
        path = text_of(row.get("url")) or f"/{name}/index.html"
        path = path if path.startswith("/") else f"/{path}"
        page = websites / path.split("?")[0].split("#")[0].lstrip("/")
        if websites.resolve() not in page.resolve().parents or not (page.is_file() or (page / "index.html").is_file()):
            notes.add("its page is not in the folder", name)
            return None
        table = {"task_id": name, "website": base + path, "task": text_of(row.get("task_prompt"))}
        if level := _LEVELS.get(str(row.get("level", row.get("difficulty", ""))).lower()):
            table["level"] = level
        truth = row.get("ground_truth")
        return table | _expected("" if truth is None or isinstance(truth, dict | list) else str(truth), notes, name)

    rows = read_rows(folder / "tasks.jsonl", f"give {_WHAT}")
    tasks = tasks_from(rows, table_of, notes, request=request, source=folder)
    # Relative, so that the scenario and the folder can be moved together.
    below = os.path.relpath(websites.resolve(), (request.output or Path("scenario.toml")).resolve().parent)
    served = shlex.quote(below) if below.startswith(os.sep) else f"{{scenario_dir}}/{shlex.quote(below)}"
    command = f"python -m http.server {_PORT} --bind 127.0.0.1 --directory {served}"
    site = SiteEntry(name=_SITE, endpoint=base, static=True, cmd=command)
    return ImportedTasks(tasks, _SETTINGS, [site], notes.lines())


def _expected(truth: str, notes: Notes, name: str) -> dict[str, Any]:
    """A short value is looked for in the final answer; a longer one is a key point for the judge model."""
    value = one_line(truth).strip()
    if not value:
        notes.add("without a ground truth, so a judge model decides it alone", name)
        return {}
    if len(value) <= _MAX_CHECKED_CHARS and not value.endswith("."):
        words = r"\s*".join(re.escape(word) for word in value.split())
        check = {"kind": "answer", "pattern": rf"(?i)(?:^|\W){words}(?:\W|$)", "description": f"The answer is {value}"}
        return {"checks": [check]}
    return {"key_points": [clip(f"The final answer says: {value}", MAX_POINT_CHARS)]}


IMPORTER = Importer(run=import_tasks, takes=("path", "names"))
