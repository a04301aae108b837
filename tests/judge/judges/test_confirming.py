"""A success on a frozen site stands only on answers that its archive has for certain; a failure always stands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import SHOP, RecordedRequest, RecordedStep, on_archive, recorded_attempt
from judge.config import RunConfig
from judge.evaluators.base import CheckKind, ComparisonResult, Decision
from judge.evaluators.evidence import TrajectoryEvidence
from judge.judges.base import Judge
from judge.judges.checked import ChecksJudge
from judge.records.checks import CHECKS, PluginCheck
from judge.records.ledger import Grade, LedgerEntry
from judge.records.steps import ProbeValue
from judge.records.verdicts import JudgeInfo, Verdict
from judge.trajectory.fetched import Fetched
from judge.trajectory.record import Trajectory

PAGE = '- main [ref=e1]:\n  - heading "Done" [level=1] [ref=e2]\n  - text: all done'
ORDER = RecordedRequest(path="/order")
OPENED = RecordedRequest(path="/live", messages=(("receive", "saved"),))


def shown(**changes: Any) -> RecordedStep:
    return RecordedStep(snapshot=PAGE, line="<Save button> -> CLICK", probes=(ProbeValue(value=1),), **changes)


# Three looks that are alike; the requests are those of the second action.
WALK = (shown(path="/a"), shown(path="/b", requests=(ORDER, OPENED)), shown(path="/c"))
ELEMENT = {"kind": "element", "element": 'heading "Done"'}
TEXT = {"kind": "text", "contains": "all done"}
ACTION = {"kind": "action", "line": "<Save button> -> CLICK"}
ANSWER = {"kind": "answer", "contains": "yes"}
REQUEST = {"kind": "request", "method": "POST", "url": "/order"}
MESSAGE = {"kind": "request", "socket": True, "url": "/live", "message": "saved", "direction": "received"}
FETCH = {"kind": "fetch", "url": "/api", "response": "ok"}
PROBE = {"kind": "probe", "expression": "x", "expected": 1}
ABSENT = {"kind": "text", "contains": "error", "not": True}


def entry(step: int, grade: Grade, *, is_read: bool) -> LedgerEntry:
    miss = "decisive" if grade == "miss" else None
    url = f"{SHOP}/more"
    return LedgerEntry(step=step, method="GET", url=url, kind="fetch", grade=grade, miss=miss, is_read=is_read)


def attempt(
    folder: Path,
    checks: Sequence[dict[str, Any]],
    *entries: LedgerEntry,
    loaded: Sequence[int] = (),
    steps: Sequence[RecordedStep] = WALK,
) -> Trajectory:
    fetched = (Fetched(url="/api", status=200, type="text/plain", body="ok"),)
    return on_archive(recorded_attempt(folder, checks, steps, answer="yes", fetched=fetched), entries, loaded)


async def verdict(played: Trajectory) -> tuple[str, str | None]:
    given = await ChecksJudge(RunConfig()).judge(played)
    return given.outcome, given.reason_code


SECOND = entry(1, "miss", is_read=True)
SUCCESS = ("success", None)
OFF = ("unscored", "off_archive")


@pytest.mark.parametrize(
    "check",
    [ELEMENT, TEXT, {"kind": "page", "url": "/c"}, PROBE, ANSWER, FETCH, ABSENT],
    ids=lambda check: check["kind"],
)
async def test_what_was_met_at_the_end_rests_on_the_last_look(tmp_path: Path, check: dict[str, Any]) -> None:
    assert await verdict(attempt(tmp_path, [check], SECOND)) == OFF
    assert await verdict(attempt(tmp_path, [check], SECOND, loaded=[2])) == (OFF if check is FETCH else SUCCESS)


@pytest.mark.parametrize(
    "check", [{**ELEMENT, "at": "any"}, {**TEXT, "at": "any"}, ACTION], ids=lambda check: check["kind"]
)
async def test_what_was_met_at_any_time_rests_on_a_look_that_shows_it(tmp_path: Path, check: dict[str, Any]) -> None:
    assert await verdict(attempt(tmp_path, [check], SECOND)) == SUCCESS
    assert await verdict(attempt(tmp_path, [check], entry(0, "miss", is_read=True))) == OFF


async def test_pages_in_an_order_rest_on_all_of_their_looks(tmp_path: Path) -> None:
    ordered = {"kind": "page", "url": ["/b", "/c"]}
    assert await verdict(attempt(tmp_path, [ordered], SECOND, loaded=[2])) == OFF


async def test_what_must_never_be_shown_rests_on_all_looks(tmp_path: Path) -> None:
    assert await verdict(attempt(tmp_path, [{**ABSENT, "at": "any"}], SECOND, loaded=[2])) == OFF


async def test_an_earlier_look_at_the_page_does_not_stand_for_the_last_one(tmp_path: Path) -> None:
    assert await verdict(attempt(tmp_path, [{**ELEMENT, "on": "/*"}], SECOND)) == OFF


async def test_the_first_value_of_a_probe_rests_on_the_look_that_had_it(tmp_path: Path) -> None:
    first = entry(0, "miss", is_read=True)
    assert await verdict(attempt(tmp_path, [{**PROBE, "keep": "first"}], first, loaded=[2])) == OFF
    assert await verdict(attempt(tmp_path, [PROBE], first, loaded=[2])) == SUCCESS


@pytest.mark.parametrize("check", [REQUEST, MESSAGE], ids=["request", "message"])
async def test_a_request_rests_on_what_precedes_it(tmp_path: Path, check: dict[str, Any]) -> None:
    assert await verdict(attempt(tmp_path, [check], SECOND)) == OFF
    assert await verdict(attempt(tmp_path, [check], entry(2, "miss", is_read=False))) == OFF
    later = (*WALK, shown())
    assert await verdict(attempt(tmp_path, [check], entry(3, "miss", is_read=False), steps=later)) == SUCCESS


@pytest.mark.parametrize("check", [REQUEST, MESSAGE], ids=["request", "message"])
async def test_that_nothing_was_sent_rests_on_everything(tmp_path: Path, check: dict[str, Any]) -> None:
    quiet = (shown(), shown(), shown())
    absent = {**check, "not": True}
    assert await verdict(attempt(tmp_path, [absent], steps=quiet)) == SUCCESS
    assert await verdict(attempt(tmp_path, [absent], SECOND, loaded=[2], steps=quiet)) == OFF


@pytest.mark.parametrize("more", [{"only": True}, {"times": 1}], ids=["only", "times"])
async def test_that_nothing_else_was_sent_rests_on_everything(tmp_path: Path, more: dict[str, Any]) -> None:
    later, missed = (*WALK, shown()), entry(3, "miss", is_read=True)
    assert await verdict(attempt(tmp_path, [{**REQUEST, **more}], steps=later)) == SUCCESS
    assert await verdict(attempt(tmp_path, [{**REQUEST, **more}], missed, steps=later)) == OFF
    assert await verdict(attempt(tmp_path, [REQUEST], missed, steps=later)) == SUCCESS


class Visited(PluginCheck):
    """One of a package's, which reads the looks without asking what they rest on."""

    url: str


def visited(check: Visited, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    passed = any(look.is_at(check.url) for look in recording.looks) != inverted
    return Decision(passed, ComparisonResult(passed, check.url), None)


async def test_a_kind_that_does_not_weigh_answers_rests_on_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, kind = type(CHECKS).find, CheckKind(Visited, visited)
    monkeypatch.setattr(type(CHECKS), "find", lambda seam, name: kind if name == "visited" else find(seam, name))
    check = {"kind": "visited", "url": "/c"}
    assert await verdict(attempt(tmp_path, [check])) == SUCCESS
    assert await verdict(attempt(tmp_path, [check], SECOND, loaded=[2])) == OFF


async def test_an_uncertain_answer_has_a_reason_of_its_own(tmp_path: Path) -> None:
    unsure = entry(1, "uncertain", is_read=False)
    assert await verdict(attempt(tmp_path, [ELEMENT], unsure)) == ("unscored", "uncertain_archive")
    assert await verdict(attempt(tmp_path, [ELEMENT], unsure, SECOND)) == OFF
    # The page with the missing answer is gone, what the write did is not.
    assert await verdict(attempt(tmp_path, [ELEMENT], unsure, SECOND, loaded=[2])) == ("unscored", "uncertain_archive")


async def test_a_failure_stays_one(tmp_path: Path) -> None:
    wrong = {"kind": "element", "element": 'heading "Other"'}
    assert await verdict(attempt(tmp_path, [wrong, ELEMENT], SECOND)) == ("failure", None)


async def test_one_of_several_alternatives_is_enough(tmp_path: Path) -> None:
    either = {"any_of": [ELEMENT, {**TEXT, "at": "any"}]}
    assert await verdict(attempt(tmp_path, [either], SECOND)) == SUCCESS


async def test_the_reason_names_the_requests(tmp_path: Path) -> None:
    given = await ChecksJudge(RunConfig()).judge(attempt(tmp_path, [ELEMENT], SECOND))
    assert given.reason == (f"a success that rests on answers that the archive does not have: GET {SHOP}/more (step 1)")
    assert [each["passed"] for each in given.evidence["checks"]] == [True]


class ModelJudge(Judge):
    """A judge on a model that always says yes."""

    id = "webjudge-1"
    info = JudgeInfo(
        method="webjudge", model="m", prompt_set="p", prompt_version="1", prompt_checksum="p", threshold=3,
        package_version="1", code_checksum="c",
    )  # fmt: skip

    async def judge(self, trajectory: Trajectory) -> Verdict:
        return Verdict(outcome="success", reason="yes")


async def test_a_model_is_shown_the_last_look(tmp_path: Path) -> None:
    judge, unsure = ModelJudge(), attempt(tmp_path, [], SECOND)
    assert judge.confirmed(await judge.judge(unsure), unsure).reason_code == "off_archive"
    back = attempt(tmp_path, [], SECOND, loaded=[2])
    assert judge.confirmed(await judge.judge(back), back).outcome == "success"
