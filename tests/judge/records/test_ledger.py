"""What an attempt's evidence rests on follows from its ledger."""

import pytest

from judge.records.ledger import MAX_ENTRIES, Coverage, Frozen, Grade, LedgerEntry, MissClass, worst


def entry(grade: Grade, miss: MissClass | None = None, step: int = 0) -> LedgerEntry:
    return LedgerEntry(step=step, method="GET", url="https://shop.example/", kind="fetch", grade=grade, miss=miss)


@pytest.mark.parametrize(
    ("grade", "miss", "coverage"),
    [
        ("exact", None, "full"),
        ("state", None, "full"),
        ("order", None, "full"),
        ("fuzzy", None, "full"),
        ("synthesised", None, "full"),
        ("uncertain", None, "uncertain"),
        ("miss", "harmless", "full"),
        ("miss", "cosmetic", "full"),
        ("miss", "decisive", "off_archive"),
        # A miss of an unknown class counts as the worst.
        ("miss", None, "off_archive"),
    ],
)
def test_the_coverage_of_one_request(grade: Grade, miss: MissClass | None, coverage: Coverage) -> None:
    assert entry(grade, miss).coverage == coverage
    assert Frozen(archives=()).with_ledger([entry("exact"), entry(grade, miss)]).coverage == coverage


def test_the_worst_counts() -> None:
    assert worst(["full", "uncertain", "off_archive", "full"]) == "off_archive"
    assert worst(["full", "uncertain"]) == "uncertain"
    assert worst([]) == "full"


def test_a_flood_of_requests_hides_no_miss() -> None:
    archives = Frozen(archives=()).with_ledger([*[entry("exact")] * MAX_ENTRIES, entry("miss", "decisive")])
    assert (len(archives.ledger), archives.left_out, archives.coverage) == (MAX_ENTRIES, 1, "off_archive")


def test_requests_are_found_by_step() -> None:
    archives = Frozen(archives=()).with_ledger([entry("exact"), entry("fuzzy", step=1), entry("state", step=1)])
    assert [each.grade for each in archives.at(1)] == ["fuzzy", "state"]


def test_what_is_not_known_is_not_written() -> None:
    assert entry("exact").model_dump() == {
        "step": 0,
        "method": "GET",
        "url": "https://shop.example/",
        "kind": "fetch",
        "grade": "exact",
    }
