import hashlib
from functools import partial
from pathlib import Path

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from helpers.paths import ROOT
from helpers.scenario.texts import AGENTS, GOOD, value_or_complaint
from judge.config import RunConfig
from judge.records.tasks import Task
from judge.scenario.toml import bundled_tasks, idle_sites, load_scenario, parse_scenario, select, shard
from shared.errors import ConfigError

SHARED = Path(__file__).parents[4] / "shared" / "data"


def tasks_of(count: int) -> tuple[Task, ...]:
    levels = ("easy", "medium", "hard")
    return tuple(
        Task(task_id=f"t{n}", website="https://example.org/", task="x", level=levels[n % 3]) for n in range(count)
    )


def test_a_scenario_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(GOOD)
    scenario = load_scenario(path)
    assert scenario.path == path
    assert scenario.source_checksum == hashlib.sha256(GOOD.encode()).hexdigest()
    assert scenario.green_agent.role == "green_agent"
    assert scenario.green_agent.endpoint == "http://127.0.0.1:9009"
    assert [agent.role for agent in scenario.participants] == ["white_agent"]
    assert scenario.participants[0].agentbeats_id == "id-1"
    assert scenario.sites[0].cmd == "python site.py 9100"
    assert scenario.config.max_steps == 7
    assert [task.task_id for task in scenario.tasks] == ["a-1", "b_2"]
    assert scenario.tasks[0].key_points == ("red shoes are shown",)
    assert scenario.tasks[1].level is None


def test_the_published_leaderboard_form_is_accepted() -> None:
    path = SHARED / "leaderboard_scenario_example.toml"
    if not path.exists():
        pytest.skip("the published example is not on this machine")
    scenario = load_scenario(path)
    assert scenario.participants[0].role == "white_agent"
    assert scenario.green_agent.endpoint is None
    assert scenario.green_agent.env == {"GOOGLE_API_KEY": "${GOOGLE_API_KEY}"}
    assert len(scenario.tasks) == 3


def test_a_bundled_set_may_stand_for_the_tasks() -> None:
    scenario = parse_scenario((AGENTS + '[config]\nscenario = "demo"\n').encode(), Path("s.toml"))
    assert scenario.tasks == ()
    assert scenario.config.scenario == "demo"


def test_selection_filters_by_level_and_id_then_limits() -> None:
    tasks = tasks_of(9)
    assert [task.task_id for task in select(tasks, level="easy", limit=2)] == ["t0", "t3"]
    assert [task.task_id for task in select(tasks, ids=["t5", "t1"])] == ["t1", "t5"]
    assert select(tasks) == tasks


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"level": "esay"}, "did you mean 'easy'"),
        ({"limit": 0}, "no task is left"),
        ({"ids": ["t10"]}, "'t10' is not in this scenario"),
        ({"ids": ["t1"], "level": "easy"}, "no task is left"),
    ],
)
def test_a_selection_that_cannot_be_made_is_an_error(options: dict[str, object], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        select(tasks_of(3), **options)  # type: ignore[arg-type]


@given(count=st.integers(0, 40), num=st.integers(1, 12))
def test_shards_are_disjoint_even_and_complete(count: int, num: int) -> None:
    tasks = tasks_of(count)
    slices = [shard(tasks, index, num) for index in range(num)]
    assert sorted(task.task_id for part in slices for task in part) == sorted(task.task_id for task in tasks)
    assert max(map(len, slices)) - min(map(len, slices)) <= 1


@pytest.mark.parametrize(("instances", "covered"), [(None, 5), (4, 4), (1, 1), (9, 5)])
def test_the_shards_together_have_as_many_tasks_as_are_asked_for(instances: int | None, covered: int) -> None:
    tasks = tasks_of(5)
    slices = [shard(tasks, index, 2, instances=instances) for index in range(2)]
    assert sorted((task.task_id for part in slices for task in part), key=str) == [f"t{n}" for n in range(covered)]


@pytest.mark.parametrize(("index", "num"), [(-1, 2), (2, 2), (0, 0)])
def test_a_shard_outside_the_shards_is_an_error(index: int, num: int) -> None:
    with pytest.raises(ValidationError, match=r"shard_index|num_shards"):
        RunConfig.model_validate({"shard_index": index, "num_shards": num})


@given(st.binary(max_size=200))
def test_any_bytes_are_read_as_a_scenario_or_refused(content: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_scenario(content, Path("s.toml"))
    assert str(caught.value).isprintable()


@given(st.data())
def test_a_good_scenario_with_any_damage_is_read_or_refused(data: st.DataObject) -> None:
    lines = GOOD.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(st.integers(0, len(lines) - 1))
        lines[where] = data.draw(st.sampled_from(["", "[config]", "x = 1", lines[where][:-1], "[[tasks]]", "task = 3"]))
    content = "\n".join(lines)
    scenario, complaint = value_or_complaint(partial(parse_scenario, content.encode(), Path("s.toml")))
    assert complaint.isprintable()
    assert complaint or len(scenario.tasks) == len(tomli.loads(content)["tasks"])


def test_a_bundled_set_is_found_by_the_name_of_its_folder() -> None:
    assert len(bundled_tasks("demo", ROOT / "scenarios")) >= 10


@pytest.mark.parametrize("name", ["nope", "", "..", "../scenarios/demo"])
def test_an_unknown_set_is_refused_and_the_known_ones_are_named(name: str) -> None:
    with pytest.raises(ConfigError, match=r"unknown task set.*demo"):
        bundled_tasks(name, ROOT / "scenarios")


SITES = "".join(f'[[sites]]\nname = "{name}"\nendpoint = "http://127.0.0.1:91{n}"\n' for n, name in enumerate("abcd"))
TASKS = """
[[tasks]]
task_id = "a"
website = "http://127.0.0.1:910/start"
task = "Look."

[[tasks]]
task_id = "b"
website = "http://127.0.0.1:911/"
start_urls = ["http://127.0.0.1:911/", "http://127.0.0.1:910/"]
allowed_sites = ["127.0.0.1:910"]
task = "Look."

[[tasks]]
task_id = "c"
website = "http://127.0.0.1:912/"
task = "Look."
"""


@pytest.mark.parametrize(("selection", "idle"), [("a", "bc"), ("b", "c"), ("c", "ab"), ("abc", "")])
def test_sites_that_only_other_tasks_are_about_are_idle(selection: str, idle: str) -> None:
    scenario = parse_scenario((AGENTS + SITES + TASKS).encode(), Path("s.toml"))
    # No task is about `d`: it may serve the other sites.
    assert idle_sites(scenario, [task for task in scenario.tasks if task.task_id in selection]) == set(idle)
