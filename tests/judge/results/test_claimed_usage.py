"""Usage that a participant claims: kept, shown apart from what is metered, and compared with nothing."""

import json
from pathlib import Path

import pytest

from helpers.plugins import verify_run
from helpers.results import a_finished_run, a_result
from judge.report.build import make_report
from judge.results.columns import RowSource
from judge.results.rows import AttemptRow
from judge.trajectory.record import Attempt
from shared.claims import ClaimedUsage
from shared.errors import ConfigError
from wabe import record

CLAIMED = ClaimedUsage(replies=3, input=1200, output=90, cost_usd=0.5)


def claiming() -> Attempt:
    return a_result("t").model_copy(update={"claimed_usage": CLAIMED})


def test_it_is_kept_in_the_result() -> None:
    value = claiming().to_json()
    assert value["participant_usage"] == CLAIMED.model_dump()
    assert Attempt.from_json(value, source="t").claimed_usage == CLAIMED
    assert value["participant_usage"]["basis"] == "claimed"
    assert "participant_usage" not in a_result("t").to_json()


def test_the_report_says_who_claims_it(tmp_path: Path) -> None:
    run = a_finished_run(tmp_path, claiming())
    page = make_report([run]).read_text()
    tile = page.partition("<dt>Claimed</dt>")[2].partition("</div>")[0]
    assert "by the participant itself, not measured" in tile
    assert "over 1 attempt" in tile
    assert "metered" not in page
    assert verify_run(run).mismatches == verify_run(a_finished_run(tmp_path / "plain", a_result("t"))).mismatches


def row_of(attempt: Attempt) -> AttemptRow:
    return AttemptRow.of(RowSource(attempt, "t", 1, attempt.verdict))


def test_tokens_and_cost_that_another_program_recorded_stand_where_metered_ones_do(tmp_path: Path) -> None:
    usage = ClaimedUsage(basis="recorded", input=1200, output=90, cost_usd=0.5)
    attempt = a_result("t").model_copy(update={"claimed_usage": usage})
    row = row_of(attempt)
    assert (row.participant_input_tokens, row.participant_output_tokens, row.participant_cost_usd) == (1200, 90, 0.5)
    # What it does not say is unknown.
    assert (row.participant_cached_tokens, row.participant_calls, row.claimed_input_tokens) == (None, None, None)
    assert row.usage_source == "recorded"
    page = make_report([a_finished_run(tmp_path, attempt)]).read_text()
    tile = page.partition("<dt>Participant's model</dt>")[2].partition("</div>")[0]
    assert "recorded by another program, not measured" in tile
    assert "90 out, over 1 attempt" in tile
    claiming_row = row_of(claiming())
    assert (claiming_row.usage_source, claiming_row.participant_input_tokens) == ("claimed", None)
    assert row_of(a_result("t")).usage_source is None


def test_an_agents_own_recording_says_what_its_model_used(tmp_path: Path) -> None:
    attempt = record("mine", output_dir=tmp_path, run_id="r").start({"task_id": "t", "task": "Find it."})
    attempt.finish("42", usage={"input_tokens": 812, "output_tokens": 64, "cost_usd": 0.25})
    result = json.loads((attempt.folder / "result.json").read_text())
    assert result["participant_usage"]["basis"] == "recorded"
    row = row_of(Attempt.from_json(result, source="t"))
    assert (row.participant_input_tokens, row.participant_output_tokens, row.participant_cost_usd) == (812, 64, 0.25)


@pytest.mark.parametrize("usage", [{}, {"tokens": 5}, {"input_tokens": -1}, {"input_tokens": "many"}], ids=str)
def test_usage_without_usable_numbers_is_refused_before_the_attempt_ends(
    tmp_path: Path, usage: dict[str, object]
) -> None:
    attempt = record("mine", output_dir=tmp_path, run_id="r").start({"task_id": "t", "task": "Find it."})
    with pytest.raises(ConfigError, match="no usable numbers"):
        attempt.finish("42", usage=usage)
    attempt.finish("42")
