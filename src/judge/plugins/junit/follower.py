"""A run as a JUnit XML file, which continuous integration services show as a list of tests."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from judge.results.entries import rate_of, read_entries
from judge.runner.followers import Follower, FollowUp
from shared.files import require_writable, write_atomic, write_errors
from shared.text import one_line, show_hidden

_MAX_TEXT_CHARS = 2000


@dataclass
class JUnit(Follower):
    """Writes the file that `--junit` names. Raises `ConfigError` if that is not possible."""

    def __post_init__(self) -> None:
        self._path: Path = self.options.value("junit")
        with write_errors(f"--junit {self._path}", "choose a file you can write"):
            require_writable(self._path)

    def concluded(self, submission: dict[str, Any], scenario: Path, report: Path | None) -> FollowUp:
        """Write it."""
        path = scenario.resolve()
        write_junit(self._path, submission, f"{path.parent.name}/{path.name}", report=report)
        return FollowUp()


def write_junit(path: Path, submission: dict[str, Any], scenario: str, *, report: Path | None = None) -> None:
    """Write one test suite per participant, one test case per attempt. Raises `ConfigError` when it cannot be written.

    A failed task is a failure; an unscored or aborted one is an error, because a skipped test would pass. Only one
    excluded on purpose is skipped. `report` is the front page of the run's report, whose pages of tasks are linked:
    the property `task_page` has the path from the XML file, and the attachment that from the working directory, as
    GitLab and Jenkins need it.
    """
    root = ElementTree.Element("testsuites")
    for result in submission["results"]:
        # A task under attack is not a separate test: success under attack is a figure beside the others.
        tasks = [task for task in read_entries(result["detail"]["tasks"]) if task.is_clean]
        counts, skipped = rate_of(tasks).published(), sum(task.excluded is not None for task in tasks)
        without_verdict = counts["attempts"] - counts["scored_attempts"]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_text(f"{scenario} {result.get('winner', '')}"),
            tests=str(counts["attempts"]),
            failures=str(counts["scored_attempts"] - counts["judged_successes"]),
            errors=str(without_verdict - skipped),
        )
        if skipped:
            suite.set("skipped", str(skipped))
        suite.set("time", f"{sum(task.duration_s or 0.0 for task in tasks):.3f}")
        for task in tasks:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                name=_text(task.key),
                classname=_text(task.level or scenario),
                time=f"{task.duration_s or 0.0:.3f}",
            )
            page = _page_of(task.key, report)
            link = page and os.path.relpath(page, path.resolve().parent)
            if link:
                properties = ElementTree.SubElement(case, "properties")
                ElementTree.SubElement(properties, "property", name="task_page", value=_text(link))
            if task.excluded is not None:
                ElementTree.SubElement(case, "skipped").set("message", one_line(_text(task.excluded)))
            elif task.outcome != "success":
                why, tag = _text(task.why), "failure" if task.outcome == "failure" else "error"
                problem = ElementTree.SubElement(case, tag, type=task.outcome)
                problem.set("message", one_line(why))
                problem.text = f"{why}\nTask page: {_text(link)}" if link else why
            if page:
                output = ElementTree.SubElement(case, "system-out")
                output.text = f"[[ATTACHMENT|{_text(os.path.relpath(page))}]]"
    ElementTree.indent(root)
    with write_errors(f"--junit {path}", "choose a file you can write"):
        write_atomic(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _page_of(key: str, report: Path | None) -> Path | None:
    """The page of an attempt in the report, if there is one."""
    # The key comes from a judge that may not be ours.
    page = report.resolve().parent / "tasks" / f"{Path(key).name}.html" if report else None
    return page if page and page.is_file() else None


def _text(value: object) -> str:
    # XML cannot represent most control characters, not even escaped.
    text = show_hidden(str(value))[:_MAX_TEXT_CHARS]
    return text.replace("\ufffe", "").replace("\uffff", "")
