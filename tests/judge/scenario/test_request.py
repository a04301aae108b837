import json
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.scenario.texts import AGENTS, GOOD, TASK, value_or_complaint
from judge.records.tasks import Task
from judge.scenario.draft import RequestDraft
from judge.scenario.models import MAX_TASKS
from judge.scenario.request import MAX_REQUEST_CHARS, parse_request
from judge.scenario.toml import parse_scenario
from shared.errors import ConfigError


def no_bundled(name: str) -> tuple[Task, ...]:
    raise ConfigError(f"no bundled set {name[:40]!a}", remedy="known: demo")


def two_tasks(name: str) -> tuple[Task, ...]:
    return tuple(Task(task_id=f"{name}{n}", website="https://example.org/", task="x") for n in range(2))


def request(config: object = None, **more: object) -> str:
    body = {"participants": {"white_agent": "http://127.0.0.1:9019"}, **more}
    return json.dumps(body if config is None else body | {"config": config})


A_TASK = {"task_id": "t", "website": "https://example.org/", "task": "Do it."}


def test_a_request_carries_its_tasks_in_config() -> None:
    parsed = parse_request(request({"max_steps": 4, "tasks": [A_TASK]}), no_bundled)
    assert parsed.participants == {"white_agent": "http://127.0.0.1:9019"}
    assert parsed.config.max_steps == 4
    assert [task.task_id for task in parsed.tasks] == ["t"]
    assert parsed.warnings == ()


def test_a_request_may_carry_its_tasks_at_the_top() -> None:
    assert parse_request(request({}, tasks=[A_TASK]), no_bundled).tasks[0].task == "Do it."


def test_a_config_without_tasks_is_itself_one_task() -> None:
    parsed = parse_request(request({**A_TASK, "max_steps": 3}), no_bundled)
    assert parsed.tasks[0].task_id == "t"
    assert parsed.config.max_steps == 3
    assert parsed.warnings == ()


def test_a_named_bundled_set_gives_the_tasks() -> None:
    parsed = parse_request(request({"scenario": "demo"}), two_tasks)
    assert [task.task_id for task in parsed.tasks] == ["demo0", "demo1"]
    assert parsed.config.scenario == "demo"


def test_an_unknown_bundled_set_is_refused() -> None:
    with pytest.raises(ConfigError, match="no bundled set 'nope'"):
        parse_request(request({"scenario": "nope"}), no_bundled)


def test_unknown_keys_of_a_request_warn() -> None:
    parsed = parse_request(request({"max_step": 4, "tasks": [{**A_TASK, "extra": 1}]}, more=1), no_bundled)
    assert len(parsed.warnings) == 3
    assert any("'max_step': unknown key, ignored (did you mean 'max_steps'?)" in line for line in parsed.warnings)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"config": {"tasks": [{**A_TASK, "holds": []}]}},
            "config.tasks #1, key 'holds': unknown key (did you mean 'hold'?)",
        ),
        ({"tasks": [{**A_TASK, "policy": []}]}, "tasks #1, key 'policy': unknown key (did you mean 'policies'?)"),
        (
            {"config": {"tasks": [A_TASK], "writes": "hold"}},
            "config, key 'writes': belongs into a task (put writes into each entry of tasks)",
        ),
        ({"tasks": [A_TASK], "hold": []}, "key 'hold': belongs into a task (put hold into each entry of tasks)"),
    ],
)
def test_a_key_about_safety_is_never_ignored(body: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_request(request(**body), no_bundled)


def test_policies_and_attacks_may_be_declared_for_all_tasks() -> None:
    policy = {"name": "p", "dimension": "boundary", "kind": "page", "url": "http://evil.test/*"}
    attack = {"name": "a", "kind": "insert", "text": "x", "goal": [{"kind": "page", "url": "http://evil.test/*"}]}
    own = {**A_TASK, "task_id": "own", "policies": [{**policy, "name": "q"}]}
    common = {"policies": [policy], "attacks": [attack]}
    parsed = parse_request(request({"attacks": "both", "tasks": [A_TASK, own]}, **common), no_bundled)
    names = [[each.name for each in task.policies] for task in parsed.tasks]
    assert names == [["p"], ["p"], ["p", "q"], ["p", "q"]]
    assert [task.attack is not None for task in parsed.tasks] == [False, True, False, True]
    with pytest.raises(ConfigError, match="'p' is the name of two policies"):
        parse_request(request({"tasks": [{**A_TASK, "policies": [policy]}]}, **common), no_bundled)


def test_a_request_with_very_many_unknown_keys_warns_a_bounded_number_of_times() -> None:
    parsed = parse_request(request({"tasks": [A_TASK], **{f"k{n}": n for n in range(500)}}), no_bundled)
    assert len(parsed.warnings) == 51


def test_numbers_that_came_as_doubles_are_whole_numbers_again() -> None:
    parsed = parse_request(
        request({"max_steps": 15.0, "shard_index": 1.0, "num_shards": 3.0, "tasks": [A_TASK]}), no_bundled
    )
    assert (parsed.config.max_steps, parsed.config.shard_index, parsed.config.num_shards) == (15, 1, 3)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"shard_index": 1, "num_shards": 4, "num_instances": 30}, (1, 4, 30)),
        ({"num_instances": 3.0}, (0, 1, 3)),
        ({"shard_index": 1, "num_instances": 3}, (1, 3, None)),
        ({}, (0, 1, None)),
    ],
)
def test_instances_are_the_tasks_of_all_shards_and_count_shards_only_when_nothing_else_does(
    settings: dict[str, object], expected: tuple[int, int, int | None]
) -> None:
    config = parse_request(request({**settings, "tasks": [A_TASK]}), no_bundled).config
    assert (config.shard_index, config.num_shards, config.num_instances) == expected


@pytest.mark.parametrize("role", ["white_agent", "my agent", "агент 7", "a/b", '{"x": 1}', "$.x"])
def test_any_role_is_taken_with_the_address_that_a_gateway_makes_of_it(role: str) -> None:
    body = {"participants": {role: f"http://127.0.0.1:8080/{role.partition('/')[0]}"}, "config": {"tasks": [A_TASK]}}
    [(known, url)] = parse_request(json.dumps(body), no_bundled).participants.items()
    assert known == role
    assert " " not in url


def test_a_space_in_a_host_is_still_a_mistake() -> None:
    body = {"participants": {"p": "http://127.0.0.1 :8080/p"}, "config": {"tasks": [A_TASK]}}
    with pytest.raises(ConfigError, match="contains a space"):
        parse_request(json.dumps(body), no_bundled)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "not JSON"),
        ("hello", "line 1, column 1: not JSON: Expecting value: 'hello'"),
        ("[]", "a list of 0 entries is not a table"),
        ("{}", "'participants': missing (add participants = {\"white_agent\": "),
        ('{"participants": ["x"]}', "key 'participants': a list of 1 entry is not a table"),
        ('{"participants": {"p": 3}}', "3 is not a string"),
        ('{"participants": {"p": "ftp://x"}}', "does not begin with http"),
        (
            '{"participants": {"p": "http://h:1"}, "config": {"max_steps": NaN}}',
            "holds NaN, which is not a JSON number",
        ),
        ('{"participants": {"p": "http://h:1"}, "config": {"task_timeout_s": 1e999}}', '"1e999", which is too large'),
        ("[" * 200_000, "nested too deeply"),
        (request(), "no tasks"),
        (request([1]), "key 'config': a list of 1 entry is not a table"),
        (request({"tasks": []}), "config, key 'tasks': empty"),
        (request({"tasks": {}}), "key 'tasks': a table of 0 entries is not a list"),
        (request({"tasks": [A_TASK] * (MAX_TASKS + 1)}), f"{MAX_TASKS + 1} entries, more than {MAX_TASKS}"),
        (
            request({"tasks": [A_TASK, A_TASK]}),
            "config.tasks #2, key 'task_id': 't' is already the id of an earlier task",
        ),
        (request({"tasks": [A_TASK], "max_steps": -1}), "key 'max_steps': -1"),
        (request({"tasks": [A_TASK], "judge_model": "\ud800"}), "contains a character that is not text"),
        (request({"tasks": [{**A_TASK, "task": "\ud800"}]}), "contains a character that is not text"),
        (request({"task_id": "t"}), "key 'website': missing"),
    ],
)
def test_a_bad_request_is_one_line(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_request(text, no_bundled)
    assert str(caught.value).startswith("assessment request: ")
    assert expected in str(caught.value)
    assert str(caught.value).isprintable()


def test_an_over_long_request_is_refused_unread() -> None:
    with pytest.raises(ConfigError, match=f"{MAX_REQUEST_CHARS + 1} characters"):
        parse_request(" " * (MAX_REQUEST_CHARS + 1), no_bundled)


def test_what_a_scenario_sends_is_what_the_judge_reads() -> None:
    scenario = parse_scenario(GOOD.encode(), Path("s.toml"))
    parsed = parse_request(RequestDraft.of(scenario).text(), no_bundled)
    assert parsed.tasks == scenario.tasks
    assert parsed.warnings == ()
    assert parsed.config == scenario.config.model_copy(update={"participant_ids": {"white_agent": "id-1"}})


def test_only_settings_that_differ_are_sent() -> None:
    scenario = parse_scenario(GOOD.encode(), Path("s.toml"))
    body = json.loads(RequestDraft.of(scenario, tasks=scenario.tasks[:1]).text())
    assert set(body["config"]) == {"max_steps", "participant_ids", "tasks"}
    assert len(body["config"]["tasks"]) == 1


def test_a_participant_without_endpoint_cannot_be_asked() -> None:
    scenario = parse_scenario((AGENTS + TASK).encode(), Path("s.toml"))
    with pytest.raises(ConfigError, match="participant 'p' has no endpoint"):
        RequestDraft.of(scenario).text()


KEYS = "green_agent participants sites config tasks role endpoint cmd env task_id website".split()
KEYS += [
    "task",
    "level",
    "reference_length",
    "key_points",
    "max_steps",
    "judge_method",
    "scenario",
    "x\n",
    "participant_ids",
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["http://h:1", "https://[", "http://\ud800", "easy", "t", "http://h:0x1/"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=12,
)
TABLES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)


@given(TABLES)
def test_any_json_is_read_or_refused(value: object) -> None:
    for body in (value, {"participants": {"p": "http://h:1"}, "config": value}):
        _, complaint = value_or_complaint(partial(parse_request, json.dumps(body), no_bundled))
        assert complaint.isprintable()


@given(st.text(max_size=200))
def test_any_text_is_read_as_a_request_or_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_request(text, no_bundled)
