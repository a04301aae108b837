#!/usr/bin/env python3
"""Prints what CHANGELOG.md says about a version, for its release.

scripts/release_notes.py v1.2.3

The tag must be the version in pyproject.toml, with a dated section in CHANGELOG.md. Exit code 2 if it is not.
"""

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADING = re.compile(r"^## (?P<version>\S+)(?: - (?P<day>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


class NotReleasable(Exception):
    """The tag cannot be released; the message says why."""


def notes_of(changelog: str, version: str) -> str:
    """The version's section, without its heading. Raises `NotReleasable` without a section, a date or content."""
    headings = list(HEADING.finditer(changelog))
    for number, heading in enumerate(headings):
        if heading["version"] != version:
            continue
        if heading["day"] is None:
            raise NotReleasable(
                f"CHANGELOG.md: the section of {version} has no date; write '## {version} - YYYY-MM-DD'"
            )
        end = headings[number + 1].start() if number + 1 < len(headings) else len(changelog)
        if notes := changelog[heading.end() : end].strip():
            return notes
        raise NotReleasable(f"CHANGELOG.md: the section of {version} is empty")
    raise NotReleasable(f"CHANGELOG.md: no section for {version}; rename 'Unreleased' to '{version} - YYYY-MM-DD'")


def main(arguments: Sequence[str]) -> int:
    """Print the notes of the tag."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    try:
        if arguments[0] != f"v{declared}":
            raise NotReleasable(f"the tag is {arguments[0]}, but pyproject.toml says version {declared}")
        print(notes_of((ROOT / "CHANGELOG.md").read_text("utf-8"), declared))
    except NotReleasable as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
