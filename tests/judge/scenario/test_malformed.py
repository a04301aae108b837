from pathlib import Path

import pytest

from helpers.scenario.texts import AGENTS, TASK
from judge.scenario.toml import load_scenario, parse_scenario
from shared.errors import ConfigError


def agents(more: str) -> str:
    """A scenario with these lines below its participant."""
    return f"{AGENTS}{more}\n{TASK}"


def config(line: str) -> str:
    return agents(f"[config]\n{line}")


def task(more: str) -> str:
    """A scenario with these lines in its task."""
    return f"{AGENTS}{TASK}{more}\n"


MALFORMED = {
    "empty file": ("", "s.toml: empty (add [green_agent]"),
    "no green agent": ("tasks = []", "key 'green_agent': missing"),
    "not TOML": ("[green_agent\n", "line 1, column 13: not TOML"),
    "value missing": ("a = \n", "line 1, column 5: not TOML: Invalid value"),
    "quotes in quotes": ('a = "b "c""', "write a text that contains double quotes in 'single quotes'"),
    "backslash": (r'a = "\d"', "write patterns in 'single quotes'"),
    "curly quotes": ("a = \u201cb\u201d", "write straight quotes"),
    "capital": ("a = True", "write true and false in lower case"),
    "bare text": ("a = https://h", "write texts in quotes"),
    "colon": ("a: 1", "write = between a key and its value"),
    "JSON": ('{"tasks": []}', "line 1, column 1: not TOML"),
    "huge number": ("a = " + "1" * 5000, "not usable TOML"),
    "nested too deeply": ("a = " + "[" * 50_000, "nested too deeply"),
    "no participants": (
        "[green_agent]\n" + TASK,
        "key 'participants': missing (add participants = [{ role = \"white_agent\"",
    ),
    "participants in one bracket": (
        '[green_agent]\n[participants]\nrole="p"\n' + TASK,
        "a table of 1 entry is not a list (write a list, or in TOML [[participants]]",
    ),
    "role twice": (agents('[[participants]]\nrole = "p"'), "'p' is the name of two agents or sites"),
    "endpoint without scheme": (agents('endpoint = "127.0.0.1:9019"'), "does not begin with http://"),
    "endpoint without host": (agents('endpoint = "http://:80"'), "'http://:80' has no host"),
    "endpoint with a wild port": (agents('endpoint = "http://h:99999"'), "is not an address"),
    "endpoint with password": (
        agents('endpoint = "http://me:pw@h:1"'),
        "contains a user name or password (leave it out",
    ),
    "endpoint with a query": (agents('endpoint = "http://h:1/?a=b"'), "has a query"),
    "cmd without endpoint": (agents('cmd = "run"'), "key 'endpoint': missing"),
    "cmd without port": (agents('cmd = "run"\nendpoint = "http://h"'), "'http://h' has no port"),
    "cmd with open quote": (agents('cmd = "run \'x"\nendpoint = "http://h:1"'), "no closing quotation"),
    "env no table": (agents('env = "A=1"'), "key 'env': not a table"),
    "shared port": (
        '[green_agent]\nendpoint = "http://127.0.0.1:9"\n[[participants]]\nrole = "p"\n'
        'endpoint = "http://localhost:9/"\n' + TASK,
        "'p' and 'green_agent' share 'http://localhost:9/' (give each agent",
    ),
    "two names for a participant": (
        agents('name = "q"'),
        "[[participants]] #1, key 'role': role is 'p', but name is 'q' (keep one of the two keys)",
    ),
    "unknown config key": (config("max_step = 3"), "[config], key 'max_step': unknown key (did you mean 'max_steps'?)"),
    "reset by another site": (
        agents('[config.site_resets]\n"http://h:1" = "http://h:2/reset"'),
        "'http://h:2/reset' is not an address of 'http://h:1'",
    ),
    "config value of another type": (
        config('max_steps = "15"'),
        "[config], key 'max_steps': '15' is not a whole number",
    ),
    "config value out of range": (config("max_steps = 0"), "key 'max_steps': 0 is less than 1"),
    "misspelt choice": (config('judge_method = "webjudg"'), "did you mean 'webjudge'?"),
    "limits that do not nest": (config("step_timeout_s = 5000"), "step_timeout_s must be less than task_timeout_s"),
    "an attempt too short for its pauses": (
        config("step_delay = 60\nattempt_timeout_s = 2700"),
        "attempt_timeout_s must be more than task_timeout_s plus max_steps times step_delay",
    ),
    "locale by name": (
        config('locale = "german"'),
        "key 'locale': 'german' is not a language tag (BCP 47) (write \"en-US\"",
    ),
    "time zone misspelt": (
        config('timezone = "Europe/Berlim"'),
        "key 'timezone': 'Europe/Berlim' is not a time zone (did you mean 'Europe/Berlin'?)",
    ),
    "time zone of no place": (config('timezone = "Mars"'), "key 'timezone': 'Mars' is not a time zone (write UTC)"),
    "place beyond the pole": (
        config("geolocation = { latitude = 91, longitude = 0 }"),
        "[config.geolocation], key 'latitude': 91",
    ),
    "user agent on two lines": (config('user_agent = "a\\nb"'), "key 'user_agent'"),
    "shard outside": (config("shard_index = 2\nnum_shards = 2"), "shard_index must be less"),
    "no tasks": (AGENTS, "key 'tasks': missing"),
    "task id with a slash": (AGENTS + TASK.replace('"t"', '"../t"'), "'../t' is not usable"),
    "task id twice": (
        agents('[[tasks]]\ntask_id = "t"\nwebsite = "https://example.org/"\ntask = "x"'),
        "[[tasks]] #2, key 'task_id': 't' is already the id of an earlier task",
    ),
    "task without words": (AGENTS + TASK.replace('"x"', '"  "'), "[[tasks]] #1, key 'task': empty"),
    "task too long": (AGENTS + TASK.replace('"x"', '"' + "x" * 10_001 + '"'), "10001 characters, more than 10000"),
    "task with control characters": (
        AGENTS + TASK.replace('"x"', '"a\\u0000b"'),
        "contains a character that is not text",
    ),
    "unknown level": (task('level = "esay"'), "'esay' is not a known value (did you mean 'easy'?)"),
    "key points no list": (task('key_points = "one"'), "'one' is not a list (write a list: [\"…\"])"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_scenario_gives_one_line_with_file_key_and_remedy(name: str) -> None:
    content, expected = MALFORMED[name]
    with pytest.raises(ConfigError) as caught:
        parse_scenario(content.encode(), Path("s.toml"))
    line = str(caught.value)
    assert line.startswith("s.toml: ")
    assert expected in line
    assert caught.value.remedy
    assert len(line) < 600
    assert line.isprintable()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml: No such file or directory \(give the path"):
        load_scenario(tmp_path / "absent.toml")


def test_a_folder_is_not_a_scenario(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        load_scenario(tmp_path)


def test_bytes_that_are_not_text_are_reported_with_their_line() -> None:
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        parse_scenario(b"[green_agent]\n\xff\xfe", Path("s.toml"))


def test_an_error_never_shows_a_secret_of_env() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_scenario((AGENTS + "env = { A = 123456789 }\n" + TASK).encode(), Path("s.toml"))
    assert "123456789" not in str(caught.value)
