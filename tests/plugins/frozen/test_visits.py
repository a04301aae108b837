"""Another value than the recorded one is never answered with certainty; what a page invents is always answered."""

import pytest

from plugins.frozen.visits import entered_case, entity_case, invented_case, of_invented, of_other, of_same

# `benchmarks/frozen entities` tries more of them. A multiple of kinds and places, so that each meets each.
NUMBERS = range(72)


@pytest.mark.slow
def test_another_entity_than_the_recorded_one_is_never_answered_as_if_it_were_that_one() -> None:
    results = {str(case): of_other(case) for case in map(entity_case, NUMBERS)}
    assert {name: each for name, each in results.items() if each.outcome == "certain and wrong"} == {}


@pytest.mark.slow
def test_another_value_than_was_entered_is_never_answered_as_if_it_were_that_one() -> None:
    results = {str(case): of_other(case) for case in map(entered_case, NUMBERS)}
    assert {name: each for name, each in results.items() if each.outcome == "certain and wrong"} == {}


@pytest.mark.slow
def test_a_walk_that_was_recorded_twice_is_answered_with_certainty() -> None:
    cases = [case for make in (entity_case, entered_case) for case in map(make, NUMBERS) if case.plays == 2]
    results = {str(case): of_same(case) for case in cases if not case.is_same_by_chance}
    assert {name: each for name, each in results.items() if each.outcome != "certain and right"} == {}


@pytest.mark.slow
def test_what_a_page_invents_is_answered_if_its_walk_was_recorded_twice() -> None:
    # All of the batches, because their order is drawn too.
    cases = [case for case in map(invented_case, range(250)) if case.number % 5 == 0 or case.use == "in a batch"]
    results = {str(case): of_invented(case) for case in cases if not case.is_same_by_chance}
    assert {name: each for name, each in results.items() if each.outcome != "certain and right"} == {}


def test_another_order_than_that_of_both_plays_is_uncertain() -> None:
    cases = [case for case in map(invented_case, range(250)) if case.is_same_by_chance]
    assert [of_invented(case).outcome for case in cases] == ["uncertain"] * len(cases)
    assert cases
