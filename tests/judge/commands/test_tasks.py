import json
import re
import socket
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tomli
import typer
from typer.testing import CliRunner

from helpers.network.archives import SHOP, use_pages, write_archive
from helpers.ports import free_port
from judge.commands.app import app as wabe
from judge.records.tasks import Task
from judge.scenario.sources import scenario_toml
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError


@pytest.fixture
def app() -> typer.Typer:
    return wabe


def record(number: int) -> dict[str, object]:
    return {
        "task_id": f"t{number}",
        "confirmed_task": f"Do {number}.",
        "website": "https://www.example.org/",
        "reference_length": 3,
        "level": ("easy", "medium", "hard")[number % 3],
    }


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps([record(number) for number in range(12)]))
    return str(path)


def scenario_file(tmp_path: Path, *tasks: Task) -> str:
    path = tmp_path / "scenario.toml"
    path.write_text(scenario_toml(tasks, participant="gemini"))
    return str(path)


def a_task(task_id: str = "t", website: str = "https://www.example.org/") -> Task:
    return Task(task_id=task_id, website=website, task=f"Do {task_id}.", level="easy")


def run(app: typer.Typer, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["tasks", *arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def test_a_sample_is_toml_that_a_seed_repeats(app: typer.Typer, dataset: str) -> None:
    output = run(app, "sample", "--from", dataset, "--count", "2", "--seed", "42")
    assert [task["level"] for task in tomli.loads(output)["tasks"]] == ["easy"] * 2 + ["medium"] * 2 + ["hard"] * 2
    assert output == run(app, "sample", "--from", dataset, "--count", "2", "--seed", "42")


def test_a_sample_without_a_seed_prints_the_one_it_used(app: typer.Typer, dataset: str) -> None:
    output = run(app, "sample", "--from", dataset)
    seed = output.splitlines()[0].rpartition(" ")[2]
    assert run(app, "sample", "--from", dataset, "--seed", seed) == output


def test_a_sample_may_come_from_a_scenario(app: typer.Typer, tmp_path: Path) -> None:
    assert tomli.loads(run(app, "sample", "--from", scenario_file(tmp_path, a_task())))["tasks"][0]["task_id"] == "t"


def test_an_import_is_a_scenario_that_loads(app: typer.Typer, dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    assert "4 tasks" in run(app, "import", dataset, "--output", str(path), "--level", "hard")
    assert [task.task_id for task in load_scenario(path).tasks] == ["t2", "t5", "t8", "t11"]


@pytest.mark.parametrize(
    "arguments", [("--tasks", "click-test"), ("--seeds", "0"), ("--success", "positive"), ("{dataset}", "click-test")]
)
def test_names_and_seeds_are_not_for_other_datasets(app: typer.Typer, dataset: str, arguments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"--(tasks|seeds|success) is for "):
        run(app, "import", *(each.format(dataset=dataset) for each in arguments))


def test_an_import_without_an_output_is_printed(app: typer.Typer, dataset: str) -> None:
    assert len(tomli.loads(run(app, "import", dataset, "--limit", "2"))["tasks"]) == 2


def test_an_import_overwrites_only_by_force(app: typer.Typer, dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="exists already"):
        run(app, "import", dataset, "--output", str(path))
    assert path.read_text() == "mine"
    run(app, "import", dataset, "--output", str(path), "--force")
    assert len(load_scenario(path).tasks) == 12


def test_an_import_that_cannot_be_written_is_named(app: typer.Typer, dataset: str) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.json/x\.toml: .*another --output"):
        run(app, "import", dataset, "--output", dataset + "/x.toml")


FROZEN = """
[[sites]]
name = "shop"
endpoint = "https://shop.example/"
archive = "shop.pages"
"""


def test_a_frozen_site_needs_its_archive(app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_pages(monkeypatch)
    path = scenario_file(tmp_path, a_task(website=SHOP))
    Path(path).write_text(Path(path).read_text() + FROZEN)
    assert "no such archive" in run(app, "validate", path, code=2)
    write_archive(tmp_path / "shop.pages", {SHOP: "x"}, t="its walk has a decisive miss")
    assert "task t will not be played: shop.pages: its walk has a decisive miss" in run(app, "validate", path)
    write_archive(tmp_path / "shop.pages", {"http://shop.example/": "x"})
    assert "it was recorded over http, not https" in run(app, "validate", path, code=2)


def test_only_needs_an_archive_with_two_plays(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_pages(monkeypatch)
    check = {"kind": "request", "method": "POST", "url": "/order", "only": True}
    task = Task.model_validate({**a_task(website=SHOP).model_dump(), "checks": [check]})
    path = scenario_file(tmp_path, task)
    Path(path).write_text(Path(path).read_text() + FROZEN)
    write_archive(tmp_path / "shop.pages", {SHOP: "x"})
    assert ", task t: check 1: the archive holds one play" in run(app, "validate", path, code=2)


def test_a_valid_file_is_reported_as_valid(app: typer.Typer, tmp_path: Path) -> None:
    assert run(app, "validate", scenario_file(tmp_path, a_task())).endswith("scenario.toml: valid, 1 task\n")


def test_statistics_come_with_v(app: typer.Typer, tmp_path: Path) -> None:
    path = scenario_file(tmp_path, a_task())
    assert "levels: easy 1, medium 0, hard 0, unknown 0" in run(app, "validate", "-v", path)
    assert "levels" not in run(app, "validate", path)


def test_all_mistakes_of_all_files_are_shown(app: typer.Typer, tmp_path: Path) -> None:
    fine = scenario_file(tmp_path, a_task())
    (tmp_path / "bad.toml").write_text("[[tasks]]\nlevel = 3\n[[tasks]]\nx = 1\n")
    output = run(app, "validate", str(tmp_path / "bad.toml"), str(tmp_path / "none.toml"), fine, code=2)
    assert "[[tasks]] #1" in output
    assert "[[tasks]] #2" in output
    assert "none.toml: No such file" in output
    assert "scenario.toml: valid" in output


def test_repeated_tasks_are_noted(app: typer.Typer, tmp_path: Path) -> None:
    path = scenario_file(tmp_path, a_task(), a_task().model_copy(update={"task_id": "u"}))
    assert "note: task u repeats the words of t" in run(app, "validate", path)


def test_an_expired_log_in_is_noted(app: typer.Typer, tmp_path: Path) -> None:
    cookie = {"name": "id", "value": "v", "domain": "www.example.org", "expires": 1}
    (tmp_path / "login.json").write_text(json.dumps({"cookies": [cookie]}))
    path = scenario_file(tmp_path, a_task().model_copy(update={"storage_state": "login.json"}))
    assert "note: storage_state of task t: 1 of 1 cookie expired: 'id'" in run(app, "validate", path)


def test_an_unreachable_host_is_a_mistake_only_when_checked(app: typer.Typer, tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        path = scenario_file(tmp_path, a_task(website=f"http://127.0.0.1:{listener.getsockname()[1]}/"))
        assert "valid" in run(app, "validate", path)
        assert "cannot be reached" in run(app, "validate", "--check", path, code=2)


def test_a_site_that_the_runner_starts_is_not_checked(app: typer.Typer, tmp_path: Path) -> None:
    path = Path(scenario_file(tmp_path, a_task(website="http://127.0.0.1:9/")))
    path.write_text('[[sites]]\nname = "s"\nendpoint = "http://127.0.0.1:9"\ncmd = "serve"\n' + path.read_text())
    output = run(app, "validate", "--check", str(path))
    assert "valid" in output
    assert "not checked, because only a run starts it: s at http://127.0.0.1:9" in output


def test_a_check_says_which_websites_it_reached(app: typer.Typer, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        host = f"http://127.0.0.1:{server.server_port}"
        path = scenario_file(tmp_path, a_task(website=f"{host}/missing"))
        assert f"reached 1 of 1 website: {host}\n" in run(app, "validate", "--check", path)
        server.shutdown()
        thread.join()


def test_a_check_that_can_never_pass_is_named_with_the_line_of_its_task(app: typer.Typer, tmp_path: Path) -> None:
    path = Path(scenario_file(tmp_path, a_task("s"), a_task()))
    text = path.read_text().replace("max_steps = 15", "max_steps = 15\nrecord_network = false")
    path.write_text(text + 'checks = [{ kind = "request", method = "POST", url = "/x" }]\n')
    line = path.read_text()[: path.read_text().rindex("[[tasks]]")].count("\n") + 1
    assert f"{path}: line {line}, task t: check 1: requests are not recorded" in run(app, "validate", str(path), code=2)


def test_an_excluded_task_does_not_shift_the_lines_of_the_others(app: typer.Typer, tmp_path: Path) -> None:
    path = Path(scenario_file(tmp_path, a_task("s"), a_task()))
    first, second = path.read_text().rsplit("[[tasks]]", 1)
    path.write_text(f'{first}excluded = "closed"\n\n[[tasks]]{second}reference = "missing.toml"\n')
    line = path.read_text()[: path.read_text().rindex("[[tasks]]")].count("\n") + 1
    assert f"{path}: line {line}, task t: reference 'missing.toml'" in run(app, "validate", str(path), code=2)


def checked(task_id: str, website: str, *checks: dict[str, Any]) -> Task:
    return Task.model_validate({"task_id": task_id, "website": website, "task": f"Do {task_id}.", "checks": checks})


@pytest.mark.e2e
def test_checks_that_pass_when_nothing_is_done_and_tasks_that_cannot_be_tried_are_reported(
    app: typer.Typer, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("<title>Shop</title><h1>Welcome</h1><p>Empty cart</p>")
    (tmp_path / "note.html").write_text("<title>Note</title><main contenteditable><h1>To do</h1><p>Eggs</p></main>")
    port = free_port()
    website, nowhere = f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{free_port()}/"
    welcome = {"kind": "element", "element": 'heading "Welcome"'}
    done = {"kind": "page", "url": "/done"}
    answer = {"kind": "answer", "contains": "cart", "not": True}
    slip = {"kind": "probe", "expression": "document.(", "expected": 1}
    path = Path(
        scenario_file(
            tmp_path,
            checked("vain", website, welcome),
            checked("half", website, welcome, done, answer),
            a_task(),
            checked("gone", nowhere, done),
            checked("slip", website, slip),
            checked("note", f"{website}note.html", done),
        )
    )
    cmd = f"python -m http.server {port} --bind 127.0.0.1 --directory {{scenario_dir}}"
    path.write_text(
        f'[[sites]]\nname = "shop"\nendpoint = "{website}"\ncmd = "{cmd}"\n'
        + path.read_text().replace("[config]\n", "[config]\nmax_task_retries = 0\n")
    )
    vain, gone, slipped, *notes = run(app, "validate", "--try", str(path), code=2).splitlines()
    assert vain == f"{path}: task vain: all its checks already pass when nothing is done"
    assert gone.startswith(f"{path}: task gone cannot be tried: ")
    assert slipped.startswith(f"{path}: task slip: the expression 'document.(' is not JavaScript: SyntaxError: ")
    assert notes == [
        f'{path}: note: task vain, check 1 already passes: element heading "Welcome"',
        f'{path}: note: task half, check 1 already passes: element heading "Welcome"',
        f"{path}: note: task note: most of its first page is inside an editor, which is evidence only with"
        " editable = true; requests that something in it starts are none",
    ]


def test_checks_that_a_recording_cannot_decide_are_mistakes(app: typer.Typer, tmp_path: Path) -> None:
    check = {"kind": "request", "method": "POST", "url": "/order", "post_data": {"note": "s3cr3t!"}}
    path = Path(scenario_file(tmp_path, checked("t", "http://shop.test/", check)))
    text = path.read_text()
    path.write_text(re.sub(r"^\[config\]$", "[config]\nrecord_network = false", text, count=1, flags=re.MULTILINE))
    assert "task t: check 1: requests are not recorded: remove record_network = false" in run(
        app, "validate", str(path), code=2
    )
    path.write_text(re.sub(r"^\[config\]$", '[config]\nsecrets = ["s3cr3t!"]', text, count=1, flags=re.MULTILINE))
    completed = run(app, "validate", str(path), code=2)
    assert "check 1: a value that it expects is listed in secrets" in completed
    assert "s3cr3t!" not in completed


def test_a_secret_that_is_too_short_is_refused_without_showing_it(app: typer.Typer, tmp_path: Path) -> None:
    path = Path(scenario_file(tmp_path, a_task()))
    path.write_text(
        re.sub(r"^\[config\]$", '[config]\nsecrets = ["xyz"]', path.read_text(), count=1, flags=re.MULTILINE)
    )
    completed = run(app, "validate", str(path), code=2)
    assert "secrets" in completed
    assert "3 characters, where a secret has 4 to 1000" in completed
    assert "xyz" not in completed
