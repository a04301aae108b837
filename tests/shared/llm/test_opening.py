"""Opening a model by name; the SDKs are optional."""

import importlib
import sys
from typing import Any

import pytest
from pydantic import SecretStr

from judge.config import RunConfig
from judge.judges.factory import check_judge_model, open_judge
from participants import anthropic, gemini, openai
from participants.base import ParticipantOptions
from shared.errors import ConfigError
from shared.llm.opening import open_model
from shared.settings import Settings

KEYS = Settings(anthropic_api_key=SecretStr("a"), google_api_key=SecretStr("g"), openai_api_key=SecretStr("o"))
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
    ("module", "participant"), [("anthropic", anthropic), ("google.genai", gemini), ("openai", openai)]
)
def test_a_participant_without_its_sdk_does_not_start(
    monkeypatch: pytest.MonkeyPatch, module: str, participant: Any
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match="is not installed"):
        participant.create(ParticipantOptions(settings=KEYS))


def test_nothing_but_a_model_needs_its_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("anthropic", "openai", "google.genai"):
        monkeypatch.setitem(sys.modules, module, None)
    participants = ("participants.anthropic", "participants.gemini", "participants.openai")
    for module in ("judge.judges.factory", *participants, "shared.llm.opening"):
        monkeypatch.delitem(sys.modules, module, raising=False)
        importlib.import_module(module)
    assert open_judge(RunConfig(judge_model="offline"), KEYS, cache_dir=None).id.startswith("checks-")


@pytest.mark.parametrize("name", ["anthropic:m", "gemini:m", "openai:m"])
async def test_a_model_is_opened_under_its_full_name(name: str) -> None:
    model = open_model(name, KEYS, purpose="judge model", timeout_s=1)
    assert model.name == name
    await model.aclose()
