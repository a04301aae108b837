"""Near misses of generated scripts on a simulated site: the oracle agrees with what the server has in the end."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.evaluators.evidence import TrajectoryEvidence
from judge.plugins.nearmiss.operators import near_misses
from judge.plugins.nearmiss.oracle import Oracle, WalkReading, WalkWrite, reading
from judge.plugins.nearmiss.walks import NumberField, RightWalk, followed
from judge.records.sites import NONE_SHARED

from .packing import THINGS, play, script, walk_of

BUTTONS = [f"{what} {thing}" for what in ("Add", "Mark") for thing in THINGS]


def right_walk(folder: Path, steps: tuple[dict[str, object], ...]) -> tuple[RightWalk, Oracle, object]:
    (one, state), (other, _) = (play(folder / name, steps) for name in ("1", "2"))
    first, second = (reading(TrajectoryEvidence(each)) for each in (one, other))
    found = followed(walk_of(steps), one, one.task, frozenset(each.step for each in first.writes), NONE_SHARED)
    assert isinstance(found, RightWalk)
    return found, Oracle(first, second), state


@pytest.mark.slow
@given(buttons=st.lists(st.sampled_from(BUTTONS), min_size=1, max_size=4), seed=st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_a_walk_is_another_one_exactly_if_the_server_has_something_else_in_the_end(
    buttons: list[str], seed: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        steps = script(*buttons)
        right, oracle, state = right_walk(folder, steps)
        operators = ("also", "twice", "stop", "leave", "skip", "neighbour")
        walks = near_misses(right, steps, operators, 40, seed)
        assert len({each.walk_id for each in walks}) == len(walks) > 0
        for walk in walks:
            trajectory, own = play(folder / walk.walk_id, walk.steps)
            assert walk.is_whole(trajectory, trajectory), walk
            # Of what was added before and after, the same is there: the order is the page's.
            found = oracle.differences(reading(TrajectoryEvidence(trajectory)))
            assert bool(found) == (own != state), (walk.about, found)


@pytest.mark.parametrize("operator", ["also", "twice"])
def test_what_comes_to_something_besides_says_what_it_was(tmp_path: Path, operator: str) -> None:
    steps = script("Add Lantern", "Mark Rope")
    right, oracle, _ = right_walk(tmp_path, steps)
    walk = near_misses(right, steps, [operator], 9, 0)[0]
    found = oracle.differences(reading(TrajectoryEvidence(play(tmp_path / "w", walk.steps)[0])))
    assert found[0].signal == "writes"
    assert "sends POST /api/things name=" in str(found[0])
    # The random field and the number of visitors differ between right walks, too.
    assert not oracle.differences(reading(TrajectoryEvidence(play(tmp_path / "v", steps)[0])))


def test_a_repetition_is_one_to_the_same_address() -> None:
    # Each walk creates something under an identifier of its own.
    first, second, one, other = (f"/a/{number}2d4e6f8a0b1c2d3e/" for number in range(4))

    def walk(*paths: str) -> WalkReading:
        return WalkReading(tuple(WalkWrite(("PUT", each, ()), (), "201", 1) for each in paths), frozenset(), None, "")

    oracle = Oracle(walk(first), walk(second))
    assert not oracle.differences(walk(one, one))
    assert oracle.differences(walk(one, other))


@given(
    least=st.integers(-5, 5), length=st.integers(0, 20), step=st.sampled_from([1, 2, 5, 0.5]), place=st.integers(0, 40)
)
def test_a_number_beside_another_is_one_that_the_field_can_have(
    least: int, length: int, step: float, place: int
) -> None:
    field = NumberField("Pieces", least, least + length, step)
    value = least + min(place, int(length / step)) * step
    other = field.beside(value)
    if other is None:
        assert length < step
    else:
        assert other != value
        assert least <= other <= least + length
        assert (other - least) % step == 0
