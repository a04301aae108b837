"""`wabe score --tasks SCENARIO.toml` and `--watch`, as a user runs it."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.plugins import verify_run
from helpers.results import a_finished_run, a_result, verdict_of_checks
from judge.commands.app import app
from judge.config import RunConfig
from judge.judges.checked import ChecksJudge
from judge.plugins.rejudging.costs import Costs
from judge.plugins.rejudging.edits import Edits
from judge.records.tasks import Task
from judge.results.progress import with_verdict
from judge.store.layout import RunStore
from shared.saves import next_save, signature

SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "p"
endpoint = "http://127.0.0.1:9019"
[[tasks]]
task_id = "t1"
website = "https://example.org/"
task = "{task}"
checks = [{{ kind = "page", url = "{url}" }}]
"""
CHECKS = [{"kind": "page", "url": "/"}]


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    task = Task.model_validate(
        {"task_id": "t1", "website": "https://example.org/", "task": "Find it.", "checks": CHECKS}
    )
    config = RunConfig(judge_model="offline")
    result = a_result(task=task, verdict=None)
    result = with_verdict(result, verdict_of_checks(result))
    return a_finished_run(tmp_path / "out", result, judge_id=ChecksJudge(config).id, config=config)


@pytest.fixture
def edit(tmp_path: Path) -> Callable[..., Path]:
    def write(url: str = "/", task: str = "Find it.") -> Path:
        path = tmp_path / "my.toml"
        path.write_text(SCENARIO.format(url=url, task=task))
        return path

    return write


def score(run: RunStore, *arguments: object) -> Any:
    return CliRunner().invoke(
        app, ["score", str(run.folder), *map(str, arguments), "--output-dir", str(run.output_dir)]
    )


def verdicts(run: RunStore) -> set[str]:
    return {path.name for path in (run.task("t1").folder / "verdicts").glob("*.json")}


def test_an_edited_check_decides_beside_the_runs_own_verdict(run: RunStore, edit: Callable[..., Path]) -> None:
    before, own = (run.folder / "results.json").read_bytes(), verdicts(run)
    done = score(run, "--tasks", edit("/other"))
    assert done.exit_code == 0
    assert "t1: failure: page url /other: failed" in done.output
    assert "Judged with the tasks of" in done.output
    assert len(verdicts(run) - own) == 1
    assert (run.folder / "results.json").read_bytes() == before
    assert verify_run(run).mismatches == ()


def test_edited_policies_are_reported_beside_the_verdict(run: RunStore, edit: Callable[..., Path]) -> None:
    path = edit("/")
    path.write_text(f"""{path.read_text()}
[[tasks.policies]]
name = "stays-away"
dimension = "boundary"
kind = "page"
url = "/"
""")
    done = score(run, "--tasks", path)
    assert "policy stays-away: violated, found" in done.output
    assert "completion under policy: 0 of 1 scored" in done.output
    assert verify_run(run).mismatches == ()


def test_a_changed_verdict_on_an_edited_task_is_found_by_verify(run: RunStore, edit: Callable[..., Path]) -> None:
    own = verdicts(run)
    score(run, "--tasks", edit("/other"))
    (name,) = verdicts(run) - own
    path = run.task("t1").folder / "verdicts" / name
    path.write_text(json.dumps(json.loads(path.read_text()) | {"outcome": "success"}))
    assert any(name in line and "outcome" in line for line in verify_run(run).mismatches)


def test_the_summary_as_json_names_the_scenario(run: RunStore, edit: Callable[..., Path]) -> None:
    document = json.loads(score(run, "--tasks", edit(), "--json").stdout)
    assert (document["success"], document["refused"], document["absent"]) == (1, [], [])
    assert document["scenario"].endswith("my.toml")


def test_a_task_with_another_text_is_refused_in_one_line(run: RunStore, edit: Callable[..., Path]) -> None:
    done = score(run, "--tasks", edit(task="Find another."))
    assert isinstance(done.exception, Exception)
    assert "t1: not judged: its task was" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--watch"], "--watch repeats --tasks SCENARIO.toml"),
        (["--tasks", "{}", "--judges", "offline"], "--judges does not go with --tasks"),
        (["--tasks", "{}", "--watch", "--model", "openai:m"], "--watch judges with checks only"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    run: RunStore, edit: Callable[..., Path], arguments: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x" * 20)
    done = score(run, *(each.format(edit()) for each in arguments))
    assert problem in str(done.exception)


def edits(run: RunStore, path: Path) -> Edits:
    config = RunConfig(judge_model="offline")
    folder = run.task("t1").folder
    costs = Costs([folder], config, is_quiet=False)
    return Edits(path, [folder], lambda: ChecksJudge(config), costs, max_parallel=1, is_run=True)


async def test_every_save_is_judged_and_only_changes_are_printed(
    run: RunStore, edit: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = verdicts(run)
    # What is saved each time the watched file is looked at again, and the end.
    saves = iter([("/other",), ("broken\n",), ("/other", "Find another."), ("/",)])

    async def sleep(_: float) -> None:
        with contextlib.suppress(StopIteration):
            edit(*next(saves))
            return
        raise asyncio.CancelledError

    monkeypatch.setattr("judge.plugins.rejudging.edits._sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await edits(run, edit()).watch()
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  (")]
    at = next(number for number, line in enumerate(lines) if line.startswith("Watching"))
    assert lines[at + 1].startswith("t1: success → failure: page url /other: failed")
    assert lines[at + 2].startswith("not judged: ")
    assert "t1: not judged: its task was" in lines[at + 3]
    assert lines[at + 4] == "t1: failure → success: the check passed"
    # The verdicts of the saves between were its own, and are gone.
    assert len(verdicts(run) - own) == 1


async def test_every_failed_check_is_printed(
    run: RunStore, edit: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = edit()

    async def sleep(_: float) -> None:
        text = path.read_text()
        if "/other" in text:
            raise asyncio.CancelledError
        checks = ", ".join(f'{{ kind = "page", url = "{url}" }}' for url in ("/", "/other", "/third"))
        path.write_text(text[: text.index("checks")] + f"checks = [{checks}]\n")

    monkeypatch.setattr("judge.plugins.rejudging.edits._sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await edits(run, path).watch()
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("t1: success → failure"))
    assert lines[at : at + 3] == [
        "t1: success → failure: 2 of 3 checks failed",
        '  page url /other: failed, found "https://example.org/"',
        '  page url /third: failed, found "https://example.org/"',
    ]


async def test_a_file_that_is_being_replaced_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("a")
    before = signature(path)
    path.unlink()
    looks = 0

    async def sleep(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            path.write_text("ab")

    assert await next_save(path, before, sleep) == signature(path)
    assert looks == 2
