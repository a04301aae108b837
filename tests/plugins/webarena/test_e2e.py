"""Real tasks of WebArena-Verified from import to submission: one run with correct and wrong attempts."""

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from helpers.episode.offline_judge import play_scenario
from helpers.interop.environments import environment
from helpers.paths import ROOT
from helpers.plugins import skip_without_command
from judge.commands.app import app
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions
from participants.replay import create

pytestmark = pytest.mark.e2e

# One of each kind: to retrieve, to navigate, to change. `benchmarks/webarena_verified.py` plays all in every way.
RIGHT = (22, 44, 595)
WRONG = {168: "task_type", 156: "query", 511: "cookie"}


class WebarenaRun(NamedTuple):
    bench: Any
    verdicts: Mapping[int, Mapping[str, Any]]
    exported: str


@pytest.fixture(scope="module")
def demonstration() -> Iterator[ModuleType]:
    folder = ROOT / "benchmarks"
    spec = importlib.util.spec_from_file_location("webarena_demonstration", folder / "webarena_verified.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def wabe(*arguments: object, folder: Path, expect: Sequence[int] = (0,)) -> str:
    """Run one of our commands in this process: starting `wabe run`, a judge and a participant takes seconds."""
    words = [str(argument) for argument in arguments]
    with contextlib.chdir(folder):
        if words[0] == "run":
            scenario = load_scenario(folder / words[1])
            decide = create(ParticipantOptions(script=str(folder / "round0-replay.toml")))
            asyncio.run(play_scenario(scenario, decide, folder / words[-1]))
            return ""
        result = CliRunner().invoke(app, words)
    assert result.exit_code in expect, (arguments, result.output, result.exception)
    return result.stdout


@pytest.fixture(scope="module")
def webarena_run(demonstration: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebarenaRun]:
    skip_without_command("export")
    folder: Path = tmp_path_factory.mktemp("webarena")
    python = str(environment("webarena"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demonstration, "wabe", wabe)
        patch.setenv("WABE_WEBARENA_PYTHON", python)
        bench = demonstration.Bench(folder, python, [*RIGHT, *WRONG])
        attempts = {
            number: case.wrong[WRONG[number]] if number in WRONG else case.right for number, case in bench.cases.items()
        }
        verdicts = bench.play("round0", attempts)
        export = ("export", "latest", "--format", "webarena-verified", "--output-dir", "round0")
        yield WebarenaRun(bench, verdicts, wabe(*export, folder=folder))


@pytest.mark.parametrize("number", RIGHT)
def test_a_correct_attempt_succeeds(webarena_run: WebarenaRun, number: int) -> None:
    assert webarena_run.verdicts[number]["outcome"] == "success", webarena_run.verdicts[number]["reason"]


@pytest.mark.parametrize("number", WRONG)
def test_a_near_miss_fails(webarena_run: WebarenaRun, number: int) -> None:
    assert webarena_run.verdicts[number]["outcome"] == "failure", webarena_run.verdicts[number]["reason"]


def test_the_verdict_names_the_versions_and_what_was_expected(webarena_run: WebarenaRun) -> None:
    created = webarena_run.verdicts[595]
    assert "webarena-verified 1.2.3" in created["judge"]["note"]
    result = created["evidence"]["webarena_verified"]
    assert len(result["webarena_verified_data_checksum"]) == 64
    assert "subscribe" in result["evaluators_results"][1]["actual"]
    assert [point.split(":")[0] for point in created["key_points"]] == ["answer", "request"]


def test_successes_failures_and_errors_are_counted_by_site(webarena_run: WebarenaRun) -> None:
    assert webarena_run.bench.summary["sites"] == {
        "gitlab": {"total": 3, "success": 1, "failure": 2, "error": 0},
        "reddit": {"total": 1, "success": 1, "failure": 0, "error": 0},
        "shopping": {"total": 2, "success": 1, "failure": 1, "error": 0},
    }


def test_the_benchmarks_own_command_accepts_the_submission(webarena_run: WebarenaRun) -> None:
    assert "6 of 6 tasks written" in webarena_run.exported
    assert "6 of 6 submissions valid" in webarena_run.exported


def test_neither_password_nor_session_is_in_any_file_of_the_run(webarena_run: WebarenaRun) -> None:
    assert webarena_run.bench.leaks() == []
