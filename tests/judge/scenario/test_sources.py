import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from judge.records.tasks import Task
from judge.scenario.checks import repeated
from judge.scenario.sources import (
    DATASET,
    hub_tasks,
    reached,
    read_dataset,
    sample,
    scenario_toml,
    statistics,
    tasks_toml,
)
from judge.scenario.toml import parse_scenario, problems_of
from shared.errors import ConfigError

RECORD: dict[str, Any] = {
    "task_id": "ab12_110325",
    "confirmed_task": "Find the cheapest flight.",
    "website": "https://www.example.org/",
    "reference_length": 7,
    "level": "medium",
}
HEAD = '[green_agent]\n[[participants]]\nrole = "p"\n'


def tasks_of(count: int, **changes: Any) -> tuple[Task, ...]:
    levels = ("easy", "medium", "hard")
    return tuple(
        Task(**{"task_id": f"t{n}", "website": "https://e.org/", "task": f"Do {n}.", "level": levels[n % 3], **changes})
        for n in range(count)
    )


def test_a_sample_has_so_many_of_each_level() -> None:
    sampled = sample(tasks_of(30), count=4, seed=1)
    assert [task.level for task in sampled] == ["easy"] * 4 + ["medium"] * 4 + ["hard"] * 4
    assert len({task.task_id for task in sampled}) == 12


def test_the_same_seed_draws_the_same_whatever_the_order() -> None:
    tasks = tasks_of(30)
    assert sample(tasks, count=3, seed=7) == sample(tasks[::-1], count=3, seed=7)


def test_another_seed_draws_others() -> None:
    assert len({sample(tasks_of(30), count=3, seed=seed) for seed in range(5)}) > 1


def test_a_level_with_too_few_tasks_gives_all_it_has() -> None:
    assert len(sample(tasks_of(4), count=3, seed=1)) == 4


def test_tasks_without_a_level_are_drawn_as_well() -> None:
    assert len(sample(tasks_of(5, level=None), count=2, seed=1)) == 2


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(TEXTS)
def test_any_text_survives_as_a_toml_string(text: str) -> None:
    (task,) = tomli.loads(tasks_toml([Task(task_id="t", website="https://e.org/", task=text)]))["tasks"]
    assert task["task"] == text


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40).filter(
    lambda x: x.strip() == x
)
TASKS = st.builds(
    Task,
    task_id=st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True),
    website=st.sampled_from(["https://e.org/", "http://127.0.0.1:9/a?b=\"c'"]),
    task=WORDS,
    level=st.sampled_from(["easy", "medium", "hard", None]),
    reference_length=st.none() | st.integers(1, 10_000),
    key_points=st.lists(WORDS, max_size=3).map(tuple),
)


@pytest.mark.slow
@given(st.lists(TASKS, min_size=1, max_size=4, unique_by=lambda task: task.task_id))
def test_a_written_scenario_is_read_back(tasks: list[Task]) -> None:
    scenario = parse_scenario(scenario_toml(tasks, participant="gemini").encode(), Path("s.toml"))
    assert scenario.tasks == tuple(tasks)
    assert scenario.participants[0].cmd == "wabe participant gemini --host 127.0.0.1 --port 9019"


def test_only_what_a_task_has_is_written() -> None:
    assert tasks_toml([Task(task_id="t", website="https://e.org/", task='Say "hi".')]) == (
        '[[tasks]]\ntask_id = "t"\nwebsite = "https://e.org/"\ntask = "Say \\"hi\\"."\n'
    )


@pytest.mark.parametrize("name", ['x"; rm -rf', "gemnini"])
def test_a_participant_that_nobody_has_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown participant"):
        scenario_toml(tasks_of(1), participant=name)


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([RECORD], indent=2),
        json.dumps(RECORD) + "\n \n",
        json.dumps(RECORD, indent=2),
        "\ufeff" + json.dumps([RECORD]),
        json.dumps({"data": [RECORD]}),
        json.dumps({"version": 1, "tasks": [RECORD]}, indent=2),
        json.dumps({"features": [], "rows": [{"row_idx": 0, "row": RECORD}]}),
    ],
)
def test_a_dataset_is_read_in_each_of_its_layouts(content: str) -> None:
    (task,) = read_dataset(content.encode(), "d.json")
    assert (task.task_id, task.task, task.level, task.reference_length) == (
        "ab12_110325",
        "Find the cheapest flight.",
        "medium",
        7,
    )


def test_a_length_that_came_as_a_double_is_whole() -> None:
    assert read_dataset(json.dumps([RECORD | {"reference_length": 7.0}]).encode(), "d")[0].reference_length == 7


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "no tasks"),
        ("[]", "no tasks"),
        ("[", "not JSON"),
        ("x", "not JSON: Expecting value in 'x'"),
        ("[" * 100_000, "nested too deeply"),
        ("[3]", "record #1: 3 is not a table"),
        (json.dumps([RECORD, RECORD]), "record #2, key 'task_id': 'ab12_110325' is already the id of an earlier task"),
        (json.dumps([RECORD | {"level": "mediun"}]), "did you mean 'medium'?"),
        (json.dumps([{**RECORD, "confirmed_task": None}]), "key 'task': missing"),
        (json.dumps([RECORD | {"website": "example.org"}]), "does not begin with http"),
    ],
)
def test_a_bad_dataset_is_one_line(content: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_dataset(content.encode(), "d.json")
    assert str(caught.value).startswith("d.json: ")
    assert expected in str(caught.value)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_dataset_or_refused(content: bytes) -> None:
    with pytest.raises(ConfigError):
        read_dataset(content, "d.json")


def test_a_good_file_has_no_problems() -> None:
    scenario, problems = problems_of(scenario_toml(tasks_of(3), participant="gemini").encode(), Path("s.toml"))
    assert problems == []
    assert scenario is not None


def test_every_bad_task_is_named_in_one_go() -> None:
    bad = tasks_toml(tasks_of(2)) + '[[tasks]]\ntask_id = "t0"\nwebsite = "x"\n[[tasks]]\nlvl = 1\n'
    again = tasks_toml(tasks_of(1))
    scenario, problems = problems_of((HEAD + bad + again).encode(), Path("s.toml"))
    assert scenario is None
    assert problems == [
        "s.toml: line 17, task t0: [[tasks]] #3, key 'website': 'x' does not begin with http:// or https://"
        " (write it like https://www.example.org/)",
        "s.toml: line 15, task t0: [[tasks]] #3, key 'task': missing (add task = \"Find …\")",
        "s.toml: line 19: [[tasks]] #4, key 'lvl': unknown key (did you mean 'level'?)",
        "s.toml: line 21, task t0: [[tasks]] #5, key 'task_id': 't0' is already the id of an earlier task"
        " (make ids unique)",
    ]


def test_problems_beside_the_tasks_are_named_too() -> None:
    _, problems = problems_of(("[green_agnt]\n" + tasks_toml(tasks_of(1, level=None))).encode(), Path("s.toml"))
    assert len(problems) == 1
    assert "did you mean 'green_agent'?" in problems[0]


@pytest.mark.parametrize("content", [b"[", b"tusks = 3", b"\xff"])
def test_what_is_not_a_scenario_at_all_is_one_problem(content: bytes) -> None:
    assert len(problems_of(content, Path("s.toml"))[1]) == 1


def test_every_table_that_is_missing_or_wrong_is_named() -> None:
    keys = [problem.partition(": ")[2].rpartition(": ")[0] for problem in problems_of(b"tasks = 3", Path("s.toml"))[1]]
    assert keys == ["key 'green_agent'", "key 'participants'", "line 1: key 'tasks'"]


def test_a_task_that_repeats_another_is_noted() -> None:
    tasks = [*tasks_of(2), Task(task_id="x", website="https://e.org/", task="do  1.")]
    assert repeated(tasks) == ["task x repeats the words of t1"]


def test_statistics_count_levels_websites_and_lengths() -> None:
    tasks = [*tasks_of(4), *tasks_of(1, level=None, website="https://f.org/", reference_length=9)]
    assert statistics(tasks) == [
        "tasks: 5",
        "levels: easy 2, medium 1, hard 1, unknown 1",
        "websites: 2",
        "  4 x https://e.org/",
        "  1 x https://f.org/",
        "reference lengths: 9 to 9, median 9, known for 1",
    ]


def fake_hub(records: Any) -> ModuleType:
    hub = ModuleType("datasets")

    def load_dataset(name: str, *, split: str) -> Any:
        assert (name, split) == (DATASET, "test")
        if isinstance(records, Exception):
            raise records
        return records

    hub.load_dataset = load_dataset  # type: ignore[attr-defined]
    return hub


def test_the_hub_gives_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", fake_hub([RECORD]))
    assert [task.task_id for task in hub_tasks()] == ["ab12_110325"]


def test_a_hub_that_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", fake_hub(OSError("gated\nlog in")))
    with pytest.raises(ConfigError, match=r"cannot be loaded: OSError: \['gated'\] \(ask for access"):
        hub_tasks()


def test_without_the_package_a_file_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"'datasets' is not installed \(give the dataset's JSON file"):
        hub_tasks()


class Site:
    """An HTTP server on loopback that counts the requests and how many are open at once."""

    def __init__(self, status: str = "200 OK", *, answers: bool = True) -> None:
        self.status = status
        self.answers = answers
        self.requests = 0
        self.open = 0
        self.most = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            if not self.answers:
                # Silent until the client hangs up.
                await reader.read()
            writer.write(f"HTTP/1.1 {self.status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
            await writer.drain()
        finally:
            self.open -= 1
            writer.close()


@pytest.fixture
async def served() -> AsyncIterator[tuple[Site, int]]:
    site = Site()
    server = await asyncio.start_server(site.handle, "127.0.0.1", 0)
    yield site, server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


async def test_a_site_that_answers_is_reachable_and_asked_once(served: tuple[Site, int]) -> None:
    site, port = served
    host = f"http://127.0.0.1:{port}"
    assert await reached([f"{host}/a", f"{host}/b"]) == {host: None}
    assert site.requests == 1


@pytest.mark.parametrize("status", ["403 Forbidden", "500 Oops"])
async def test_any_answer_means_that_the_host_is_there(served: tuple[Site, int], status: str) -> None:
    site, port = served
    site.status = status
    assert await reached([f"http://127.0.0.1:{port}/"]) == {f"http://127.0.0.1:{port}": None}


async def test_a_host_that_refuses_is_named_with_the_reason() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{listener.getsockname()[1]}"
        lost = await reached([f"{host}/page"])
    assert list(lost) == [host]
    assert lost[host]


async def test_a_host_that_hangs_is_given_up(served: tuple[Site, int]) -> None:
    site, port = served
    site.answers = False
    assert await reached([f"http://127.0.0.1:{port}/"], timeout_s=0.2) == {
        f"http://127.0.0.1:{port}": "it did not answer in time"
    }


async def test_no_more_hosts_are_asked_at_once_than_allowed(served: tuple[Site, int]) -> None:
    site, port = served
    site.answers = False
    hosts = [f"http://127.0.0.{n}:{port}/" for n in range(1, 7)]
    servers = [await asyncio.start_server(site.handle, f"127.0.0.{n}", port) for n in range(2, 7)]
    try:
        await reached(hosts, at_once=2, timeout_s=0.2)
    finally:
        for server in servers:
            server.close()
    assert site.most == 2
