"""The filters of lists of runs: searches, names, days, and their form in an address."""

from datetime import date
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.all_runs.filters import (
    MAX_CHARS,
    MAX_VALUES,
    RunFilters,
    choices,
    filters_in,
    read_filters,
    run_filters,
    words_of,
)
from judge.plugins.all_runs.listing import ListedRun
from shared.errors import ConfigError

# 2026-11-23, 12:00 UTC.
NOON = 1_795_435_200.0
RUN = ListedRun(
    key="r1",
    id="r1",
    scenario="demo/scenario.toml",
    participant="night: My Agent 1.2",
    agent="My Agent",
    judge="webjudge · openai:o4-mini",
    state="finished",
    worked_on=NOON,
    tags=("best", "to show"),
    note="slow on\nMondays",
)

texts = st.text(max_size=60)
words = st.text(st.characters(exclude_characters='"', exclude_categories=["Z", "C"]), min_size=1, max_size=20)
# Without what an address or a value would lose: surrogates, and white space around a search.
plain = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
names = st.lists(plain, max_size=4).map(tuple)
filters = st.builds(
    RunFilters,
    search=plain.map(str.strip),
    scenario=names,
    agent=names,
    judge=names,
    state=names,
    tag=names,
    since=st.none() | st.dates(),
    until=st.none() | st.dates(),
)


@given(texts)
def test_any_text_is_a_search_for_words_without_regard_to_case(text: str) -> None:
    result = words_of(text)
    assert all(word.text.strip() and word.text == word.text.casefold() and '"' not in word.text for word in result)
    assert words_of(text.casefold()) == result


@given(st.lists(st.tuples(words, st.booleans()), max_size=5))
def test_the_words_of_a_search_are_read_as_they_were_written(expected: list[tuple[str, bool]]) -> None:
    search = " ".join(f'-"{word}"' if unwanted else f'"{word}"' for word, unwanted in expected)
    assert [tuple(word) for word in words_of(search)] == [(word.casefold(), unwanted) for word, unwanted in expected]


@given(texts, texts)
def test_a_run_is_found_if_and_only_if_it_has_every_wanted_and_no_unwanted_word(search: str, note: str) -> None:
    run = RUN.model_copy(update={"note": note})
    parts = [run.id, run.scenario, run.participant, run.judge, run.state, *run.tags, run.note]
    has = [any(word.text in str(part).casefold() for part in parts) is not word.unwanted for word in words_of(search)]
    assert bool(RunFilters(search=search).keep([run])) == all(has)


@given(filters)
def test_the_address_of_filters_is_read_as_the_same_filters(original: RunFilters) -> None:
    assert filters_in(parse_qsl(original.address())) == original


@given(st.lists(st.tuples(st.sampled_from([name for name, _, _ in run_filters()]), texts), max_size=30))
def test_any_address_is_read_or_refused_in_one_line(query: list[tuple[str, str]]) -> None:
    text = ""
    try:
        filters_in(query)
    except ConfigError as error:
        text = str(error)
    assert text == "" or text.startswith("the address: ")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("is_kept", "values"),
    [
        (True, {}),
        (True, {"search": "agent DEMO"}),
        (True, {"search": '"my agent" -webarena'}),
        (False, {"search": '"agent my"'}),
        (False, {"search": "demo -agent"}),
        # A phrase does not reach from one part into the next.
        (False, {"search": '"1.2 webjudge"'}),
        (True, {"search": "mondays"}),
        (True, {"scenario": "demo"}),
        (False, {"scenario": "=demo"}),
        (True, {"scenario": "=Demo/scenario.toml"}),
        (True, {"agent": ["other", "my"]}),
        (False, {"agent": "=my"}),
        (True, {"judge": "o4"}),
        (True, {"tag": "=to show"}),
        (False, {"tag": "worst"}),
        (False, {"scenario": "demo", "state": "running"}),
        (True, {"scenario": [""], "since": ""}),
        (True, {"since": "2026-11-23", "until": "2026-11-23"}),
        (False, {"since": "2026-11-24"}),
        (False, {"until": "2026-11-22"}),
    ],
    ids=str,
)
def test_a_run_is_kept_if_every_filter_admits_it(is_kept: bool, values: dict[str, object]) -> None:
    assert bool(read_filters(values, "here").keep([RUN])) is is_kept


def test_a_run_whose_day_is_not_known_is_on_no_day() -> None:
    unknown = RUN.model_copy(update={"worked_on": 0.0})
    assert unknown.moment == ""
    assert RunFilters(since=date(1970, 1, 1)).keep([unknown]) == []
    assert RunFilters(until=date(9999, 1, 1)).keep([unknown]) == []


@pytest.mark.parametrize(
    "values",
    [
        {"since": "2026-13-01"},
        {"since": "20261123"},
        {"since": "2026-1-1"},
        {"search": "x" * (MAX_CHARS + 1)},
        {"agent": ["x"] * (MAX_VALUES + 1)},
        {"agent": "x" * (MAX_CHARS + 1)},
    ],
    ids=lambda values: str(values)[:30],
)
def test_what_cannot_be_a_filter_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"^here: "):
        read_filters(values, "here")


def test_the_choices_of_a_filter_are_counted_and_in_order() -> None:
    other = RUN.model_copy(update={"agent": "a first one", "tags": ("best",)})
    declared = {name: each for name, _, each in run_filters()}
    assert list(choices([RUN, RUN, other], declared["agent"]).items()) == [("a first one", 1), ("My Agent", 2)]
    assert choices([RUN, other], declared["tag"]) == {"best": 2, "to show": 1}
