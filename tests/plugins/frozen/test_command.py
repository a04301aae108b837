"""`wabe sites`: what it says without a browser."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.paths import ROOT
from helpers.ports import free_port
from helpers.scenario.copies import scenario_on_free_ports
from judge.browser.by_hand import browse_by_hand
from judge.commands.app import command_app
from judge.network.policy import NetworkPolicy
from judge.plugins.frozen.checking import checked, is_sound, lines_of
from judge.plugins.frozen.playing import AttemptResult
from judge.plugins.frozen.recording import RecordingInterceptor
from judge.plugins.frozen.seam import FORMAT
from judge.plugins.frozen.wacz import ArchiveCheck, TaskCheck, read_wacz, write_wacz
from judge.records.ledger import Grade, LedgerEntry, MissClass
from judge.records.tasks import Task
from plugins.frozen.made import START_MS, answer, recording, request, walk
from shared.errors import ConfigError
from shared.settings import Settings

TASK = Task(task_id="t1", website="http://shop.test/", task="Buy a lamp.")
SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"

[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:9019"

[config]
judge_model = "offline"

[[tasks]]
task_id = "t1"
website = "http://shop.test/"
task = "Buy a lamp."
"""


def output_of(*words: str) -> str:
    """What the command prints, or the error that it ends with."""
    result = CliRunner().invoke(command_app("sites"), words)
    return (
        result.output if result.exception is None or isinstance(result.exception, SystemExit) else str(result.exception)
    )


def archive(path: Path, name: str, body: bytes = b"page") -> Path:
    write_wacz(path, recording(walk(name, (request(), answer(body)))))
    return path


def entry(grade: Grade, miss: MissClass | None = None, path: str = "/a") -> LedgerEntry:
    return LedgerEntry(step=2, method="GET", url=f"http://shop.test{path}", kind="document", grade=grade, miss=miss)


def test_archives_are_merged(tmp_path: Path) -> None:
    one, other = archive(tmp_path / "a.wacz", "a"), archive(tmp_path / "b.wacz", "b")
    output = output_of("merge", str(one), str(other), "-o", str(tmp_path / "both.wacz"))
    merged_archive = read_wacz(tmp_path / "both.wacz")
    assert [each.name for each in merged_archive.recording.walks] == ["a", "b"]
    assert merged_archive.merged_from == (read_wacz(one).digest, read_wacz(other).digest)
    assert "2 walks, 2 answers" in output


def test_the_digest_that_is_printed_is_the_one_that_a_scenario_pins(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.wacz", "a")
    assert f"archive_sha256 {FORMAT.open(path).digest}\n" in output_of("check", str(path))


def test_a_check_does_not_change_the_digest_that_a_scenario_pins(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.wacz", "a")
    before, merged_archive = FORMAT.open(path).digest, read_wacz(path)
    write_wacz(path, merged_archive.recording, checked=ArchiveCheck(matcher="1", of_tasks=(TaskCheck(task_id="t1"),)))
    assert FORMAT.open(path).digest == before


def test_a_check_without_a_scenario_lists_possible_credentials(tmp_path: Path) -> None:
    body = b'{"api_token": "9f8e7d6c5b4a39281706aabb"}'
    assert "Nothing in it looks like a credential" in output_of("check", str(archive(tmp_path / "a.wacz", "a")))
    assert "the value of api_token in the answer of a/0" in output_of(
        "check", str(archive(tmp_path / "b.wacz", "a", body))
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["merge", "a.wacz", "-o", "b.wacz"], "only one archive"),
        (["merge", "a.wacz", "b.wacz", "-o", "c.zip"], "use a name that ends in .wacz"),
        (["check", "none.wacz"], "none.wacz: no such file"),
        (["check", "a.wacz", "--task", "t1"], "--task needs --scenario"),
        (["record", "scenario.toml", "-o", "a.wacz"], "no task has a reference script"),
        (["record", "scenario.toml", "-o", "a.wacz", "--participant", "nobody"], "one of: agent"),
        (["record", "scenario.toml", "-o", "a.wacz", "--by-hand", "--participant", "agent"], "exclude each other"),
        (["record", "scenario.toml", "-o", "a.wacz", "--task", "t9"], "not in this scenario"),
    ],
)
def test_bad_usage_is_one_line(words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scenario.toml").write_text(SCENARIO)
    archive(Path("a.wacz"), "a")
    output = output_of(*words)
    assert message in output
    assert "Traceback" not in output


async def test_a_browser_by_hand_needs_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.from_environ({"PATH": "/usr/bin"})
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(ConfigError, match="no display"):
        await browse_by_hand(["http://shop.test/"], settings, RecordingInterceptor("w"), NetworkPolicy())


def test_a_check_lists_for_each_task_what_is_missing_and_what_to_record_again() -> None:
    ledger = (entry("exact"), entry("uncertain", path="/cart"), entry("miss", "decisive"), entry("miss", "cosmetic"))
    results = [AttemptResult(TASK, False, "not done", ledger)]
    recorded = recording(walk("t1", (request(), answer())))
    lines = list(lines_of(results, recorded, "wabe sites record s.toml"))
    assert lines == [
        "t1: failed (not done), unlike the recording, 4 requests, 1 uncertain, 1 decisive miss, 1 other",
        "  miss: step 2: GET http://shop.test/a (document)",
        "  uncertain: step 2: GET http://shop.test/cart (document)",
        "Record again: wabe sites record s.toml --task t1 -o AGAIN.wacz, then wabe sites merge both",
    ]
    assert not is_sound(results, recorded)


def test_a_task_that_was_never_recorded_is_named_even_if_its_checks_pass() -> None:
    results = [AttemptResult(TASK, True, "", ())]
    exchanges = recording(walk("t2", (request(), answer())))
    of_another = replace(exchanges, walks=tuple(replace(each, task_id="t2") for each in exchanges.walks))
    assert next(iter(lines_of(results, of_another, "record"))).startswith("t1: passed, not recorded, ")
    assert not is_sound(results, of_another)
    assert is_sound(results, exchanges)


@pytest.mark.e2e
def test_nothing_is_written_if_every_attempt_was_aborted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    site = f"http://127.0.0.1:{free_port()}/"
    Path("scenario.toml").write_text(SCENARIO.replace("http://shop.test/", site) + 'reference = "script.toml"\n')
    Path("script.toml").write_text('[[scripts]]\ntask = "Buy a lamp."\nsteps = [{ tool = "finish" }]\n')
    result = CliRunner().invoke(command_app("sites"), ["record", "scenario.toml", "-o", "a.wacz"])
    assert result.exit_code == 1
    assert f"no archive was written: t1: site: {site} cannot be reached: Connect call failed" in result.output
    assert not Path("a.wacz").exists()


@pytest.mark.e2e
def test_a_script_is_recorded_in_two_plays_and_its_walk_needs_nothing_else(tmp_path: Path) -> None:
    scenario, archive = scenario_on_free_ports("hire", tmp_path), tmp_path / "hire.wacz"
    shutil.copyfile(ROOT / "scenarios" / "hire" / "replay.toml", tmp_path / "replay.toml")
    commands = command_app("sites")
    recorded = CliRunner().invoke(commands, ["record", str(scenario), "--task", "hire_plan", "-o", str(archive)])
    assert recorded.exit_code == 0, recorded.output
    walks = read_wacz(archive).recording.walks
    assert [(each.name, each.repeats) for each in walks] == [("hire_plan", None), ("hire_plan, play 2", "hire_plan")]
    check = CliRunner().invoke(commands, ["check", str(archive), "--scenario", str(scenario), "--task", "hire_plan"])
    assert check.exit_code == 0, check.output
    assert "hire_plan: passed as recorded, 4 requests, 0 uncertain, 0 decisive misses, 0 other" in check.output


def test_a_check_keeps_the_earlier_results_of_other_tasks() -> None:
    before = ArchiveCheck(matcher=checked([], "s", None).matcher, of_tasks=(TaskCheck(task_id="t0", requests=9),))
    results = [AttemptResult(TASK, True, "", (entry("exact"),))]
    assert [task.task_id for task in checked(results, "s", before).of_tasks] == ["t0", "t1"]
    older = before.model_copy(update={"matcher": "0"})
    assert [task.task_id for task in checked(results, "s", older).of_tasks] == ["t1"]


def test_a_task_whose_reference_walk_is_not_in_the_archive_cannot_be_played(tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    missed = checked([AttemptResult(TASK, False, "", (entry("miss", "decisive"),))], "s", None)
    write_wacz(path, recording(walk("t1", (request(), answer()))), checked=missed)
    opened = FORMAT.open(path)
    assert "GET http://shop.test/a" in (opened.unplayable("t1") or "")
    assert opened.unplayable("t2") is None
    assert (opened.clock_ms, opened.origins) == (START_MS, frozenset({"http://shop.test"}))
