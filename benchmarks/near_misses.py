"""Plays walks that do something besides their task, and right walks by other ways, on bundled sets.

    wabe apps install django-admin radicale trac nicegui streamlit node-red datasette
    python benchmarks/near_misses.py [demo hire apps] [--only TASK_OR_APP…] [--without-keys]

A near miss (`near-misses.toml`) must fail, a detour (`detours.toml`) must succeed; the exit code is 1 otherwise. With
`--without-keys`, each near miss is also judged with one key, one value or one check less at a time: which of them it
passes without is what guards against it.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from judge.evaluators.checks import evaluate
from judge.records.checks import Check
from judge.scenario.sources import tasks_toml
from judge.scenario.toml import load_scenario
from judge.store import load_trajectory
from judge.trajectory.record import Trajectory
from participants.replay import parse_scripts
from shared.settings import Settings
from shared.text import plain

VERDICTS = {"near-misses.toml": "failure", "detours.toml": "success"}
KEYS = ("only", "times", "exact", "count")
_SCRIPT = re.compile(r"(?m)^(?=\[\[scripts\]\])")


def numbered(home: Path, file: str, only: set[str]) -> bool:
    """Rewrite a copied scenario: a task for each script, whose text has a number. False if there is none."""
    path = home / "scenario.toml"
    scenario = load_scenario(path)
    text = (home / file).read_text(encoding="utf-8")
    by_text = {plain(task.task): task for task in scenario.tasks}
    named = [site for site in scenario.sites if site.name in only]
    tasks, scripts = [], []
    for number, (script, block) in enumerate(
        zip(parse_scripts(text, file), _SCRIPT.split(text)[1:], strict=True), start=1
    ):
        task = by_text[plain(script.task)]
        if not only or task.task_id in only or any(task.website.startswith(site.endpoint) for site in named):
            words = f"{task.task} ({number})"
            tasks.append(task.model_copy(update={"task_id": f"{task.task_id}-{number}", "task": words}))
            scripts.append(block.replace(script.task, words, 1))
    needed = {task.website.rstrip("/") for task in tasks}
    parts = re.split(r"(?m)^(?=\[\[sites\]\]|\[config\]|\[\[tasks\]\])", path.read_text(encoding="utf-8"))
    heads = [part for part in parts if not part.startswith(("[[tasks]]", "[[sites]]"))]
    endpoints = {part: (re.search(r'endpoint = "([^"]+)"', part) or ["", ""])[1] for part in parts}
    heads[1:1] = [
        part
        for part in parts
        if part.startswith("[[sites]]") and any(each.startswith(endpoints[part]) for each in needed)
    ]
    path.write_text("".join(heads) + "\n" + tasks_toml(tasks), encoding="utf-8")
    (home / "replay.toml").write_text("\n".join(scripts), encoding="utf-8")
    return bool(tasks)


def lesser(checks: tuple[Check, ...]) -> Iterator[tuple[str, tuple[Check, ...]]]:
    """The checks with one key, one value or one check less, each with what is missing."""
    for place, check in enumerate(checks):

        def with_one(
            changed: Check | None,
            before: tuple[Check, ...] = checks[:place],
            after: tuple[Check, ...] = checks[place + 1 :],
        ) -> tuple[Check, ...]:
            return (*before, *([] if changed is None else [changed]), *after)

        for key in KEYS:
            if value := getattr(check, key, None):
                update: dict[str, Any] = {key: False if value is True else None}
                yield (
                    f"{place + 1}.{key}",
                    with_one(check.model_copy(update=update | {"allow": ()} if key == "only" else update)),
                )
        values = getattr(check, "post_data", None)
        for name in values if isinstance(values, dict) else ():
            rest = {each: value for each, value in values.items() if each != name}
            yield f"{place + 1}.{name}", with_one(check.model_copy(update={"post_data": rest or None}))
        yield f"{place + 1}", with_one(None)


def passes(trajectory: Trajectory, checks: tuple[Check, ...]) -> bool:
    """Whether a recorded attempt passes these checks."""
    task = trajectory.task.model_copy(update={"checks": checks})
    return all(each.passed for each in evaluate(trajectory.as_task(task)))


def played(name: str, file: str, only: set[str]) -> Iterator[Trajectory]:
    """The recorded walks of a file, while their folder exists."""
    with tempfile.TemporaryDirectory() as folder:
        home, output = Path(folder) / name, Path(folder) / "output"
        shutil.copytree(Settings.from_environ().scenarios_folder / name, home)
        if numbered(home, file, only):
            command = ["wabe", "run", home / "scenario.toml", "--output-dir", output, "--display", "none"]
            subprocess.run([*command, "--max-parallel", "2"], check=False)
        for result in sorted(output.glob("runs/*/results/*/result.json")):
            yield load_trajectory(result.parent)


def main() -> int:
    """Play, print a line for each walk, and say whether all verdicts are right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", default=["demo", "hire", "apps"])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--without-keys", action="store_true")
    options = parser.parse_args()
    walks, right = Counter[str](), Counter[str]()
    for name in options.sets:
        for file, verdict in VERDICTS.items():
            for trajectory in played(name, file, set(options.only)):
                outcome = trajectory.attempt.outcome
                walks[file] += 1
                right[file] += outcome == verdict
                line = f"{name}/{file} {trajectory.task.task_id}: {outcome}"
                if options.without_keys and outcome == "failure":
                    guards = [what for what, less in lesser(trajectory.task.checks) if passes(trajectory, less)]
                    line += f"; passes without {', '.join(guards) or 'none of them'}"
                print(line, flush=True)
    for file, count in walks.items():
        print(f"{file}: {right[file]} of {count} as they must be")
    return int(right != walks)


if __name__ == "__main__":
    sys.exit(main())
