"""The output of `wabe score`."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from judge.judges.rescoring import Scored
from judge.plugins.rejudging.output import InOrder, in_order_of


@given(order=st.permutations(["a", "b", "c", "d"]))
def test_trajectories_are_printed_in_order_whichever_is_judged_first(order: list[str]) -> None:
    folders = [Path(name) for name in "abcd"]
    folders_taken: list[Path] = []
    take = InOrder(folders, lambda scored: folders_taken.append(scored.folder))
    for name in order:
        take(Scored(folder=Path(name), outcome="success", reason=""))
        assert folders_taken == folders[: len(folders_taken)]
    assert folders_taken == folders


def test_tasks_are_in_the_scenarios_order_epoch_by_epoch() -> None:
    folders = [Path("run", epoch, name) for epoch in ("results", "2") for name in ("a", "b", "c")]
    result = in_order_of(["c", "a"], folders)
    assert [f"{folder.parent.name}/{folder.name}" for folder in result] == [
        "results/c", "results/a", "results/b", "2/c", "2/a", "2/b",
    ]  # fmt: skip
