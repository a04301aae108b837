"""`--engine ray`: what is refused, what a shard is asked to do, and the events of all shards as those of one run."""

import io
import json
import signal
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from helpers.paths import ROOT
from helpers.runner.scenario_runs import write_scenario
from judge.commands.app import command_app
from judge.plugins.ray import engine
from judge.plugins.ray.engine import Whole, fields_of
from judge.records.events import Event, RequestWarning, RunDone, RunStarted, Sink, TaskDone, from_wire
from judge.records.tasks import TASK_ID
from judge.runner.boundary import run_command
from judge.runner.options import RunOptions, resume_command
from judge.runner.plan import make_plan
from judge.runner.terminal import Progress
from judge.server.live import LiveHub
from judge.store.layout import RUN_ID, RunStore
from shared.engines import Engine
from shared.errors import ConfigError
from shared.settings import Settings

SITE = '\n[[sites]]\nname = "shop"\nendpoint = "http://127.0.0.1:9100"\ncmd = "true {port}"\n'


def options(folder: Path, **changes: Any) -> RunOptions:
    path = folder / "s.toml"
    if not path.exists():
        write_scenario(path)
    run_options = {"scenario": path, "output_dir": folder / "out", "shards": "2", "engine": "ray", **changes}
    return RunOptions(**run_options)


SETTINGS = Settings.from_environ({"PATH": "/usr/bin:/bin", "WABE_JUDGE_MODEL": "offline", "OPENAI_API_KEY": "secret"})


@pytest.mark.parametrize("shards", [None, "auto", "0", "10000", "two"])
def test_the_number_of_shards_is_needed(tmp_path: Path, shards: str | None) -> None:
    with pytest.raises(ConfigError, match=r"--engine ray needs the number of shards .*give --shards N"):
        engine._plan(options(tmp_path, shards=shards), SETTINGS)


def test_without_ray_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"needs Ray, which is not installed \(pip install 'wabe\[ray\]'\)"):
        engine._plan(options(tmp_path), SETTINGS)


@pytest.mark.parametrize(
    ("scenario", "settings", "complaint"),
    [
        ({"judge_cmd": ""}, {}, "--shards needs a judge that is started here"),
        ({}, {"serve_only": True}, "--shards needs a judge that is started here"),
        ({}, {"resume": "latest"}, "--shards needs --resume to name the run"),
        ({}, {"resume": "gone"}, "no run 'gone'"),
        ({}, {"show_logs": True}, "--engine ray has no --show-logs"),
        ({}, {"trivial_agents": True}, "--shards does not go with --trivial-agents"),
        ({"site": 'reset_url = "http://127.0.0.1:9100/reset"'}, {}, "site shop is reset between attempts"),
        ({"site": "restart = true"}, {}, "site shop is reset between attempts"),
        ({"site": 'instances = "per_slot"'}, {}, "site shop has instances, so shards cannot share it"),
    ],
)
def test_what_cannot_be_divided_is_refused(
    tmp_path: Path, scenario: dict[str, str], settings: dict[str, Any], complaint: str
) -> None:
    site = scenario.pop("site", None)
    path = write_scenario(tmp_path / "s.toml", **scenario)
    if site:
        path.write_text(f"{path.read_text()}{SITE}{site}\n")
    with pytest.raises(ConfigError, match=complaint):
        engine._plan(options(tmp_path, **settings), SETTINGS)


def test_a_run_is_resumed_with_the_number_of_shards_that_it_has(tmp_path: Path) -> None:
    run_options = options(tmp_path, resume="r1", shards="3")
    RunStore(run_options.output_dir, "r1/shards/000-of-002").create()
    with pytest.raises(ConfigError, match="run r1 has other shards, 000-of-002"):
        engine._plan(run_options, SETTINGS)
    shards, plan = engine._plan(options(tmp_path, resume="r1"), SETTINGS)
    assert plan.store is not None
    assert (shards, plan.store.run_id) == (2, "r1")
    command = resume_command(options(tmp_path, command=("wabe", "run", "s.toml")), plan.store)
    assert command == f"wabe run s.toml --engine ray --shards 2 --output-dir {tmp_path / 'out'} --resume r1"


def test_a_shard_is_asked_for_the_same_run_and_given_no_secret(tmp_path: Path) -> None:
    run_options = options(tmp_path, limit=1, max_parallel=3, name="mine")
    _, plan = engine._plan(run_options, SETTINGS)
    job = engine._job(plan, SETTINGS, 2)
    assert plan.store is not None
    assert job["argv"][:6] == ["run", str(run_options.scenario), "--shards", "auto", "--display", "json"]
    assert job["argv"][6:] == ["--limit", "1", "--max-parallel", "3", "--judge-model", "offline", "--name", "mine"]
    assert job["environ"]["WABE_RUN_ID"] == plan.store.run_id
    assert (job["slots"], job["is_here"]) == (3, False)
    assert "secret" not in json.dumps(job)


def test_the_shards_play_together_what_the_run_is_planned_to_play_also_under_attack_and_metered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options_seen: list[RunOptions] = []

    async def playing(options: RunOptions, *_: object) -> int:
        options_seen.append(options)
        return 0

    monkeypatch.setattr("judge.runner.run.ENGINE", Engine(run=playing))
    scenario = ROOT / "scenarios" / "safety" / "scenario.toml"
    run_options = options(tmp_path, scenario=scenario, attacks="both", meter=True, epochs=2, exclude=("desks=closed",))
    _, plan = engine._plan(run_options, SETTINGS)
    job = engine._job(plan, SETTINGS, 2)
    with pytest.raises(SystemExit, match="0"):
        run_command(command_app("run"), job["argv"][1:], name="agentbeats-run")
    drafts = []
    for index in range(2):
        environ = {**SETTINGS.environ, **job["environ"], "WABE_SHARD": str(index)}
        drafts.append(make_plan(options_seen[0], Settings.from_environ(environ)).draft)
    assert plan.draft is not None
    requests = [draft for draft in drafts if draft is not None]
    assert {task.task_id for draft in requests for task in draft.tasks_to_play} == {
        task.task_id for task in plan.draft.tasks_to_play
    }
    assert any(task.attack for task in plan.draft.tasks_to_play)
    own = {"run_id"}
    assert [draft.config.model_dump(exclude=own) for draft in requests] == [
        plan.draft.config.model_dump(exclude=own)
    ] * 2
    assert requests[0].config.meter


def test_what_is_only_reached_from_this_machine_keeps_the_shards_here(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml")
    path.write_text(path.read_text() + SITE)
    _, plan = engine._plan(options(tmp_path), SETTINGS)
    assert engine._job(plan, SETTINGS, 2)["is_here"]


def test_a_shard_does_not_start_the_sites_again(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml")
    path.write_text(path.read_text() + SITE)
    settings = SETTINGS.model_copy(update={"sites_run": True})
    _, plan = engine._plan(options(tmp_path), settings)
    assert [member.cmd for member in plan.members if member.name == "shop"] == [None]


def started(settled: int = 0) -> RunStarted:
    return RunStarted(run_id="r/shards/x", total=2, kept=settled)


def done(task_id: str) -> TaskDone:
    return TaskDone(task_id=task_id, outcome="success", steps=1, reason="")


def whole() -> tuple[Whole, list[Event], dict[str, list[Event]]]:
    items: list[Event] = []
    watched: dict[str, list[Event]] = {}

    def watch(run_id: str) -> Sink:
        watched[run_id] = []
        return watched[run_id].append

    return Whole("r", 2, 4, items.append, watch), items, watched


def lines_of(*events: Event) -> list[str]:
    """What a shard prints about them."""
    output = io.StringIO()
    progress = Progress(Console(file=output, quiet=True), "json")
    for event in events:
        progress(event)
    return output.getvalue().splitlines()


def feed(of: Whole, shard: int, *events: Event) -> None:
    for line in lines_of(*events):
        of.line(shard, line)


def test_the_events_of_all_shards_are_those_of_one_run() -> None:
    of, events, watched = whole()
    ends = RunDone(successes=2, scored=2, total=2)
    feed(of, 0, started(), done("a"))
    feed(of, 1, started(), done("b"), ends)
    assert events == [RunStarted(run_id="r", total=4), done("a"), done("b")]
    assert watched == {
        "r/shards/000-of-002": [started(), done("a")],
        "r/shards/001-of-002": [started(), done("b"), ends],
    }


def test_every_shard_plays_all_epochs(tmp_path: Path) -> None:
    write_scenario(tmp_path / "s.toml")
    repeated = options(tmp_path).model_copy(update={"epochs": 3})
    _, plan = engine._plan(repeated, SETTINGS)
    argv = engine._job(plan, SETTINGS, 2)["argv"]
    assert argv[argv.index("--epochs") + 1] == "3"
    of, events, _ = whole()
    feed(of, 0, started().model_copy(update={"epochs": 3}))
    assert events == [RunStarted(run_id="r", total=4, epochs=3)]


def test_a_shard_that_is_started_again_is_named_and_counts_nothing_twice() -> None:
    of, events, watched = whole()
    of.line(1, '{"event": "shard_started"}')
    feed(of, 1, started(), done("a"))
    of.line(1, '{"event": "shard_started"}')
    feed(of, 1, started(settled=1))
    again = RequestWarning(text="Shard 001-of-002 is started again: it resumes.")
    assert events == [RunStarted(run_id="r", total=4), done("a"), again]
    assert watched == {"r/shards/001-of-002": [started(settled=1)]}


def test_tasks_kept_from_before_are_counted_over_all_shards() -> None:
    of, events, _ = whole()
    feed(of, 0, started(settled=2))
    feed(of, 1, started(settled=1))
    assert events == [RunStarted(run_id="r", total=4, kept=remaining) for remaining in (2, 3)]


def test_what_a_shard_says_besides_is_kept_for_its_failure() -> None:
    of, events, _ = whole()
    for number in range(20):
        of.line(0, f"line {number}")
    of.line(0, '{"event": "phase", "text": "x"}')
    assert events == []
    assert of.last_lines == [[f"line {number}" for number in range(8, 20)], []]


async def test_the_live_page_is_served_beside_the_run_and_leaves_its_signals_alone(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    async with engine._live_page(LiveHub(), tmp_path) as address, httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(address)).status_code == 200
        assert signal.getsignal(signal.SIGINT) is before


def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    # What is excluded stays in the judge's own process.
    known: dict[Any, st.SearchStrategy[Any]] = {
        "task_id": st.from_regex(TASK_ID, fullmatch=True),
        "run_id": st.from_regex(RUN_ID, fullmatch=True),
        int: st.integers(0, 1_000_000_000),
    }
    types: dict[str, Any] = {name: field.annotation for name, field in kind.model_fields.items() if not field.exclude}
    by_key = {
        name: known[key] if (key := name if name in known else kind_) in known else st.from_type(kind_)
        for name, kind_ in types.items()
    }
    return st.builds(kind, **by_key)


@given(st.one_of(*map(events_of, get_args(Event))))
def test_every_event_survives_the_way_through_a_shards_output(event: Event) -> None:
    (line,) = lines_of(event)
    assert from_wire(fields_of(line)) == event


@given(st.text() | st.from_regex(r'\{"event": "(task_done|step_done)", .*\}', fullmatch=True))
def test_no_other_line_is_an_event_or_raises(line: str) -> None:
    assert isinstance(from_wire(fields_of(line)), Event | None)
