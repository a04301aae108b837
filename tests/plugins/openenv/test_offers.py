import pytest

from judge.plugins.openenv.offers import NoSuchTask, Offers, UnknownSplit
from plugins.openenv.fakes import TASKS

OFFERS = Offers("shop", TASKS)


def test_the_digest_of_a_split_is_that_of_ids_and_instructions() -> None:
    [split] = OFFERS.splits()
    [other] = Offers("other", TASKS).splits()
    [fewer] = Offers("shop", TASKS[1:]).splits()
    assert split["digest"] == other["digest"] != fewer["digest"]
    assert (split["name"], split["type"]) == ("train", "train")


def test_a_part_of_a_split_is_listed() -> None:
    assert [task["task_id"] for task in OFFERS.range("train", 1, None)] == ["second", "third"]
    assert OFFERS.range("train", 5, 9) == []


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_of_the_split_is_refused(index: int) -> None:
    with pytest.raises(NoSuchTask):
        OFFERS.at("train", index)


def test_another_split_is_refused() -> None:
    with pytest.raises(UnknownSplit):
        OFFERS.range("test", None, None)
