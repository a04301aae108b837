"""Reading the environment."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from shared.llm.opening import provider
from shared.llm.providers import provider_names
from shared.settings import Settings


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({}, None),
        ({"WABE_JUDGE_MODEL": "openai:o4-mini"}, "openai:o4-mini"),
        ({"EVAL_MODEL": "gemini-2.5-flash"}, "gemini:gemini-2.5-flash"),
        ({"EVAL_MODEL": "openai:o4-mini"}, "openai:o4-mini"),
        ({"EVAL_MODEL": "offline"}, "offline"),
        ({"EVAL_MODEL": "gemini-2.5-flash", "WABE_JUDGE_MODEL": "offline"}, "offline"),
    ],
)
def test_the_older_variable_for_the_judges_model_means_gemini(environ: dict[str, str], model: str | None) -> None:
    assert Settings.from_environ(environ).judge_model == model


def test_an_empty_variable_counts_as_unset() -> None:
    assert Settings.from_environ({"WABE_SCENARIOS": "", "EVAL_MODEL": ""}) == Settings.from_environ({}).model_copy(
        update={"environ": {"WABE_SCENARIOS": "", "EVAL_MODEL": ""}}
    )


@pytest.mark.parametrize("name", ["path", "environ", "trust_config", "in_container"])
def test_a_variable_named_like_a_field_is_not_a_setting(name: str) -> None:
    assert Settings.from_environ({name: "1"}) == Settings(environ={name: "1"})


@pytest.mark.parametrize(("value", "trusts"), [("1", True), ("true", False), ("yes", False), ("", False)])
def test_only_1_makes_the_judge_trust_what_a_request_configures(value: str, trusts: bool) -> None:
    assert Settings.from_environ({"WABE_TRUST_CONFIG": value}).trust_config is trusts


def test_in_a_source_tree_the_bundled_scenarios_are_next_to_the_code() -> None:
    assert (Settings().scenarios_folder / "demo" / "scenario.toml").is_file()


def test_an_image_sets_the_folder_of_its_scenarios() -> None:
    assert Settings.from_environ({"WABE_SCENARIOS": "/app/scenarios"}).scenarios_folder == Path("/app/scenarios")


def test_no_secret_setting_appears_in_a_log() -> None:
    names = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}
    values: dict[str, Any] = {name: SecretStr(name) for name in names}
    settings = Settings.model_construct(**values)
    assert {secret.get_secret_value() for secret in settings.secrets} == names
    assert {"auth_token", "redis_url"} <= names


def test_no_providers_key_appears_in_a_log() -> None:
    keys = {variable: variable.lower() for name in provider_names() for variable in provider(name).key_variables}
    secrets = Settings.from_environ(keys).secrets
    assert {secret.get_secret_value() for secret in secrets} == set(keys.values())
