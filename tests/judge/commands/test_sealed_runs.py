"""A run of a sealed set without its key: every command and page that could show a word of its tasks."""

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from typer.testing import CliRunner

from helpers.plugins import skip_without_command
from helpers.results import a_finished_run, a_result, a_step, a_verdict
from judge.commands.app import app
from judge.records.tasks import Task
from judge.store.layout import RunStore
from judge.store.sealing import KEY_VARIABLE, SealKey

WORD = "vexitron"
REFUSAL = "is of a sealed task set, and this would show its tasks"
RUN, OTHER = "20260101-000000-aaaa", "20260102-000000-bbbb"
FORMATS = "online-mind2web-v2 webeval webarena-verified csv parquet jsonl markdown webm gif atif".split()
REFUSED = (
    *(["export", RUN, "--format", each] for each in FORMATS),
    ["report", RUN],
    ["report", RUN, "--single-file"],
    ["report", RUN, OTHER],
    ["view", RUN],
    ["label", RUN],
    ["label", RUN, "--import", "labels.csv"],
    ["score", RUN],
    ["score", RUN, "--dry-run"],
    ["checks", "suggest", RUN, "--task", "t1"],
    ["checks", "suggest", OTHER, "--task", "t1", "--any", "--against", RUN],
    ["steps", "make", RUN],
    ["tasks", "script", RUN, "--task", "t1"],
    ["agreement", RUN, "--truth", "checks"],
    ["agreement", "--verdicts", RUN, "--labels", "labels.csv"],
)
# Of the folders in the run.
REFUSED_FOLDERS = (
    ["report"],
    ["score"],
    ["export", "--format", "csv"],
    ["agreement", "--labels", "labels.csv", "--verdicts"],
)
SHOWN = (["runs"], ["runs", "--json"], ["verify", RUN], ["report", RUN, "--public"])
PAGES = (
    "/",
    f"/live/{RUN}/report/index.html",
    f"/live/{RUN}/report/tasks/t1.html",
    f"/compare/{RUN},{OTHER}/index.html",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text("task_id,human\nt1,1\n")
    for run_id, sealed in ((RUN, "ab" * 32), (OTHER, None)):
        task = Task(task_id="t1", website=f"https://{WORD}.example/", task=f"Open {WORD}.", level="easy", sealed=sealed)
        attempt = a_result("t1", verdict=a_verdict(), task=task, steps=(a_step(0, thought=f"I open {WORD}."),))
        a_finished_run(tmp_path, attempt, run_id=run_id)
    return tmp_path


def said(*arguments: str, folder: Path) -> tuple[int, str]:
    skip_without_command(*arguments)
    done = CliRunner().invoke(app, [*arguments, "--output-dir", str(folder)])
    return done.exit_code, f"{done.output}\n{done.exception or ''}"


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_a_command_that_shows_tasks_refuses(folder: Path, command: list[str]) -> None:
    before = {path for path in folder.rglob("*") if path.is_file()}
    code, text = said(*command, folder=folder)
    assert code != 0
    assert REFUSAL in text
    assert WORD not in text
    assert {path for path in folder.rglob("*") if path.is_file() and ".lock" not in path.name} <= before


@pytest.mark.parametrize("command", REFUSED_FOLDERS, ids=" ".join)
def test_a_folder_of_its_trajectories_is_refused_too(folder: Path, command: list[str]) -> None:
    code, text = said(*command, str(folder / "runs" / RUN / "results"), folder=folder)
    assert (code != 0, REFUSAL in text, WORD in text) == (True, True, False)


@pytest.mark.parametrize("command", SHOWN, ids=" ".join)
def test_what_is_public_is_shown_without_the_key_and_has_no_word_of_the_tasks(folder: Path, command: list[str]) -> None:
    # The other run is not sealed.
    (folder / "runs" / OTHER).rename(folder / "elsewhere")
    text = said(*command, folder=folder)[1]
    assert REFUSAL not in text
    assert WORD not in text
    pages = [path.read_text() for path in (folder / "runs" / RUN / "report-public").rglob("*") if path.is_file()]
    assert bool(pages) is ("--public" in command)
    assert WORD not in "".join(pages)


async def test_the_pages_of_all_runs_show_nothing_of_it(folder: Path) -> None:
    index = pytest.importorskip("judge.plugins.all_runs.index").RunIndex(folder)
    routes = pytest.importorskip("judge.plugins.all_runs.page").runs_routes(index)
    transport = httpx.ASGITransport(Starlette(routes=routes), client=("127.0.0.1", 50_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:9009") as client:
        answers = {page: await client.get(page) for page in PAGES}
        assert {page: WORD in answer.text for page, answer in answers.items()} == dict.fromkeys(PAGES, False)
        assert [REFUSAL in answer.text for answer in answers.values()] == [False, True, True, True]
        assert answers["/"].status_code == 200
        other = await client.get(f"/live/{OTHER}/report/index.html")
        assert (other.status_code, WORD in other.text) == (200, True)


@pytest.mark.parametrize("record", ["damaged", "missing"])
def test_a_run_is_known_to_be_sealed_before_an_attempt_has_ended(folder: Path, record: str) -> None:
    store = RunStore(folder, RUN)
    store.write_run({**(store.read_run() or {}), "sealed": "ab" * 32})
    result = store.task("t1").folder / "result.json"
    result.unlink() if record == "missing" else result.write_text("{")
    assert RunStore(folder, RUN).is_sealed


def test_whoever_has_the_key_sees_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, SealKey.new().text)
    assert said("export", RUN, "--format", "csv", folder=folder)[0] == 0
    assert said("report", RUN, folder=folder)[0] == 0
    assert WORD in (folder / "runs" / RUN / "report" / "index.html").read_text()
