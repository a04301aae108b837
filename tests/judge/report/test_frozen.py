"""What the report says of attempts on frozen sites."""

from pathlib import Path

from helpers.results import a_finished_run, a_result
from judge.records.ledger import Frozen, LedgerEntry, UsedArchive
from judge.report.build import make_report
from judge.results.entries import counts_of
from judge.results.submission import coverage_note, rate_text
from judge.store.layout import RunStore

USED = UsedArchive(name="shop.wacz", sha256="ab" * 32, matcher="frozen-1")
HOSTILE = "https://shop.example/<img src=x>"


def entry(step: int, grade: str, **more: object) -> LedgerEntry:
    known = {"step": step, "method": "GET", "url": HOSTILE, "kind": "fetch", "grade": grade}
    return LedgerEntry.model_validate({**known, **more})


def reported(folder: Path, frozen: Frozen | None) -> tuple[str, str]:
    """The front page and the page of the only task."""
    store = RunStore(folder / "out", "r")
    a_finished_run(store.folder, a_result("t1", frozen=frozen))
    front = make_report([store], folder / "report")
    return front.read_text(), (front.parent / "tasks" / "t1.html").read_text()


def test_the_ledger_is_shown_with_its_steps_and_the_coverage_beside_the_rate(tmp_path: Path) -> None:
    ledger = (
        entry(0, "exact"),
        entry(1, "exact"),
        entry(1, "fuzzy", differs=("query: t",)),
        entry(1, "miss", miss="decisive"),
    )
    frozen = Frozen(archives=(USED,), sites=("https://shop.example",), live=("https://pay.example",), clock_ms=10**12)
    front, task = reported(tmp_path, frozen.with_ledger(ledger))
    assert "1 off the archive" in front
    assert "between <b>100.0\u00a0%</b> and <b>100.0\u00a0%</b>" in front
    assert "3 requests, 1 uncertain or missing" in task
    # The worst first.
    assert task.index("miss (decisive)") < task.index("fuzzy")
    for text in ("differs in query: t", "ab" * 32, "frozen-1", "https://pay.example", "2001-09-09 01:46:40 UTC"):
        assert text in task
    assert "<img src=x>" not in task


def test_in_real_time_the_clock_is_that_of_the_machine(tmp_path: Path) -> None:
    assert "with this machine's clock (real time)" in reported(tmp_path, Frozen(archives=(USED,)))[1]


def test_a_report_of_live_sites_does_not_mention_archives(tmp_path: Path) -> None:
    front, task = reported(tmp_path, None)
    assert "rozen sites" not in front + task
    assert "archive" not in front + task


def note(*unconfirmed: str, full: int = 1) -> str:
    entries = [{"task_id": f"f{each}", "epoch": 1, "verdict": "success", "coverage": "full"} for each in range(full)]
    entries += [
        {"task_id": name, "epoch": 1, "verdict": "unscored", "reason_code": "off_archive", "coverage": "off_archive"}
        for name in unconfirmed
    ]
    return coverage_note(counts_of(entries))


def test_the_note_in_the_terminal() -> None:
    assert note() == "frozen sites: 1 attempt on recorded answers alone, 0 also on uncertain ones, 0 off the archive"
    assert note("a", full=19).endswith("1 off the archive; 1 success not confirmed")
    assert "2 successes not confirmed: record more ways (wabe sites record" in note("a", "b", full=19)
    assert coverage_note(counts_of([])) == ""


def test_both_bounds_stand_beside_the_rate() -> None:
    entries = [
        {"task_id": name, "epoch": 1, "verdict": "failure", "coverage": coverage}
        for name, coverage in (("a", "full"), ("b", "off_archive"))
    ]
    assert (
        rate_text(counts_of(entries)) == "success rate 0.0 %, 0 of 2 scored tasks, on live sites between 0.0 and 50.0 %"
    )
