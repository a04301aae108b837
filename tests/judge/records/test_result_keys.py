from typing import Annotated

import pytest

from judge.records.result_keys import INLINE, ResultKey, ResultKeys, derived
from shared.models import Record, omit_default


class Inner(Record):
    name: Annotated[str, ResultKey("called", evidence=True, always=True)]
    size: Annotated[int, ResultKey(bare=True)] = 0
    secret: str = "hidden"


class Outer(Record):
    inner: Annotated[Inner | None, INLINE] = None
    colour: Annotated[str | None, ResultKey(evidence=True)] = omit_default(None)
    seconds: Annotated[float, ResultKey("times.seconds", always=True)] = 0.0

    @property
    @derived("letters", after="called")
    def _letters(self) -> int:
        return len(self.inner.name) if self.inner else 0

    @property
    @derived("times")
    def _halves(self) -> dict[str, float]:
        return {"half": self.seconds / 2}


KEYS = ResultKeys.of(Outer)
WHOLE = Outer(inner=Inner(name="a", size=2), colour="red", seconds=3.0)


def test_keys_are_written_in_the_declared_order_under_their_names() -> None:
    document = KEYS.write(WHOLE)
    assert document == {"called": "a", "letters": 1, "size": 2, "colour": "red", "times": {"seconds": 3.0, "half": 1.5}}
    assert list(document) == ["called", "letters", "size", "colour", "times"]


def test_a_default_is_left_out_where_that_is_declared() -> None:
    assert KEYS.write(Outer(inner=Inner(name="a"))) == {
        "called": "a",
        "letters": 1,
        "times": {"seconds": 0.0, "half": 0.0},
    }


def test_a_missing_record_is_written_as_null_and_read_as_none() -> None:
    document = KEYS.write(Outer())
    assert document["called"] is None
    assert Outer.model_validate(KEYS.read(document)) == Outer()


def test_what_is_written_is_read_back() -> None:
    assert Outer.model_validate(KEYS.read(KEYS.write(WHOLE))) == WHOLE


def test_only_keys_of_the_first_version_must_be_there() -> None:
    assert KEYS.read({"called": "a", "times": {"seconds": 1}}) == {"inner": {"name": "a"}, "seconds": 1}
    with pytest.raises(KeyError, match="called"):
        KEYS.read({"times": {"seconds": 1}})


def test_a_digest_covers_a_later_key_only_if_it_is_there() -> None:
    assert KEYS.evidence({}) == {"called": None}
    assert KEYS.evidence(KEYS.write(WHOLE)) == {"called": "a", "colour": "red"}


def test_a_key_cannot_follow_one_that_does_not_exist() -> None:
    class Lost(Record):
        colour: Annotated[str, ResultKey(after="nothing")]

    with pytest.raises(TypeError, match="colour follows nothing"):
        ResultKeys.of(Lost)
