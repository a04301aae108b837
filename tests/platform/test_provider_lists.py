"""Files that cannot be derived from the descriptors of model providers name every provider, and name it rightly."""

import re
from pathlib import Path

import pytest
import tomli
import yaml

from helpers.json5 import json5
from helpers.paths import ROOT
from shared.llm.opening import provider
from shared.llm.provider import Provider
from shared.llm.providers import PROVIDERS

OWN = [provider(name) for name, entry in PROVIDERS.entries().items() if entry.is_own]
EXTRAS = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def manifest(known: Provider) -> Path:
    return ROOT / f"amber-manifest.{known.name}.json5"


def each_provider() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("known", OWN, ids=[known.name for known in OWN])


@each_provider()
def test_the_extra_of_a_provider_installs_its_sdk_and_is_one_of_all(known: Provider) -> None:
    assert [re.split(r"[<>=\[]", each)[0] for each in EXTRAS[known.extra]] == [known.package]
    assert known.extra in re.findall(r"[a-z0-9]+", EXTRAS["all"][0].partition("[")[2])


@each_provider()
def test_the_images_of_participants_have_the_sdk_of_every_provider(known: Provider) -> None:
    assert known.package in (ROOT / "docker/requirements-purple.in").read_text().splitlines()


@each_provider()
def test_the_judge_gets_the_key_of_every_provider(known: Provider) -> None:
    key = known.key_variables[0]
    assert json5(ROOT / "amber-manifest.json5")["program"]["env"][key]["when"] == f"config.{key.lower()}"
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "leaderboard.yml").read_text())
    (variables,) = (step["env"] for step in workflow["jobs"]["run"]["steps"] if "env" in step)
    assert variables[key] == f"${{{{ secrets.{key} }}}}"


@pytest.mark.parametrize("known", [known for known in OWN if manifest(known).exists()], ids=lambda known: known.name)
def test_the_manifest_of_a_providers_participant_takes_its_key_and_no_others(known: Provider) -> None:
    others = {variable for other in OWN if other is not known for variable in other.key_variables}
    variables = json5(manifest(known))["program"]["env"].keys()
    assert known.key_variables[0] in variables
    assert not variables & others


@each_provider()
def test_the_participant_guide_describes_every_provider(known: Provider) -> None:
    row = f"| `{known.name}` | `wabe[{known.extra}]` | `{known.key_variables[0]}` | `{known.default_model}` |"
    assert row in (ROOT / "PURPLE_AGENT_GUIDE.md").read_text().splitlines()
