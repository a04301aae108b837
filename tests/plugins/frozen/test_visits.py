"""Another value than the recorded one is never answered with certainty; what a page invents is always answered."""

from plugins.frozen.visits import MIXED, entered_case, entity_case, invented_case, of_invented, of_other, of_same

# `benchmarks/frozen_entities.py` tries more of them. A multiple of kinds and places, so that each meets each.
NUMBERS = range(72)


def test_another_entity_than_the_recorded_one_is_never_answered_as_if_it_were_that_one() -> None:
    found = {str(case): of_other(case) for case in map(entity_case, NUMBERS)}
    assert {name: each for name, each in found.items() if each.outcome == "certain and wrong"} == {}


def test_another_value_than_was_entered_is_never_answered_as_if_it_were_that_one() -> None:
    found = {str(case): of_other(case) for case in map(entered_case, NUMBERS)}
    assert {name: each for name, each in found.items() if each.outcome == "certain and wrong"} == {}


def test_a_walk_that_was_recorded_twice_is_answered_with_certainty() -> None:
    cases = [case for make in (entity_case, entered_case) for case in map(make, NUMBERS) if case.plays == 2]
    found = {str(case): of_same(case) for case in cases if MIXED not in case.noise}
    assert {name: each for name, each in found.items() if each.outcome != "certain and right"} == {}


def test_what_a_page_invents_is_answered_if_its_walk_was_recorded_twice() -> None:
    cases = [case for case in map(invented_case, range(0, 250, 5)) if case.use != "in a batch"]
    found = {str(case): of_invented(case) for case in cases}
    assert {name: each for name, each in found.items() if each.outcome != "certain and right"} == {}


def test_a_batch_in_a_random_order_is_uncertain_at_worst_where_both_plays_had_the_same_one() -> None:
    batches = [case for case in map(invented_case, range(250)) if case.use == "in a batch"]
    found = [of_invented(case).outcome for case in batches]
    assert set(found) <= {"certain and right", "uncertain"}
    assert found.count("certain and right") > len(found) / 2
