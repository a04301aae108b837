"""Protocol buffers that differ in the order of their fields."""

from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.frozen.matching.protobuf import in_order


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


AMOUNT = field(1, field(1, b"amount") + bytes([2 << 3, 7]))
TOWN = field(1, field(1, b"town") + field(2, b"Lisbon"))


def test_the_order_of_fields_does_not_count() -> None:
    assert in_order(field(11, AMOUNT + TOWN)) == in_order(field(11, TOWN + AMOUNT))


def test_a_value_counts() -> None:
    assert in_order(field(11, TOWN)) != in_order(field(11, TOWN.replace(b"Lisbon", b"Oporto")))


def test_a_value_of_another_field_counts() -> None:
    assert in_order(field(2, b"yes") + field(3, b"no")) != in_order(field(3, b"yes") + field(2, b"no"))


def test_what_is_no_message_has_no_order() -> None:
    assert in_order(b"\xff\xff") is None
    assert in_order(b"") is None


@given(st.binary(max_size=200))
def test_any_data_is_read_or_not(data: bytes) -> None:
    assert in_order(data) is None or isinstance(in_order(data), str)
