"""Snapshots packed for a page."""

import base64
import zlib

from hypothesis import given
from hypothesis import strategies as st

from judge.report.snapshots import MAX_CHARS, MAX_TOTAL_CHARS, pack


def unpacked(packed: str) -> list[str | None]:
    """What the page's script reads."""
    order, *texts = zlib.decompress(base64.b64decode(packed)).decode().split("\0")
    return [texts[int(place) - 1] if place != "0" else None for place in order.split(" ")]


@given(st.lists(st.none() | st.text(), min_size=1).filter(any))
def test_each_step_has_its_own_snapshot(snapshots: list[str | None]) -> None:
    clean = [text and text.replace("\0", "\ufffd") for text in snapshots]
    assert unpacked(pack(snapshots)) == clean


def test_without_snapshots_there_is_nothing() -> None:
    assert pack([None, None]) == ""


def test_the_same_snapshot_is_kept_once() -> None:
    texts = [str(number) * 1000 for number in range(50)]
    assert len(pack([*texts, *texts])) < 1.2 * len(pack(texts))


def test_a_cut_and_a_left_out_snapshot_say_so() -> None:
    long = [f"{number}{'x' * MAX_CHARS}" for number in range(MAX_TOTAL_CHARS // MAX_CHARS + 1)]
    first, *_, last = unpacked(pack(long))
    assert first is not None
    assert first.endswith("\n# The run's folder has 1 more character.")
    assert last is not None
    assert last.startswith("# This snapshot is left out")
