"""Plays outside of a run find every site as a run does: reset before each attempt."""

from pathlib import Path

import pytest

from helpers.browser.counted_site import resets_during
from helpers.plugins import skip_without_command

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("command", "names", "more"),
    [
        ("tasks validate --try {}", ["first", "second"], ""),
        # Outside of a run, a site is its own only instance.
        ("tasks check {}", ["first", "second"], 'instances = ["{site}"]'),
        ("sites record {} -o archive.wacz", ["only"], ""),
    ],
)
def test_each_attempt_begins_with_a_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, names: list[str], more: str
) -> None:
    skip_without_command(*command.split())
    monkeypatch.chdir(tmp_path)
    resets, output = resets_during(command, names, tmp_path, more)
    assert resets == 2, output
    assert "failure" not in output
