"""Files of tasks: read beside the scenario, sent by content, named by tasks."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.network.attempt import refusal_of
from judge.scenario.draft import RequestDraft
from judge.scenario.request import parse_request
from judge.scenario.sources import tasks_toml
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError

HEAD = """[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"
[[sites]]
name = "shop"
endpoint = "http://127.0.0.1:9030"
files = ["photo.png"]
[[tasks]]
task_id = "t"
website = "http://127.0.0.1:9030/"
task = "Send your CV."
"""
CHECK = 'checks = [{ kind = "request", method = "POST", url = "/cv", files = [{ field = "cv", file = "cv.pdf" }] }]\n'


def scenario(folder: Path, keys: str = 'files = ["cv.pdf"]\n' + CHECK) -> Path:
    (folder / "cv.pdf").write_bytes(b"%PDF-1.4")
    (folder / "photo.png").write_bytes(b"png")
    path = folder / "scenario.toml"
    path.write_text(HEAD + keys)
    return path


def test_a_request_contains_the_content_and_the_judge_reads_no_file(tmp_path: Path) -> None:
    loaded = load_scenario(scenario(tmp_path))
    text = RequestDraft.of(loaded).text()
    for name in ("cv.pdf", "photo.png"):
        (tmp_path / name).unlink()
    (task,) = parse_request(text, lambda _: ()).tasks
    assert [(each.name, each.data) for each in task.files] == [("cv.pdf", b"%PDF-1.4"), ("photo.png", b"png")]
    assert json.loads(text)["config"]["tasks"][0]["files"] == ["cv.pdf", "photo.png"]
    # Digests of tasks are the same for runner and judge.
    assert task.declared() == loaded.tasks[0].declared()
    assert 'files = ["cv.pdf", "photo.png"]' in tasks_toml(loaded.tasks)
    assert task.reads_uploads
    assert refusal_of(task, is_hosted=True) is not None


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ('files = ["../cv.pdf"]', "has a separator or a drive"),
        ('files = ["missing.pdf"]', "missing.pdf: No such file"),
        ('files = ["link.pdf"]', "link.pdf: a symbolic link"),
        ('files = ["large.bin"]', "larger than 2000000 bytes"),
        (CHECK, "'cv.pdf' is not one of the task's files"),
        (CHECK.replace('field = "cv", file = "cv.pdf"', ""), 'write { field = "cv", file = "cv.pdf" }'),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path, keys: str, problem: str) -> None:
    path = scenario(tmp_path, keys)
    (tmp_path / "link.pdf").symlink_to("/etc/passwd")
    (tmp_path / "large.bin").write_bytes(bytes(2_000_001))
    with pytest.raises(ConfigError) as error:
        load_scenario(path)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("files", "problem"),
    [({}, "'cv.pdf' is not in files"), ({"cv.pdf": "/etc/passwd"}, "not base64"), ({"/cv.pdf": "aGk="}, "separator")],
)
def test_a_request_names_no_path(files: dict[str, Any], problem: str) -> None:
    task = {"task_id": "t", "website": "http://shop.test/", "task": "x", "files": ["cv.pdf"]}
    body = {"participants": {"p": "http://127.0.0.1:1"}, "config": {"tasks": [task]}, "files": files}
    with pytest.raises(ConfigError) as error:
        parse_request(json.dumps(body), lambda _: ())
    assert problem in str(error.value)
