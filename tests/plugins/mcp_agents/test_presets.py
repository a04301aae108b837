import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.mcp_agents.presets import PLACES, Preset, filled, preset_names, read_preset

PLACE_NAMES = st.sampled_from(PLACES)


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_gives_a_program_its_instruction_and_its_tools(name: str) -> None:
    preset = read_preset(name)
    words = preset.argv(dict.fromkeys(PLACES, "a 'b' \"c\" $d"))
    assert words[0] == name
    # One word, whatever it contains; no shell reads it.
    assert "a 'b' \"c\" $d" in words
    everything = " ".join((preset.command, *preset.files.values(), *preset.env.values()))
    assert "{mcp_url}" in everything or "{mcp_config}" in everything


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_asks_for_a_model_only_if_one_is_given(name: str) -> None:
    preset = read_preset(name)
    places = dict.fromkeys(PLACES, "x") | dict.fromkeys(preset.endpoints, "")
    assert preset.argv(places | {"model": "m-1"})[-2:] == ["--model", "m-1"]
    assert "--model" not in preset.argv(places | {"model": ""})


def test_codex_is_told_of_the_meter_because_it_reads_no_address_from_its_environment() -> None:
    preset = read_preset("codex")
    words = preset.argv(dict.fromkeys(PLACES, "") | {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert 'base_url="http://127.0.0.1:1/v1"' in words[-1]
    assert not any("model_provider" in word for word in preset.argv(dict.fromkeys(PLACES, "")))


@given(st.dictionaries(PLACE_NAMES, st.text(), min_size=1), st.text())
def test_what_stands_for_a_placeholder_is_not_read_again(places: dict[str, str], text: str) -> None:
    name = next(iter(places))
    assert filled(f"{{{name}}}", places) == places[name]
    assert filled(text, {}) == text


def test_the_version_is_what_the_program_says(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}\nprint('program 1.2')\n")
    program.chmod(0o755)
    assert Preset(command="x", version=str(program)).program_version() == "program 1.2"
    assert Preset(command="x", version=str(tmp_path / "missing")).program_version() is None
