"""Usage that a participant claims: kept, shown apart from what is metered, and compared with nothing."""

from pathlib import Path

from helpers.plugins import verify_run
from helpers.results import a_finished_run, a_result
from judge.report.build import make_report
from judge.trajectory.record import Attempt
from shared.claims import ClaimedUsage

CLAIMED = ClaimedUsage(replies=3, input=1200, output=90, cost_usd=0.5)


def claiming() -> Attempt:
    return a_result("t").model_copy(update={"claimed_usage": CLAIMED})


def test_it_is_kept_in_the_result() -> None:
    value = claiming().to_json()
    assert value["participant_usage"] == {"basis": "claimed", **CLAIMED.model_dump()}
    assert Attempt.from_json(value, source="t").claimed_usage == CLAIMED
    assert "participant_usage" not in a_result("t").to_json()


def test_the_report_says_who_claims_it(tmp_path: Path) -> None:
    run = a_finished_run(tmp_path, claiming())
    page = make_report([run]).read_text()
    tile = page.partition("<dt>Claimed</dt>")[2].partition("</div>")[0]
    assert "by the participant itself, not measured" in tile
    assert "over 1 attempt" in tile
    assert "metered" not in page
    assert verify_run(run).mismatches == verify_run(a_finished_run(tmp_path / "plain", a_result("t"))).mismatches
