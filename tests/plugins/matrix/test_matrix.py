"""Several agents on several task sets: which runs that makes, where they are listed, and what is said of all."""

import asyncio
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from helpers.results import a_finished_run, a_result
from helpers.runner.scenario_runs import write_scenario
from judge.plugins.matrix.matrix import CellRequest, asked_for, find_matrix, run_matrix, run_several
from judge.plugins.matrix.table import CellFigures, figures_of, print_table
from judge.results.run_record import is_finished
from judge.runner.boundary import Interrupted
from judge.runner.options import RunOptions
from judge.store.layout import RunStore
from judge.store.matrices import Matrix
from shared.errors import ConfigError
from shared.files import read_json
from shared.settings import Settings

pytestmark = pytest.mark.slow

# Judges that end at once: such a run is planned, and fails.
AGENTS = ("replay", "http://127.0.0.1:1/")
# Options of other plug-ins.
OTHERS = {"baseline": "judge.plugins.baseline", "junit": "judge.plugins.junit", "meter": "judge.plugins.metering"}


@pytest.fixture
def scenarios(tmp_path: Path) -> dict[str, Path]:
    paths = [write_scenario(tmp_path / f"{name}.toml", agentbeats_id=name) for name in ("shop", "docs")]
    return {str(path): path for path in paths}


async def play(
    scenarios: dict[str, Path], folder: Path, agents: tuple[str, ...] = AGENTS, **options: Any
) -> tuple[int, str]:
    """The exit code and what is printed."""
    output = io.StringIO()
    options = {"command": ("wabe", "run"), "output_dir": folder / "out", "display": "plain"} | options
    run_options = RunOptions(scenario=next(iter(scenarios.values())), agent=agents, **options)
    cells = asked_for(scenarios, agents)
    return await run_matrix(
        run_options, cells, Settings.from_environ(), Console(file=output, width=80)
    ), output.getvalue()


def matrix_in(folder: Path) -> Matrix:
    (path,) = (folder / "out" / "matrices").glob("*.json")
    return Matrix.model_validate(read_json(path))


async def test_what_one_scenario_cannot_play_names_it(tmp_path: Path) -> None:
    paths = [write_scenario(tmp_path / "shop.toml"), write_scenario(tmp_path / "docs.toml")]
    paths[1].write_text(paths[1].read_text().replace('task_id = "rugs"', 'task_id = "mats"'))
    with pytest.raises(ConfigError, match=r"docs\.toml: --task 'rugs' is not in this scenario"):
        await play({str(path): path for path in paths}, tmp_path, task=("rugs",))


# --- which runs -------------------------------------------------------------------------------------------------------


def test_each_agent_plays_each_task_set_and_one_agent_comes_after_the_other(scenarios: dict[str, Path]) -> None:
    cells = asked_for(scenarios, AGENTS)
    assert [(each.agent, each.scenario) for each in cells] == [
        ("replay", "shop"),
        ("replay", "docs"),
        ("127.0.0.1:1", "shop"),
        ("127.0.0.1:1", "docs"),
    ]
    assert cells[3].file == "docs-127.0.0.1-1"
    assert len({each.sha256 for each in cells}) == 4


def test_names_that_are_equal_get_numbers(tmp_path: Path) -> None:
    paths = [write_scenario(tmp_path / folder / "scenario.toml") for folder in ("a/demo", "b/demo")]
    cells = asked_for({str(path): path for path in paths}, ["http://a.test/x", "http://a.test/y"])
    assert [(each.scenario, each.agent) for each in cells] == [
        ("demo", "a.test"),
        ("demo-2", "a.test"),
        ("demo", "a.test-2"),
        ("demo-2", "a.test-2"),
    ]


def test_without_an_agent_each_scenario_is_played_by_its_own(scenarios: dict[str, Path]) -> None:
    assert [(each.scenario, each.agents, each.agent) for each in asked_for(scenarios, [])] == [
        ("shop", (), "white_agent"),
        ("docs", (), "white_agent"),
    ]


# --- the whole --------------------------------------------------------------------------------------------------------


async def test_the_matrix_lists_cells_and_runs_and_its_exit_code_is_the_worst(
    scenarios: dict[str, Path], tmp_path: Path
) -> None:
    code, text = await play(scenarios, tmp_path, parallel_agents=2)
    assert code == 2
    matrix = matrix_in(tmp_path)
    assert sorted(read_json(tmp_path / "out" / "matrices" / f"{matrix.matrix_id}.json")) == [
        "cells",
        "matrix_id",
        "schema_version",
        "started_at",
    ]
    assert [(each.scenario, each.agent) for each in matrix.cells] == [
        (scenario, agent) for agent in ("replay", "127.0.0.1:1") for scenario in ("shop", "docs")
    ]
    # Played at once, each line says whose it is.
    for cell in matrix.cells:
        assert f"{cell.scenario} × {cell.agent} | run {cell.run_id}\n" in text
        assert re.search(rf"{cell.scenario} × {re.escape(cell.agent)} \| error: agent", text)
    assert "no result" in text
    assert text.endswith(f"--resume {matrix.matrix_id}\n")


@pytest.mark.nightly
async def test_interrupted_it_says_how_to_continue_and_continues_with_the_same_runs(
    scenarios: dict[str, Path], tmp_path: Path
) -> None:
    path = next(iter(scenarios.values()))
    write_scenario(path, judge_cmd='cmd = "sleep 600"', agentbeats_id="shop")
    playing = asyncio.create_task(play(scenarios, tmp_path))
    while not list(tmp_path.glob("out/runs/*/logs/green_agent.log")):
        assert not playing.done()
        await asyncio.sleep(0.05)
    playing.cancel()
    with pytest.raises(Interrupted) as stopped:
        await playing
    matrix = matrix_in(tmp_path)
    words = f"--output-dir {tmp_path / 'out'} --agent replay --agent http://127.0.0.1:1/ --resume {matrix.matrix_id}"
    assert f"resume with: wabe run {' '.join(scenarios)} {words}" in str(stopped.value)
    write_scenario(path, agentbeats_id="shop")
    code, text = await play(scenarios, tmp_path, resume="latest")
    assert (code, matrix_in(tmp_path)) == (2, matrix)
    assert text.startswith(f"Resuming matrix {matrix.matrix_id}: 4 runs\n")


async def test_other_runs_are_not_resumed(
    scenarios: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object, **__: object) -> int:
        return 2

    monkeypatch.setattr("judge.plugins.matrix.matrix._play", failing)
    with pytest.raises(ConfigError, match="no unfinished matrix of these 4 runs"):
        await play(scenarios, tmp_path, resume="latest")
    await play(scenarios, tmp_path, parallel_agents=2)
    matrix = matrix_in(tmp_path)
    with pytest.raises(ConfigError, match=f"matrix {matrix.matrix_id} has other scenarios or agents: shop × replay"):
        await play(scenarios, tmp_path, ("replay", "idle"), resume=matrix.matrix_id)
    with pytest.raises(ConfigError, match="no unfinished matrix of these 4 runs"):
        await play(scenarios, tmp_path, ("replay", "idle"), resume="latest")
    with pytest.raises(ConfigError, match="this command asks for 4 runs: give the id of their matrix"):
        await play(scenarios, tmp_path, resume=matrix.cells[0].run_id)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"shards": "2"}, "--shards divides one run, not several"),
        ({"serve_only": True}, "--serve-only is for one run"),
        ({"linger": True}, "--linger is for one run"),
        ({"display": "json", "parallel_agents": 2}, "--display json cannot tell apart runs that are played at once"),
        ({"baseline": "earlier"}, "--baseline earlier: shop-replay.json is missing"),
        ({"meter": True}, "--meter needs a judge and a participant that are started here"),
    ],
)
async def test_what_several_runs_cannot_have_is_refused_before_anything_starts(
    scenarios: dict[str, Path], tmp_path: Path, options: dict[str, Any], complaint: str
) -> None:
    for name in OTHERS.keys() & options.keys():
        pytest.importorskip(OTHERS[name])
    with pytest.raises(ConfigError, match=complaint):
        await play(scenarios, tmp_path, **options)
    assert not (tmp_path / "out").exists()


async def test_what_is_written_or_compared_is_one_file_for_each_run(
    scenarios: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("baseline", "junit"):
        pytest.importorskip(OTHERS[name])
    options_seen: dict[str, RunOptions] = {}

    async def playing(cell: CellRequest, options: RunOptions, *_: object, **__: object) -> int:
        options_seen[cell.file] = options
        return 1 if cell.scenario == "docs" else 0

    monkeypatch.setattr("judge.plugins.matrix.matrix._play", playing)
    before = tmp_path / "before"
    before.mkdir()
    names = ["shop-replay", "docs-replay", "shop-127.0.0.1-1", "docs-127.0.0.1-1"]
    for name in names:
        store = a_finished_run(tmp_path / name, a_result())
        (before / f"{name}.json").write_bytes((store.folder / "results.json").read_bytes())
    folders: dict[str, Any] = {"output": tmp_path / "results", "junit": tmp_path / "junit", "baseline": str(before)}
    code, _ = await play(scenarios, tmp_path, **folders)
    assert code == 1
    assert list(options_seen) == names
    for name, options in options_seen.items():
        assert options.output == tmp_path / "results" / f"{name}.json"
        assert options.value("junit") == tmp_path / "junit" / f"{name}.xml"
        assert options.value("baseline") == str(before / f"{name}.json")
        assert options.resume is None


async def test_a_run_is_played_with_the_options_that_it_would_have_alone(
    scenarios: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options_seen: list[RunOptions] = []

    async def playing(_: CellRequest, options: RunOptions, *__: object, **___: object) -> int:
        # As its process reads them.
        options_seen.append(RunOptions.model_validate_json(options.model_dump_json(exclude_defaults=True)))
        return 0

    monkeypatch.setattr("judge.plugins.matrix.matrix._play", playing)
    await play(scenarios, tmp_path, ("replay",), limit=1, epochs=3, task=("rugs",), fail_under=50.0)
    assert [
        (each.scenario, each.agent, each.limit, each.value("epochs"), each.task, each.fail_under)
        for each in options_seen
    ] == [(path, ("replay",), 1, 3, ("rugs",), 50.0) for path in scenarios.values()]
    assert [each.own_run_id for each in options_seen] == [each.run_id for each in matrix_in(tmp_path).cells]


def test_several_runs_are_not_resumed_as_one(scenarios: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "matrices"
    folder.mkdir()
    (folder / "m1.json").write_text('{"matrix_id": "m1", "started_at": 0, "cells": []}')
    (name, path), _ = scenarios.items()
    options = RunOptions(scenario=path, output_dir=tmp_path, resume="m1")
    with pytest.raises(ConfigError, match="--resume m1 is a matrix of 0 runs, and this command asks for one"):
        run_several(options, {name: path}, Settings())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"shards": "2"}, "--shards divides one run, not several"),
        ({"serve_only": True}, "--serve-only is for one run"),
        ({"output": Path("/dev/null")}, "with several runs it names a folder"),
    ],
)
def test_options_of_one_run_do_not_go_with_several(
    scenarios: dict[str, Path], tmp_path: Path, options: dict[str, Any], complaint: str
) -> None:
    own = RunOptions(scenario=next(iter(scenarios.values())), agent=AGENTS, output_dir=tmp_path, **options)
    play_all = run_several(own, scenarios, Settings())
    assert play_all is not None
    with pytest.raises(ConfigError, match=complaint):
        asyncio.run(play_all(Console(quiet=True)))


def test_a_damaged_matrix_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "matrices"
    folder.mkdir()
    (folder / "m1.json").write_text(json.dumps({"schema_version": "9", "matrix_id": "m1"}))
    with pytest.raises(ConfigError, match=r"m1\.json cannot be read as a matrix"):
        find_matrix("m1", tmp_path)
    assert find_matrix("../matrices/m1", tmp_path) is None


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_table_has_agents_in_rows_and_task_sets_in_columns(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result())
    assert is_finished(store)
    figures = figures_of(store)
    assert figures is not None
    output = io.StringIO()
    rows: list[tuple[str, str, CellFigures | None]] = [
        ("mine", "demo", figures._replace(player="mine 0.2", agent_cost=0.5, judge_cost=None, duration_s=75.0)),
        ("mine", "docs", figures_of(RunStore(tmp_path, "gone"))),
        ("replay", "docs", figures._replace(player="night run: replay 1")),
    ]
    print_table(Console(file=output, width=20), rows)
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.getvalue().splitlines() if "│" in line]
    rate = figures.rate
    text = f"{rate.rate:.1f} % ({rate.low:.1f} to {rate.high:.1f})"
    assert lines[:2] == [["mine", text, "no result"], ["mine 0.2", "$0.5000 + -, 1:15", ""]], output.getvalue()
    assert [line[:2] for line in lines[2:]] == [["replay", ""], ["night run: replay 1", ""]]
    assert lines[2][2] == text
