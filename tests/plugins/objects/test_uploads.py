"""Shards that put their finished attempts into an object store, here a folder."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.plugins import skip_without_command
from helpers.results import a_finished_run, a_result, a_verdict, write_attempt
from helpers.runner.scenario_runs import interrupted_run, write_scenario
from judge.commands.app import app
from judge.plugins.objects.store import FsspecStore
from judge.records.events import Event, RunStarted, TaskDone
from judge.results.run_record import sha256_of, task_digests
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from judge.runner.uploads import Uploads, fetch_shards
from judge.scenario.models import Shard
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.settings import Settings

RESULTS = (a_result("t0", verdict=a_verdict("success")), a_result("t1", verdict=a_verdict("failure")))


@pytest.fixture
def shard(tmp_path: Path) -> RunStore:
    """A finished shard on this machine, the only one of its run."""
    digest = sha256_of(task_digests([result.task for result in RESULTS]))
    part = Shard(index=0, of=1, tasks_sha256=digest)
    return a_finished_run(tmp_path / "here", *RESULTS, run_id=f"r1/shards/{part.name}", shard=part)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def done(task_id: str, epoch: int = 1) -> TaskDone:
    return TaskDone(task_id=task_id, epoch=epoch, outcome="success", steps=2, reason="because")


def test_what_a_shard_has_put_is_fetched_on_another_machine(shard: RunStore, url: str, tmp_path: Path) -> None:
    uploads = Uploads(FsspecStore(url), shard)
    with uploads.finished():
        pass
    there = RunStore(tmp_path / "there", shard.run_id)
    FsspecStore(url).fetch(there.run_id, there.folder)
    assert tree(there.folder) == tree(shard.folder)


def test_an_attempt_is_put_as_soon_as_it_has_ended(shard: RunStore, url: str, tmp_path: Path) -> None:
    passed: list[Event] = []
    uploads = Uploads(FsspecStore(url), shard)
    take = uploads.sink(passed.append)
    with uploads.finished():
        write_attempt(shard.task("t1", 2), RESULTS[1].model_copy(update={"epoch": 2}))
        take(RunStarted(run_id=shard.run_id, total=2, kept=0))
        take(done("t1"))
        (shard.folder / "metering.jsonl").write_text("a call\n")
        take(done("t1", 2))
        # The thread takes one after the other, so this one ends last.
        uploads._thread.submit(lambda: None).result()
        there = tree(tmp_path / "store" / "runs" / shard.run_id)
    assert {name.split("/")[1] for name in there if name.startswith("results/")} == {"t1"}
    assert "epochs/2/results/t1/result.json" in there
    assert "run.json" in there
    # It grows with every attempt.
    assert there["metering.jsonl"] == b"a call\n"
    assert len(passed) == 3


def test_an_attempt_that_is_played_again_takes_the_place_of_the_old_one(
    shard: RunStore, url: str, tmp_path: Path
) -> None:
    with Uploads(FsspecStore(url), shard).finished():
        pass
    short = a_result("t0", "environment_fault", steps=(), error="gone", blame="browser")
    write_attempt(shard.task("t0"), short)
    with Uploads(FsspecStore(url), shard).finished():
        pass
    stored = tmp_path / "store" / "runs" / shard.run_id / "results" / "t0"
    assert tree(stored) == tree(shard.task("t0").folder)
    assert (stored / "attempts" / "001" / "result.json").is_file()


def test_a_store_that_failed_for_a_while_has_everything_at_the_end(shard: RunStore, url: str, tmp_path: Path) -> None:
    in_the_way = tmp_path / "store"
    in_the_way.write_text("no folder")
    uploads = Uploads(FsspecStore(url), shard)
    with uploads.finished():
        uploads.sink(lambda _: None)(done("t0"))
        uploads._thread.submit(lambda: None).result()
        in_the_way.unlink()
    assert (in_the_way / "runs" / shard.run_id / "results" / "t0" / "result.json").is_file()


def test_a_store_that_fails_at_the_end_is_one_clear_error(shard: RunStore, url: str, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("no folder")
    with (
        pytest.raises(ConfigError, match=r"WABE_STORE file:.*store: .*\(check the address and its keys\)"),
        Uploads(FsspecStore(url), shard).finished(),
    ):
        pass


def test_a_failing_store_does_not_hide_what_ended_the_run(shard: RunStore, url: str, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("no folder")
    with pytest.raises(KeyError, match="the first"), Uploads(FsspecStore(url), shard).finished():
        raise KeyError("the first")


def test_a_fetch_that_was_cut_off_is_begun_again(shard: RunStore, url: str, tmp_path: Path) -> None:
    with Uploads(FsspecStore(url), shard).finished():
        pass
    there = RunStore(tmp_path / "there", shard.run_id)
    left = there.folder.with_name(f"{there.folder.name}.fetched") / "results" / "t9"
    left.mkdir(parents=True)
    FsspecStore(url).fetch(there.run_id, there.folder)
    assert sorted(task.folder.name for task in there.tasks()) == ["t0", "t1"]


def test_fetching_all_shards_keeps_what_is_newer_here_and_what_is_being_played(
    shard: RunStore, url: str, tmp_path: Path
) -> None:
    with Uploads(FsspecStore(url), shard).finished():
        pass
    whole = RunStore(tmp_path / "here", "r1")
    record = shard.read_run() or {}
    target = shard.folder / "results" / "t1" / "result.json"

    def changed(seconds: float) -> bool:
        """Whether a change here is lost if the record here is this much newer than that of the store."""
        target.write_text("changed")
        shard.write_run({**record, "ended_at": record["ended_at"] + seconds})
        fetch_shards(url, whole)
        return target.read_text() != "changed"

    assert not changed(0.0)
    # Played further, while the store could not be reached.
    assert not changed(60.0)
    # Played further elsewhere.
    with shard.held("runner"):
        assert not changed(-60.0)
    assert changed(-60.0)


def test_a_store_without_the_run_leaves_the_folder_as_it_is(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    FsspecStore(url).fetch("r1/shards/000-of-001", folder)
    assert not folder.exists()


def test_an_address_that_no_installed_package_knows_is_one_clear_error() -> None:
    with pytest.raises(ConfigError, match=r"^WABE_STORE nowhere://bucket: .*nowhere"):
        FsspecStore("nowhere://bucket")


def test_without_fsspec_the_remedy_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['fsspec.core'] = None\n"
        "from judge.plugins.objects.store import FsspecStore\n"
        "try: FsspecStore('s3://b')\n"
        "except Exception as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output == "WABE_STORE needs fsspec (pip install 'wabe[objects]')\n"


def test_a_shard_that_began_on_another_machine_is_fetched_and_resumes(url: str, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.toml")
    variables = {"WABE_SHARD": "0", "WABE_SHARDS": "2", "WABE_RUN_ID": "r1", "WABE_STORE": url}
    settings = Settings.from_environ(variables)
    store = interrupted_run(scenario, tmp_path / "here", settings, shards="auto")
    with Uploads(FsspecStore(url), store).finished():
        pass
    plan = make_plan(RunOptions(scenario=scenario, output_dir=tmp_path / "there", shards="auto"), settings)
    assert plan.resumes
    assert plan.store is not None
    assert plan.store.read_run() == store.read_run()


def test_merging_fetches_the_shards_first(
    shard: RunStore, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Uploads(FsspecStore(url), shard).finished():
        pass
    monkeypatch.setenv("WABE_STORE", url)
    skip_without_command("merge")
    arguments = ["merge", "r1", "--output-dir", str(tmp_path / "there")]
    completed = CliRunner().invoke(app, arguments, catch_exceptions=False).stdout
    assert f"{tmp_path / 'there' / 'runs' / 'r1'}: 2 tasks of 1 shard, 2 scored" in completed
