"""Opening a model by name; the SDKs are optional."""

import importlib
import sys
import tomllib
from pathlib import Path

import pytest

from judge.config import RunConfig
from judge.judges.factory import open_judge
from judge.judges.methods import check_judge_model
from participants.base import ParticipantOptions
from participants.command import load
from shared.errors import ConfigError
from shared.llm.opening import open_model, provider
from shared.llm.providers import provider_names
from shared.settings import KEY_SUFFIX, Settings

ROOT = Path(__file__).parents[3]

KEYS = Settings(environ={"ANTHROPIC_API_KEY": "a", "GOOGLE_API_KEY": "g", "OPENAI_API_KEY": "o"})
SDKS = pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("anthropic:m", "anthropic", "anthropic"),
        ("gemini:m", "google.genai", "google-genai"),
        ("openai:m", "openai", "openai"),
    ],
)


@SDKS
def test_a_missing_sdk_is_one_line_with_the_command_to_install_it(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as caught:
        check_judge_model(RunConfig(judge_model=name), KEYS)
    assert caught.value.message == f'judge model "{name}": {package} is not installed'
    assert caught.value.remedy == f'pip install "wabe[{name.partition(":")[0]}]"'


def test_a_missing_parent_package_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google", None)
    monkeypatch.delitem(sys.modules, "google.genai", raising=False)
    with pytest.raises(ConfigError, match="google-genai is not installed"):
        open_model("gemini:m", KEYS, purpose="judge model", timeout_s=1)


@pytest.mark.parametrize(
    ("module", "participant"), [("anthropic", "anthropic"), ("google.genai", "gemini"), ("openai", "openai")]
)
def test_a_participant_without_its_sdk_does_not_start(
    monkeypatch: pytest.MonkeyPatch, module: str, participant: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match="is not installed"):
        load(participant)(ParticipantOptions(settings=KEYS))


def test_nothing_but_a_model_needs_its_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("anthropic", "openai", "google.genai"):
        monkeypatch.setitem(sys.modules, module, None)
    adapters = [f"shared.llm.providers.{name}" for name in provider_names()]
    for module in (
        "judge.judges.factory",
        "participants.command",
        "participants.model",
        "shared.llm.opening",
        *adapters,
    ):
        monkeypatch.delitem(sys.modules, module, raising=False)
        importlib.import_module(module)
    assert open_judge(RunConfig(judge_model="offline"), KEYS, cache_dir=None).id.startswith("checks-")


@pytest.mark.parametrize("name", ["anthropic:m", "gemini:m", "openai:m"])
async def test_a_model_is_opened_under_its_full_name(name: str) -> None:
    model = open_model(name, KEYS, purpose="judge model", timeout_s=1)
    assert model.name == name
    await model.aclose()


@pytest.mark.parametrize("name", provider_names())
def test_a_providers_descriptor_is_complete_and_needs_no_sdk(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    provider_found = provider(name)
    monkeypatch.setitem(sys.modules, provider_found.module, None)
    monkeypatch.delitem(sys.modules, f"shared.llm.providers.{name}")
    again = importlib.import_module(f"shared.llm.providers.{name}").PROVIDER
    assert (again.name, again.open.provider) == (name, name)
    assert all(variable.endswith(KEY_SUFFIX) for variable in again.key_variables)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras[again.extra][0].startswith(again.package)
    assert again.extra in extras["all"][0]
