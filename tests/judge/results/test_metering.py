"""The ledger of a meter: what is known of calls, added up, and which attempt they belong to."""

import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.plugins import verify_run
from helpers.results import a_finished_run, a_result
from judge.results.metering import (
    LEDGER,
    AttemptStart,
    Call,
    CallEnd,
    CallStart,
    InProgress,
    MeteredUsage,
    Metering,
    Tokens,
    read_ledger,
)
from judge.results.part import with_totals

START = 1_700_000_000.25


def a_call(
    number: int = 0, *, at: float = START + 1, attempt: str | None = None, one_slot: bool = False, **ended: object
) -> Call:
    name = f"c{number}"
    known = {"seconds": 0.5, "status": 200, "model": "m", "tokens": Tokens(input=100, output=10), "cost_usd": 0.25}
    start = CallStart(call=name, at=at, role="white_agent", provider="openai", attempt=attempt, one_slot=one_slot)
    return Call(start, CallEnd.model_validate({"call": name, **known, **ended}))


def lines(*calls: Call) -> str:
    records = [record for call in calls for record in (call.start, call.end)]
    return "".join(f"{record.model_dump_json()}\n" for record in records)


def test_a_cost_is_unknown_if_that_of_one_call_is() -> None:
    result = MeteredUsage.of([a_call(), a_call(1, tokens=None, cost_usd=None, unknown="not_reported")])
    assert result is not None
    known = (2, 1, 100, None, 0.25)
    assert (result.calls, result.unknown_calls, result.input, result.cost_usd, result.known_cost_usd) == known
    assert "participant_cost_usd" not in result.published()


def test_without_a_call_nothing_was_measured() -> None:
    assert MeteredUsage.of([]) is None


def test_a_refused_call_costs_nothing_and_is_counted() -> None:
    result = MeteredUsage.of([a_call(), a_call(1, status=429, tokens=None, cost_usd=None)])
    assert result is not None
    assert (result.calls, result.refused_calls, result.cost_usd) == (2, 1, 0.25)


def test_a_call_that_the_meter_did_not_see_the_end_of_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / LEDGER
    path.write_text(lines(a_call()) + a_call(1).start.model_dump_json() + '\n{"call": "c1", "sec')
    _, second = read_ledger(path).calls
    assert (second.end.tokens, second.end.unknown) == (None, "lost")


LINES = [lines(a_call()).encode(), b'{"attempt": 1}', b"[1]", b'{"at": {}}', b"null"]


@given(st.lists(st.binary(max_size=80) | st.sampled_from(LINES)))
def test_no_line_of_a_ledger_stops_its_reading(parts: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, LEDGER)
        path.write_bytes(b"\n".join([*parts, lines(a_call(7)).encode()]))
        assert "c7" in [call.start.call for call in read_ledger(path).calls]


A, B = InProgress("a", START, START + 10), InProgress("b", START, START + 5)


def test_a_call_that_names_its_attempt_belongs_to_it() -> None:
    metering = Metering((a_call(attempt="a"), a_call(1, attempt="b"), a_call(2, attempt="a")), (A, B))
    result = metering.of_attempt(a_result(context_id="a"))
    assert result is not None
    assert result.calls == 2
    assert metering.total is not None
    assert metering.total.unassigned_calls == 0


def test_with_one_slot_a_call_belongs_to_the_attempt_of_its_time_whatever_it_names() -> None:
    ended = InProgress("earlier", START - 9, START - 5)
    calls = (
        a_call(one_slot=True),
        a_call(1, one_slot=True, attempt="a"),
        a_call(2, one_slot=True, attempt="earlier"),
        a_call(3, one_slot=True, attempt="nobody"),
        a_call(4, at=START - 1, one_slot=True, attempt="a"),
    )
    metering = Metering(calls, (A, ended))
    result, earlier = metering.of_attempt(a_result(context_id="a")), a_result(context_id="earlier")
    assert result is not None
    assert result.calls == 4
    before = earlier.model_copy(update={"started_at": START - 9, "ended_at": START - 5})
    assert metering.of_attempt(before) is None
    assert metering.total is not None
    assert (metering.total.calls, metering.total.unassigned_calls) == (5, 1)


@pytest.mark.parametrize("name", [None, "nobody", "b", ""])
def test_an_attempt_is_unknown_if_a_call_of_its_time_could_be_anybodys(name: str | None) -> None:
    # The attempt "b" has ended by then.
    metering = Metering((a_call(attempt="a"), a_call(1, attempt=name, at=START + 7)), (A, B))
    results = a_result(context_id="a").model_copy(update={"started_at": START, "ended_at": START + 10})
    assert metering.of_attempt(results) is None
    assert metering.total is not None
    assert metering.total.unassigned_calls == 1


def test_a_call_of_another_participant_counts_for_the_run_only() -> None:
    call = a_call(1, attempt="a", one_slot=True)
    other = Call(call.start.model_copy(update={"role": "other"}), call.end)
    metering = Metering((a_call(attempt="a"), other), (A,), role="white_agent")
    result = metering.of_attempt(a_result(context_id="a"))
    assert result is not None
    assert result.calls == 1
    assert metering.total is not None
    assert metering.total.unassigned_calls == 1


def test_the_attempts_of_a_run_are_those_of_its_records(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result(context_id="a"))
    (store.folder / LEDGER).write_text(lines(a_call(attempt="a"), a_call(1, attempt="x")))
    metering = Metering.of(store)
    assert metering is not None
    assert [each.context_id for each in metering.attempts] == ["a"]
    assert metering.role == "white_agent"
    assert metering.total is not None
    assert metering.total.published()["participant_usage"]["unassigned_calls"] == 1


CUT_OFF = AttemptStart(attempt="x", task="t9.1", began=START, since=START - 1)


def test_a_call_of_an_attempt_that_was_cut_off_is_nobody_elses(tmp_path: Path) -> None:
    attempt = a_result(context_id="a").model_copy(update={"started_at": START, "ended_at": START + 10})
    store = a_finished_run(tmp_path, attempt)
    (store.folder / LEDGER).write_text(lines(a_call(attempt="a"), a_call(1, attempt="x")))
    CUT_OFF.write(store.folder / LEDGER)
    metering = Metering.of(store)
    assert metering is not None
    result = metering.of_attempt(attempt)
    assert result is not None
    assert result.calls == 1
    assert metering.total is not None
    assert (metering.total.calls, metering.total.unassigned_calls) == (2, 0)


@pytest.mark.parametrize(
    ("later", "expected_end"),
    [
        ({"task": "t8.1", "began": START + 5}, math.inf),
        ({"task": "t9.1", "began": START + 5}, START + 5),
        # The judge was killed, and resumed.
        ({"task": "t8.1", "began": START + 7, "since": START + 3}, START + 3),
        ({"task": "t9.1", "began": START - 5, "since": START - 9}, math.inf),
    ],
)
def test_an_attempt_without_a_record_was_over_when_its_task_or_a_judge_began_again(
    later: dict[str, object], expected_end: float
) -> None:
    other = CUT_OFF.model_copy(update={"attempt": "y", **later})
    assert InProgress.unrecorded(CUT_OFF, [CUT_OFF, other]) == InProgress("x", START, expected_end)


def test_a_submission_says_what_was_metered_and_how(tmp_path: Path) -> None:
    pytest.importorskip("judge.plugins.metering.part")
    store = a_finished_run(tmp_path, a_result())
    (store.folder / LEDGER).write_text(lines(a_call(), a_call(1)))
    document = with_totals({"results": [{"winner": "w", "detail": {"success_rate": 1.0}}]}, store)
    detail = document["results"][0]["detail"]
    assert (detail["participant_cost_usd"], detail["participant_usage"]["basis"]) == (0.5, "metered, lower bound")


def test_a_run_without_a_meter_says_nothing_of_cost(tmp_path: Path) -> None:
    submission = {"results": [{"winner": "w", "detail": {"success_rate": 1.0}}]}
    assert with_totals(submission, a_finished_run(tmp_path, a_result())) == submission


def test_what_was_metered_is_verified_and_survives_another_judging(tmp_path: Path) -> None:
    pytest.importorskip("judge.plugins.metering.part")
    store = a_finished_run(tmp_path, a_result())
    (store.folder / LEDGER).write_text(lines(a_call(), a_call(1)))
    submission = json.loads((store.folder / "results.json").read_text())
    assert any("participant_usage" in line for line in verify_run(store).mismatches)
    submission = with_totals(submission, store)
    store.write_submission(submission)
    assert [line for line in verify_run(store).mismatches if "participant" in line] == []
    (store.folder / LEDGER).write_text(lines(a_call()))
    assert any("participant_usage.calls" in line for line in verify_run(store).mismatches)


def test_the_calls_of_shards_are_those_of_the_run(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result())
    for number in (0, 1):
        shard = store.folder / "shards" / f"00{number}-of-002"
        shard.mkdir(parents=True)
        (shard / LEDGER).write_text(lines(a_call(number)))
    metering = Metering.of(store)
    assert metering is not None
    assert metering.total is not None
    assert metering.total.calls == 2
