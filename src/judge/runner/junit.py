"""A run as a JUnit XML file, which continuous integration services show as a list of tests."""

import math
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from judge.results.attacks import is_attacked
from judge.results.rows import EXCLUDED
from judge.results.submission import counts_of, entry_key, entry_outcome, is_excluded, lost_attempts
from shared.files import write_atomic, write_errors
from shared.text import one_line, show_hidden

_MAX_TEXT_CHARS = 2000


def write_junit(path: Path, submission: dict[str, Any], scenario: str, *, report: Path | None = None) -> None:
    """Write one test suite per participant, one test case per attempt. Raises `ConfigError` when it cannot be written.

    A failed task is a failure; an unscored or aborted one is an error, because a skipped test would pass. Only one that
    was excluded on purpose is skipped. `report` is the front page of the run's report, whose pages of tasks are linked:
    the property `task_page` has the path from the XML file, and the attachment that from the working directory, as
    GitLab and Jenkins need it.
    """
    root = ElementTree.Element("testsuites")
    for result in submission["results"]:
        # A task under attack is no test of its own: success under attack is a figure beside the others.
        tasks = [task for task in result["detail"]["tasks"] if not is_attacked(task)]
        counts, skipped = counts_of(tasks), sum(map(is_excluded, tasks))
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_text(f"{scenario} {result.get('winner', '')}"),
            tests=str(counts["attempts"]),
            failures=str(counts["scored_attempts"] - counts["judged_successes"]),
            errors=str(lost_attempts(counts) - skipped),
        )
        if skipped:
            suite.set("skipped", str(skipped))
        durations = [_seconds(task.get("duration_s")) for task in tasks]
        suite.set("time", f"{sum(durations):.3f}")
        for task, duration in zip(tasks, durations, strict=True):
            case = ElementTree.SubElement(
                suite,
                "testcase",
                name=_text(entry_key(task)),
                classname=_text(task.get("level") or scenario),
                time=f"{duration:.3f}",
            )
            page = _page_of(task, report)
            link = page and os.path.relpath(page, path.resolve().parent)
            if link:
                properties = ElementTree.SubElement(case, "properties")
                ElementTree.SubElement(properties, "property", name="task_page", value=_text(link))
            verdict = entry_outcome(task)
            if is_excluded(task):
                ElementTree.SubElement(case, "skipped").set("message", one_line(_text(task[EXCLUDED])))
            elif verdict != "success":
                why = _text(task.get("reason") or task.get("error") or task.get("stop_reason") or "")
                problem = ElementTree.SubElement(case, "failure" if verdict == "failure" else "error", type=verdict)
                problem.set("message", one_line(why))
                problem.text = f"{why}\nTask page: {_text(link)}" if link else why
            if page:
                output = ElementTree.SubElement(case, "system-out")
                output.text = f"[[ATTACHMENT|{_text(os.path.relpath(page))}]]"
    ElementTree.indent(root)
    with write_errors(f"--junit {path}", "choose a file you can write"):
        write_atomic(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _page_of(task: dict[str, Any], report: Path | None) -> Path | None:
    """The page of an attempt in the report, if there is one."""
    # The key comes from a judge that may not be ours.
    page = report.resolve().parent / "tasks" / f"{Path(entry_key(task)).name}.html" if report else None
    return page if page and page.is_file() else None


def _seconds(value: object) -> float:
    """The duration as a number; 0 for other values, which a judge of another version may send."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _text(value: object) -> str:
    # XML cannot represent most control characters, not even escaped.
    text = show_hidden(str(value))[:_MAX_TEXT_CHARS]
    return text.replace("\ufffe", "").replace("\uffff", "")
