"""Variants in scenario files and requests: what may be written, and which tasks a run plays."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.config import RunConfig
from judge.records.attacks import Modes
from judge.records.tasks import Task
from judge.records.variants import BUNDLED, PlayedVariant
from judge.results.run_record import task_digests
from judge.scenario.pairs import declaring, pairs_of, planned, variants_of
from judge.scenario.request import parse_request
from judge.scenario.toml import parse_scenario
from shared.errors import ConfigError

SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"
{top}
[[tasks]]
task_id = "t"
website = "http://shop.test/"
task = "Go."
{more}
"""
OWN = '[[tasks.variants]]\nname = "tiny"\nsettings = { viewport_width = 320 }'


def parsed(more: str = "", top: str = "") -> Task:
    (task,) = parse_scenario(SCENARIO.format(more=more, top=top).encode(), Path("s.toml")).tasks
    return task


def named(*names: str) -> str:
    return "\n".join(f'[[tasks.variants]]\nname = "{name}"' for name in names)


@pytest.mark.parametrize(
    ("variant", "problem"),
    [
        ('name = "sideways"', "sideways is not bundled"),
        ('name = "x"\nsettings = {}', "settings"),
        ('name = "x"\nsettings = { viewport_width = 10 }', "viewport_width"),
        ('name = "x"\nsettings = { timezone = "Mars/Base" }', "timezone"),
        ('name = "x"\nsettings = { max_steps = 3 }', "max_steps"),
        ('name = "x"\nstyle = { zoom = 9 }', "zoom"),
        ('name = "x"\nrequests = { delay_s = 31 }', "delay_s"),
        ('name = "x"\nrequests = { delay_s = 1, fail_once = "/a" }', "declare a variant for each"),
        ('name = "x"\nrequests = {}', "say what it changes"),
        ('name = "x"\nstyle = {}', "say what it changes"),
        ('name = "x"\nwords = "Do it."\nstyle = { zoom = 2 }', "declare a variant for each"),
        ('name = "x"\ncover = { look = "wall", text = "x", button = "x" }', "look"),
        ('name = "x"\nrenamed = ["#id"]', "unknown key"),
    ],
)
def test_a_mistake_in_a_variant_is_one_line_with_its_position(variant: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(f"[[tasks.variants]]\n{variant}")
    assert problem in str(caught.value)
    assert "s.toml: line " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_variants_cannot_have_one_name() -> None:
    with pytest.raises(ConfigError, match="'dark' is the name of two variants, with those of task t"):
        parsed(named("dark"), top='[[variants]]\nname = "dark"')


def playing(variants: Modes, *held: str, exclude: dict[str, str] | None = None) -> RunConfig:
    return RunConfig(variants=variants, held_variants=held, exclude=exclude or {})


def test_a_task_has_the_variants_that_it_declares_or_else_all_bundled_ones() -> None:
    assert variants_of(parsed()) == tuple(BUNDLED.values())
    assert [each.changes for each in variants_of(parsed(f"{named('dark')}\n{OWN}"))] == [
        {"color_scheme": "dark"},
        {"viewport_width": 320},
    ]


def test_a_task_under_a_variant_is_a_task_of_its_own_played_only_where_the_variant_holds() -> None:
    task = parsed(named("dark", "phone"))
    clean, pair = planned([task], playing("both", "t--dark"))
    assert (clean.task_id, clean.variants, clean.played_variant, clean.clean_task) == ("t", (), None, None)
    assert (pair.task_id, pair.task, pair.clean_task) == ("t--dark", task.task, "t")
    assert pair.played_variant == PlayedVariant(of="t", declared=BUNDLED["dark"])
    assert planned([task], playing("only", "t--dark")) == (pair,)
    assert planned([task], RunConfig()) == planned([parsed()], RunConfig()) == (clean,)
    assert planned([task], playing("both", "t--dark", exclude={"t": "Broken."})) == (clean,)
    assert declaring([task, clean.model_copy(update={"task_id": "u"})], playing("only", "t--dark")) == (task,)


def test_the_digest_of_a_task_covers_the_variant_that_it_is_played_under_and_no_other() -> None:
    (own,), (other,) = (pairs_of(parsed(OWN.replace("320", width))) for width in ("320", "321"))
    assert task_digests([parsed(OWN)]) == task_digests([parsed()])
    assert task_digests([own]) != task_digests([other])


def test_words_replace_the_instruction_only() -> None:
    task = parsed('[[tasks.variants]]\nname = "polite"\nwords = "Please go."')
    (pair,) = planned([task], playing("only", "t--polite"))
    assert (pair.task, pair.website, pair.checks) == ("Please go.", task.website, task.checks)


def test_a_request_names_the_variants_that_hold() -> None:
    def played(**config: Any) -> list[str]:
        task = {"task_id": "t", "website": "http://shop.test/", "task": "Go.", "variants": [{"name": "dark"}]}
        body = {"participants": {"white_agent": "http://127.0.0.1:9019"}, "config": {"tasks": [task], **config}}
        return [each.task_id for each in parse_request(json.dumps(body), lambda _: ()).tasks]

    assert played() == ["t"]
    assert played(variants="both", held_variants=["t--dark", "t--phone"]) == ["t", "t--dark"]
    with pytest.raises(ConfigError, match="variants"):
        played(variants="only")
    with pytest.raises(ConfigError, match="variants"):
        played(variants="both", held_variants=["t--dark"], cdp_url="ws://browser.test/")
