"""Opening a model by name; the SDKs are optional."""

import subprocess
import sys

import pytest
from pydantic import SecretStr

from judge.config import RunConfig
from judge.judges.factory import check_judge_model
from participants import gemini, openai
from participants.base import ParticipantOptions
from shared.errors import ConfigError
from shared.llm.opening import open_model
from shared.settings import Settings

KEYS = Settings(google_api_key=SecretStr("g"), openai_api_key=SecretStr("o"))
SDKS = pytest.mark.parametrize(
    ("name", "module", "package"), [("gemini:m", "google.genai", "google-genai"), ("openai:m", "openai", "openai")]
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


@pytest.mark.parametrize(("module", "participant"), [("google.genai", gemini), ("openai", openai)])
def test_a_participant_without_its_sdk_does_not_start(
    monkeypatch: pytest.MonkeyPatch, module: str, participant
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match="is not installed"):
        participant.create(ParticipantOptions(settings=KEYS))


def test_judging_offline_needs_no_sdk() -> None:
    blocked = "import sys; sys.modules['openai'] = sys.modules['google.genai'] = None"
    work = (
        "from judge.config import RunConfig; from judge.judges.factory import open_judge;"
        "from shared.settings import Settings; import participants.gemini, participants.openai;"
        "open_judge(RunConfig(judge_model='offline'), Settings(), cache_dir=None)"
    )
    done = subprocess.run([sys.executable, "-c", f"{blocked}\n{work}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["gemini:m", "openai:m"])
async def test_a_model_is_opened_under_its_full_name(name: str) -> None:
    model = open_model(name, KEYS, purpose="judge model", timeout_s=1)
    assert model.name == name
    await model.aclose()
