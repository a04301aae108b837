"""Errors: what they say to people, and the parts of it for programs."""

import pytest
from pydantic import BaseModel, TypeAdapter

from shared.errors import ConfigError
from shared.validation import Mistakes, validated


def test_the_message_of_an_error_has_its_location_key_and_problem() -> None:
    error = ConfigError("missing", location="shop.toml", key="config.judge_model", remedy="add it")
    assert error.message == "shop.toml: config.judge_model: missing"
    assert str(error) == "shop.toml: config.judge_model: missing (add it)"


def test_an_error_without_parts_says_its_problem() -> None:
    error = ConfigError("no free port")
    assert (error.message, error.key, error.location) == ("no free port", "", "")


class Table(BaseModel):
    tasks: list[int]


def test_a_mistake_in_a_file_names_file_and_key() -> None:
    with pytest.raises(Mistakes) as failed:
        validated(TypeAdapter(Table), {"tasks": [1, "x"]}, "shop.toml")
    error = failed.value
    assert (error.location, error.key) == ("shop.toml", "tasks.1")
    assert error.message.endswith(f": {error.problem}")
