"""The command line of `wabe run` and `agentbeats-run`: mistakes are one line each, exit code 2, nothing started."""

import json
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.runner.scenario_runs import write_scenario
from judge.commands.app import app, command_app, expand_resume
from judge.commands.doctor import check_disk
from judge.commands.run import scenario_file
from judge.results.identity import identity_in
from judge.results.run_record import begin_run
from judge.runner.boundary import run_command
from judge.runner.options import RunOptions, resume_command
from judge.runner.plan import make_plan
from judge.scenario.request import parse_request
from judge.scenario.toml import load_scenario
from judge.store import layout
from judge.store.layout import RunStore
from shared import engines
from shared.engines import Engine
from shared.errors import ConfigError
from shared.seams import Seam
from shared.settings import Settings

GOOD = """
[green_agent]
endpoint = "http://127.0.0.1:{judge}"
cmd = "{cmd}"

[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:{participant}"

[config]
judge_model = "{model}"

[[tasks]]
task_id = "t1"
website = "https://shop.test/"
task = "Open the page."
level = "easy"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Path]:
    def write(*, cmd: str = "true", model: str = "offline", judge: int = 1, participant: int = 2) -> Path:
        path = tmp_path / "scenario.toml"
        path.write_text(GOOD.format(cmd=cmd, model=model, judge=judge, participant=participant))
        return path

    return write


@pytest.fixture
def fails(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "WABE_JUDGE_MODEL", "EVAL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    # A run removes, and reports, the browsers that killed judges have left: those of other tests in the common folder.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def run(*arguments: str | Path) -> str:
        command_line = ["--output-dir", str(tmp_path / "out"), *(str(argument) for argument in arguments)]
        with pytest.raises(SystemExit) as left:
            run_command(command_app("run"), expand_resume(command_line), name="agentbeats-run")
        output = capsys.readouterr()
        assert left.value.code == 2, output
        assert output.err.startswith("error: ")
        assert "Traceback" not in output.err
        return output.err

    return run


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--level", "extreme"], "'extreme' is not one of 'easy', 'medium', 'hard'"),
        (["--level", "esy"], "'esy' is not one of 'easy', 'medium', 'hard'. Did you mean 'easy'?"),
        (["--display", "plian"], "'plian' is not one of 'full', 'plain', 'json', 'none'. Did you mean 'plain'?"),
        (["--fail-under", "101"], "--fail-under 101 is not a percentage"),
        (["--fail-under", "nan"], "--fail-under nan is not a percentage"),
        (["--fail-under", "0.8"], "--fail-under 0.8 is below one percent: did you mean 80? (give 0, or 1 to 100)"),
        (["--limit", "0"], "--limit"),
        (["--limit", "many"], "--limit"),
        (["--max-parallel", "0"], "--max-parallel"),
        (["--max-parallel", "1000"], "--max-parallel"),
        (["--task", "nope"], "--task"),
        (["--level", "hard"], "no task is left to run"),
        (["--judge-model", "claude"], "error: --judge-model: unknown judge model 'claude'"),
        (["--judge-model", "gemini:"], "gemini:"),
        (["--judge-model", "gemini:gemini-3-flash-preview"], "GOOGLE_API_KEY"),
        (["--judge-model", "openai:o4-mini"], "OPENAI_API_KEY"),
        (["--resume"], "no run under"),
        (["--resume", "20200101-000000-zz"], "no run '20200101-000000-zz'"),
        (["--no-such-option"], "No such option"),
        (["--output"], "requires an argument"),
    ],
)
def test_a_wrong_flag_is_one_clear_line(
    scenario: Callable[..., Path], fails: Callable[..., str], flags: list[str], complaint: str
) -> None:
    completed = fails(scenario(), *flags)
    assert complaint in completed
    assert len(completed.splitlines()) == 1


def test_a_missing_scenario_is_reported(fails: Callable[..., str]) -> None:
    assert "SCENARIO.toml" in fails()


def test_a_scenario_that_is_not_there_is_named(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "gone.toml" in fails(tmp_path / "gone.toml")


def test_a_taken_port_is_named_before_anything_starts(scenario: Callable[..., Path], fails: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"port {port} on 127.0.0.1 is already taken" in fails(scenario(judge=port))


def test_without_a_browser_nothing_starts_and_the_line_says_how_to_get_one(
    fails: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WABE_BROWSER_PATH", raising=False)
    for name in ("PATH", "PLAYWRIGHT_BROWSERS_PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    completed = fails("demo")
    assert completed.startswith("error: no browser found (run `")
    assert f"{sys.executable} -m playwright install chromium" in completed
    assert len(completed.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_agent_that_ends_at_once_is_named_with_the_end_of_its_log(
    scenario: Callable[..., Path], fails: Callable[..., str]
) -> None:
    completed = fails(scenario(cmd="sh -c 'echo out of paint; exit 3'"))
    assert "agent green_agent" in completed
    assert "exit code 3" in completed
    assert "out of paint" in completed


def test_too_little_space_is_named_as_by_the_doctor(
    scenario: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(*_: object) -> int:
        return 0

    monkeypatch.setattr(layout, "_MIN_FREE_BYTES", 10**18)
    monkeypatch.setattr(engines, "player_of", lambda _: play)
    with pytest.raises(SystemExit):
        run_command(command_app("run"), [str(scenario()), "--output-dir", str(tmp_path)], name="wabe")
    assert capsys.readouterr().err == f"warning: {check_disk(tmp_path).text}\n"


def test_a_command_that_does_not_exist_is_named(scenario: Callable[..., Path], fails: Callable[..., str]) -> None:
    assert "cannot start 'no-such-program'" in fails(scenario(cmd="no-such-program --port 1"))


def test_an_output_folder_that_cannot_be_made_is_named(
    scenario: Callable[..., Path], fails: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("a file")
    assert "cannot write under" in fails(scenario())


def test_a_result_that_cannot_be_written_is_reported_before_anything_is_started(
    fails: Callable[..., str], scenario: Callable[..., Path], tmp_path: Path
) -> None:
    assert f"error: --output {tmp_path}: Is a directory (choose a file" in fails(scenario(), "--output", tmp_path)
    assert "error: --output /dev/null/x: File exists" in fails(scenario(), "--output", "/dev/null/x")
    assert not (tmp_path / "out").exists()


def test_a_judge_model_of_the_environment_is_not_blamed_on_the_file(
    fails: Callable[..., str], scenario: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scenario(model="claude")
    assert f"{path}: config.judge_model: unknown judge model 'claude'" in fails(path)
    monkeypatch.setenv("WABE_JUDGE_MODEL", "bard")
    assert fails(path).startswith("error: WABE_JUDGE_MODEL: unknown judge model 'bard'")


NO_TASKS = """
[green_agent]
endpoint = "http://127.0.0.1:1"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:2"
[config]
scenario = "live"
"""


@pytest.mark.parametrize("choice", [("--level", "easy"), ("--task", "t1")])
def test_tasks_that_only_the_judge_knows_cannot_be_chosen_among(
    tmp_path: Path, fails: Callable[..., str], choice: tuple[str, str]
) -> None:
    (tmp_path / "live.toml").write_text(NO_TASKS)
    assert "--level, --task, --where and --exclude choose among a scenario's own tasks" in fails(
        tmp_path / "live.toml", *choice
    )


NEEDS_SITES = NO_TASKS.replace("[[part", 'cmd = "wabe serve --port 1"\n[[part')


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (
            "demo",
            "config.scenario: 'demo' needs sites, which only its own scenario starts (wabe run demo --agent AGENT",
        ),
        ("dmeo", "config.scenario: 'dmeo' is not a bundled task set (did you mean 'demo'?"),
    ],
)
def test_a_bundled_set_that_could_not_be_played_is_refused_with_the_remedy(
    tmp_path: Path, fails: Callable[..., str], name: str, complaint: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(NEEDS_SITES.replace('"live"', f'"{name}"'))
    assert complaint in fails(path)
    answer = CliRunner().invoke(app, ["tasks", "validate", str(path)])
    assert (answer.exit_code, complaint in answer.output) == (2, True)


def test_a_bundled_set_without_sites_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(NEEDS_SITES)
    answer = CliRunner().invoke(app, ["tasks", "validate", str(path)])
    assert answer.output.endswith("mine.toml: valid, the tasks of live\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["https://shop.example/"], "'https://shop.example/' is neither a scenario file nor a bundled task set"),
        (["demo", "--agent", "replai"], "--agent 'replai' is not an agent (did you mean 'replay'?"),
    ],
)
def test_an_unknown_scenario_or_agent_is_one_clear_line(
    fails: Callable[..., str], words: list[str], complaint: str
) -> None:
    completed = fails(*words)
    assert complaint in completed
    assert len(completed.splitlines()) == 1


def test_several_scenarios_need_something_that_plays_them(
    fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "ENGINES", Seam("nothing", "engine"))
    assert "nothing is installed that plays 2 scenarios (give one of them)" in fails("demo", "miniwob")


def test_a_limit_goes_to_the_judge_that_knows_the_tasks(tmp_path: Path) -> None:
    (tmp_path / "live.toml").write_text(NO_TASKS)
    plan = make_plan(RunOptions(scenario=tmp_path / "live.toml", limit=2), Settings())
    assert json.loads(plan.request)["config"]["num_instances"] == 2


@pytest.mark.parametrize("judge_cmd", ['cmd = "true"', ""], ids=["a judge started here", "one that already runs"])
def test_the_name_of_a_run_goes_with_the_request_into_its_record(tmp_path: Path, judge_cmd: str) -> None:
    path = write_scenario(tmp_path / "scenario.toml", judge_cmd=judge_cmd)
    plan = make_plan(RunOptions(scenario=path, output_dir=tmp_path, name="night run"), Settings())
    request = parse_request(plan.request, lambda _: ())
    store = RunStore(tmp_path, "r1")
    begin_run(
        store,
        config=request.config,
        tasks=request.tasks,
        role="white_agent",
        url="http://127.0.0.1:1",
        judge_id="checks-1",
        launch=request.launch,
    )
    assert identity_in(store.read_run() or {})["name"] == "night run"
    assert plan.notes == ()


def test_epochs_go_to_the_judge_and_a_run_is_resumed_with_as_many(
    scenario: Callable[..., Path], tmp_path: Path
) -> None:
    options = RunOptions(scenario=scenario(), output_dir=tmp_path, epochs=3)
    plan = make_plan(options, Settings())
    assert json.loads(plan.request)["config"]["epochs"] == 3
    request = parse_request(plan.request, lambda _: ())
    begin_run(
        RunStore(tmp_path, "r1"),
        config=request.config,
        tasks=request.tasks,
        role="white_agent",
        url=request.participants["white_agent"],
        judge_id="checks-1",
        launch=request.launch,
    )
    assert make_plan(options.model_copy(update={"resume": "r1"}), Settings()).resumes
    with pytest.raises(ConfigError, match=r"config\.epochs: 3 → 2"):
        make_plan(options.model_copy(update={"resume": "r1", "epochs": 2}), Settings())
    with pytest.raises(ConfigError, match=r"config\.epochs: 3 → not set"):
        make_plan(options.model_copy(update={"resume": "r1", "epochs": None}), Settings())


def test_resume_takes_a_run_id_or_stands_alone() -> None:
    assert expand_resume(["--resume", "s.toml"]) == ["--resume", "latest", "s.toml"]
    assert expand_resume(["s.toml", "--resume"]) == ["s.toml", "--resume", "latest"]
    assert expand_resume(["s.toml", "--resume", "--limit", "1"]) == ["s.toml", "--resume", "latest", "--limit", "1"]
    assert expand_resume(["s.toml", "--resume", "r1"]) == ["s.toml", "--resume", "r1"]
    assert expand_resume(["run", "demo", "--resume"]) == ["run", "demo", "--resume", "latest"]
    assert expand_resume(["run", "--resume", "demo"]) == ["run", "--resume", "latest", "demo"]
    assert expand_resume([]) == []


def test_both_commands_have_the_same_options() -> None:
    helps = [
        CliRunner().invoke(command_app("run"), ["--help"], prog_name="x").output,
        CliRunner().invoke(app, ["run", "--help"], prog_name="x").output,
    ]
    assert helps[0].partition("\n\n")[2] == helps[1].partition("\n\n")[2]


@pytest.mark.parametrize("prog", ["wabe run", "agentbeats-run"])
def test_a_message_names_the_command_that_was_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, prog: str
) -> None:
    options_seen: list[RunOptions] = []

    async def interrupted(options: RunOptions, *_: object) -> int:
        options_seen.append(options)
        return 0

    monkeypatch.setattr("judge.runner.run.ENGINE", Engine(run=interrupted))
    words = ["demo", "--limit", "2", "--epochs", "3", "--output-dir", str(tmp_path)]
    used, values = (command_app("run"), words) if prog == "agentbeats-run" else (app, ["run", *words])
    with pytest.raises(SystemExit) as left:
        run_command(used, values, name=prog.split()[0])
    assert left.value.code == 0, capsys.readouterr().err
    command = resume_command(options_seen[0], RunStore(tmp_path, "r1"))
    assert command == f"{prog} demo --output-dir {tmp_path} --limit 2 --epochs 3 --resume r1"


def test_a_bundled_set_is_found_by_its_name_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("demo", "docs", "live"):
        result = scenario_file(name, Settings().bundled_scenarios)
        assert result.is_absolute()
        assert load_scenario(result).tasks or name == "live"


def test_a_file_goes_before_a_bundled_set_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo").touch()
    assert scenario_file("demo", Settings().bundled_scenarios) == Path("demo")


@pytest.mark.parametrize("name", ["dmeo", "de/mo", "demo.toml"])
def test_an_unknown_name_is_an_error_that_names_the_sets(fails: Callable[..., str], name: str) -> None:
    completed = fails(name)
    assert name in completed
    assert ("demo, docs, frozen, held, hire, live" in completed) == (name != "de/mo")
    assert ("did you mean 'demo'?" in completed) == (name != "de/mo")
