"""How well people agree: pairs, all of them, and on which attempts they differ."""

import pytest

from judge.plugins.labels.label_files import AttemptKey, LabelLine, Opinions
from judge.plugins.labels.labellers import krippendorff_alpha, labeller_agreement

DIGEST = 64 * "0"


def opinions(**labels: str | None) -> Opinions:
    """Labels by labeller; that of `chief` adjudicates."""
    lines = {
        name: LabelLine.model_validate(
            {"task_id": "t", "trajectory_sha256": DIGEST, "label": label, "adjudicates": name == "chief", "note": name}
        )
        for name, label in labels.items()
        if label
    }
    return Opinions(lines)


def opinions_by_attempt(*attempts: Opinions) -> dict[AttemptKey, Opinions]:
    return {AttemptKey(f"t{number}", 1, DIGEST): each for number, each in enumerate(attempts)}


def test_conflicts_come_with_everyones_label_and_note_and_the_adjudicated_one() -> None:
    measured = labeller_agreement(
        opinions_by_attempt(
            opinions(anna="success", bert="success"),
            opinions(anna="success", bert="failure", chief="failure"),
            opinions(anna="undecided", bert="failure"),
        )
    )
    assert [(each.task_id, dict(each.labels), each.adjudicated) for each in measured.conflicts] == [
        ("t1", {"anna": "success", "bert": "failure"}, "failure"),
        ("t2", {"anna": "undecided", "bert": "failure"}, None),
    ]
    assert measured.conflicts[0].notes == {"anna": "anna", "bert": "bert"}
    assert measured.rule == "majority"
    assert measured.labellers == {"anna": 3, "bert": 3, "chief": 1}


def test_a_pair_is_compared_on_what_both_could_decide() -> None:
    measured = labeller_agreement(
        opinions_by_attempt(
            opinions(anna="success", bert="success", carl="failure"),
            opinions(anna="failure", bert="failure"),
            opinions(anna="success", bert="undecided"),
        )
    )
    pairs = {(pair.one, pair.other): (pair.rates.n, pair.rates.accuracy) for pair in measured.pairs}
    assert pairs == {("anna", "bert"): (2, 1.0), ("anna", "carl"): (1, 0.0), ("bert", "carl"): (1, 0.0)}


@pytest.mark.parametrize(
    ("units", "alpha"),
    [
        ([[True, True], [False, False]], 1.0),
        ([[True, False], [False, True]], -0.5),
        # The second example of Krippendorff's "Computing Krippendorff's Alpha-Reliability" (2011), two observers.
        (
            [
                [bool(a), bool(b)]
                for a, b in zip((0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0), strict=True)
            ],
            0.095,
        ),
        ([[True, True], [True]], None),
        ([[True], [False]], None),
    ],
    ids=["agree", "never agree", "published example", "all the same", "one label each"],
)
def test_krippendorffs_alpha(units: list[list[bool]], alpha: float | None) -> None:
    result = krippendorff_alpha(units)
    assert result is None if alpha is None else result == pytest.approx(alpha, abs=5e-4)
