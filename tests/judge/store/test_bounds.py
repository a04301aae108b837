"""How large a record in a run folder may become."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.config import RunConfig
from judge.records.steps import MAX_STEPS, Step
from judge.store.bounds import MAX_STEP_BYTES, bounded, clip_text, first_of, fit, written_bytes
from shared.files import MAX_FILE_BYTES
from shared.models import Action, Record

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(TEXT, inner, max_size=8),
    max_leaves=20,
)


def test_the_longest_attempt_of_the_largest_steps_fits_into_a_file() -> None:
    assert MAX_STEPS * MAX_STEP_BYTES < MAX_FILE_BYTES
    with pytest.raises(ValueError, match="max_steps"):
        RunConfig(max_steps=MAX_STEPS + 1)


@given(text=TEXT, limit=st.integers(60, 2_000))
def test_a_text_is_cut_to_the_most_that_fits(text: str, limit: int) -> None:
    result = clip_text(text, limit)
    assert written_bytes(result) <= limit
    assert result == text or (written_bytes(text) > limit and result.endswith(f"({len(text)} characters)"))
    assert clip_text(result, limit) == result


@given(value=JSON, limit=st.integers(300, 3_000))
def test_a_value_is_cut_only_until_it_fits(value: object, limit: int) -> None:
    result = fit(value, limit)
    assert written_bytes(result) <= limit
    assert result == value or written_bytes(value) > limit
    assert fit(result, limit) == result


def test_the_longest_texts_of_a_value_are_cut_first() -> None:
    result = fit({"target": "e5", "text": "x" * 200_000}, 1_000)
    assert result["target"] == "e5"
    assert result["text"].startswith("xxx")
    assert result["text"].endswith("… (200000 characters)")


def test_a_value_of_too_many_short_texts_is_kept_as_the_beginning_of_its_json() -> None:
    (beginning,) = fit({"keys": ["a"] * 5_000}, 1_000).values()
    assert beginning.startswith('{"keys": ["a", "a", ')


@given(texts=st.lists(TEXT, max_size=30), limit=st.integers(200, 2_000))
def test_of_many_texts_the_first_are_kept_and_the_others_counted(texts: list[str], limit: int) -> None:
    result = first_of(texts, limit)
    assert written_bytes(result) <= limit
    assert list(result) == texts or len(result) <= len(texts) + 1


def test_a_step_within_its_limits_is_recorded_as_it_is() -> None:
    step = Step(index=0, url="https://x.example/", title="Shop", action=Action(tool="browser_click", params={"a": [1]}))
    assert bounded(step) == step


def test_a_field_without_a_limit_of_its_own_is_bounded_as_well() -> None:
    class Later(Record):
        added: str
        several: tuple[str, ...]
        nested: dict[str, str]

    long = "x" * 100_000
    result = bounded(Later(added=long, several=(long,) * 9, nested={"k": long}))
    assert len(json.dumps(result.model_dump())) < 7_000
