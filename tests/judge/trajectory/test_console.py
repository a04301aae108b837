"""The console's messages in an attempt's folder."""

import json
from pathlib import Path

from judge.trajectory.console import CONSOLE_FILE, read_console, write_console
from judge.trajectory.redaction import Redaction


def test_messages_are_written_without_secrets(tmp_path: Path) -> None:
    redaction = Redaction(["hunter22"], salt=b"test")
    text = {
        "step": 2,
        "level": "log",
        "text": "hunter22 at http://shop.test/?token=abc",
        "url": "http://shop.test/?sid=1",
    }
    write_console(tmp_path, [text, {"step": 3, "dropped": 8}], redaction.text)
    first, last = read_console(tmp_path)
    assert (first.step, first.level) == (2, "log")
    assert "hunter22" not in (tmp_path / CONSOLE_FILE).read_text()
    assert "abc" not in first.text
    assert first.url.startswith("http://shop.test/?sid=")
    assert not first.url.endswith("=1")
    assert (last.step, last.dropped) == (3, 8)


def test_without_messages_no_file_is_written(tmp_path: Path) -> None:
    write_console(tmp_path, [], str)
    assert list(tmp_path.iterdir()) == []
    assert read_console(tmp_path) == ()


def test_damaged_lines_and_links_are_left_out(tmp_path: Path) -> None:
    good = json.dumps({"step": 1, "level": "log", "text": "a"})
    (tmp_path / CONSOLE_FILE).write_text(f'{{"step": -1}}\n[]\n{good}\nnonsense')
    assert [each.text for each in read_console(tmp_path)] == ["a"]
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / CONSOLE_FILE).symlink_to(tmp_path / CONSOLE_FILE)
    assert read_console(linked) == ()
