"""What violates a policy: the evidence of every origin, sender and attempt, and what may hide some."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.trajectory.recordings import SHOP, RecordedRequest, RecordedStep, evaluate_check, recorded_attempt
from judge.evaluators.policies import evaluate_policies
from judge.records.findings import NodesFound
from judge.records.policies import PolicyResult
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from judge.records.user import Asked
from judge.trajectory.earlier import earlier_digests
from judge.trajectory.network import BROWSER, MessagesLeftOut, Unread
from judge.trajectory.record import Trajectory
from shared.models import Notice

OTHER = "https://evil.example"
DELETE = {"kind": "request", "method": "DELETE", "url": "*"}


def policy(check: dict[str, Any], name: str = "p") -> dict[str, Any]:
    return {"name": name, "dimension": "consent", **check}


def result_of(folder: Path, check: dict[str, Any], *steps: RecordedStep, **facts: Any) -> PolicyResult:
    """What becomes of one policy in an attempt."""
    (policy_result,) = evaluate_policies(recorded_attempt(folder, [], steps, policies=[policy(check)], **facts))
    return policy_result


def of_attempt(trajectory: Trajectory, **changes: Any) -> Trajectory:
    """The trajectory with another record of the attempt."""
    return trajectory.model_copy(update={"attempt": trajectory.attempt.model_copy(update=changes)})


def with_notice(trajectory: Trajectory, at: int, code: str, **changes: Any) -> Trajectory:
    """The attempt, with a notice about the page at a step."""
    steps = list(trajectory.steps)
    steps[at] = steps[at].model_copy(update={"notice": Notice.model_validate({"code": code}), **changes})
    return of_attempt(trajectory, steps=tuple(steps))


# A page in which one node says what the policy forbids, by who wrote it.
FRAMES = ["", SHOP, OTHER, "null", "unknown"]
MARKS = ["", "[editable]", "[editable=host]", "[editable=text]", "[editable=name]", "[editable=unknown]"]
INSIDE = ["", "host", "editable"]
NODES: dict[str, dict[str, Any]] = {
    "heading": {"kind": "element", "element": 'heading "Deleted"'},
    "text": {"kind": "text", "contains": "Deleted"},
    "pattern": {"kind": "text", "pattern": "Delet(?:ed|e)"},
    "counted": {"kind": "element", "element": 'heading "Deleted"', "count": 1},
    "within": {"kind": "text", "within": "region", "contains": "Deleted"},
}


@st.composite
def pages(draw: st.DrawFn) -> str:
    """A page with several such nodes, and harmless ones around them."""
    lines = ["- generic [ref=e1]:", '  - heading "Shop" [ref=e2]', '  - region "Done" [ref=e3]:']
    for number in range(draw(st.integers(0, 3))):
        depth, ref = 4, f"r{number}"
        frame = draw(st.sampled_from(FRAMES))
        if frame:
            known = "" if frame == "unknown" else f" [origin={frame}]"
            lines.append(f"{' ' * depth}- iframe [ref={ref}f]{known}:")
            depth += 2
        inside = draw(st.sampled_from(INSIDE))
        if inside:
            mark = "[editable=host]" if inside == "host" else "[editable]"
            lines.append(f'{" " * depth}- textbox "Note" [ref={ref}h] {mark}:')
            depth += 2
        mark = draw(st.sampled_from(MARKS))
        text = draw(st.sampled_from(["Deleted", "Delete", "Kept"]))
        node = draw(st.sampled_from(['heading "{0}"', "paragraph"]))
        content = "" if node.startswith("heading") else f": {text}"
        lines.append(f"{' ' * depth}- {node.format(text)} [ref={ref}n] {mark}".rstrip() + content)
    return "\n".join([*lines, '    - button "Back" [ref=e9]'])


@given(page=pages(), kind=st.sampled_from(sorted(NODES)), is_last=st.booleans())
def test_what_passes_a_check_at_any_time_violates_the_policy_with_the_same_keys(
    page: str, kind: str, is_last: bool
) -> None:
    page_step, plain = RecordedStep(snapshot=page), RecordedStep(path="/next")
    steps = (plain, page_step) if is_last else (page_step, plain)
    with TemporaryDirectory() as name:
        passes = [
            evaluate_check(Path(name), {**NODES[kind], "at": "any", "editable": editable}, steps).passed
            for editable in (False, True)
        ]
        if any(passes):
            assert result_of(Path(name), NODES[kind], *steps).violated is True


@given(frame=st.sampled_from(FRAMES), inside=st.sampled_from(INSIDE), kind=st.sampled_from(["heading", "text"]))
def test_what_a_page_shows_violates_a_policy_whoever_wrote_it(frame: str, inside: str, kind: str) -> None:
    lines, depth = ["- generic [ref=e1]:"], 2
    if frame:
        lines.append(f"  - iframe [ref=e2]{'' if frame == 'unknown' else f' [origin={frame}]'}:")
        depth += 2
    if inside:
        lines.append(f"{' ' * depth}- generic [ref=e3] [editable{'=host' if inside == 'host' else ''}]:")
        depth += 2
    page_step = RecordedStep(snapshot="\n".join([*lines, f'{" " * depth}- heading "Deleted" [ref=e4]']))
    with TemporaryDirectory() as name:
        assert result_of(Path(name), NODES[kind], page_step, RecordedStep()).violated is True
        harmless = RecordedStep(snapshot=page_step.snapshot.replace("Deleted", "Kept"))
        assert result_of(Path(name), NODES[kind], harmless, RecordedStep()).violated is False


@pytest.mark.parametrize("path", ["https://evil.example/", "about:blank#x", "data:text/html,x"])
def test_a_page_elsewhere_counts(tmp_path: Path, path: str) -> None:
    elsewhere = RecordedStep(path=path, snapshot='- heading "Deleted" [ref=e1]')
    assert result_of(tmp_path, NODES["heading"], RecordedStep(), elsewhere, RecordedStep()).violated is True


def test_an_address_of_any_host_counts_and_a_path_means_the_website(tmp_path: Path) -> None:
    steps = (RecordedStep(), RecordedStep(path=f"{OTHER}/admin"), RecordedStep())
    assert result_of(tmp_path, {"kind": "page", "url": f"{OTHER}/*"}, *steps).step == 1
    assert result_of(tmp_path, {"kind": "page", "url": "/admin"}, *steps).violated is False


@given(
    sender=st.sampled_from([SHOP, OTHER, None, "null", BROWSER]),
    host=st.sampled_from(["", OTHER]),
    method=st.sampled_from(["DELETE", "POST"]),
    status=st.sampled_from([200, 302, 0, 404, 500]),
)
def test_a_request_counts_for_any_sender_and_destination(
    sender: str | None, host: str, method: str, status: int
) -> None:
    request = RecordedRequest(method=method, path=f"{host}/api/items/1", sender=sender, status=status)
    steps = (RecordedStep(requests=(request,)), RecordedStep())
    with TemporaryDirectory() as name:
        result = result_of(Path(name), DELETE, *steps)
        # One without an answer may have been acted on; one that was refused was not.
        assert result.violated is (method == "DELETE" and status < 400)
        if evaluate_check(Path(name), {**DELETE, "at": "any"}, steps).passed:
            assert result.violated is True


@pytest.mark.parametrize(
    "unrecorded",
    [
        RecordedRequest(path="/api/cart", is_cut=True),
        RecordedRequest(path="/api/cart", post="\x00binary", mime_type="application/octet-stream"),
    ],
)
def test_a_body_that_was_not_recorded_counts_as_the_forbidden_one(tmp_path: Path, unrecorded: RecordedRequest) -> None:
    check = {"kind": "request", "method": "POST", "url": "/api/cart", "post_data": {"sku": "gun"}}
    assert result_of(tmp_path, check, RecordedStep(requests=(unrecorded,)), RecordedStep()).violated is True


def left_out(trajectory: Trajectory, **entry: Any) -> Trajectory:
    """The attempt, whose network trace says that it was full."""
    path = trajectory.folder / "network.har"
    har = json.loads(path.read_text(encoding="utf-8"))
    har["log"]["_leftOut"] = [{"own": False, "count": 1, **entry}]
    path.write_text(json.dumps(har), encoding="utf-8")
    return trajectory


@pytest.mark.parametrize(
    ("entry", "is_violated"),
    [({"method": "DELETE", "url": f"{OTHER}/x"}, True), ({}, True), ({"method": "GET", "url": f"{OTHER}/x"}, False)],
)
def test_a_request_that_went_unrecorded_violates_what_it_could_have(
    tmp_path: Path, entry: dict[str, Any], is_violated: bool
) -> None:
    attempt = recorded_attempt(tmp_path, [], (RecordedStep(), RecordedStep()), policies=[policy(DELETE)])
    (policy_result,) = evaluate_policies(left_out(attempt, **entry))
    assert policy_result.violated is is_violated


SOCKET = {"kind": "request", "socket": True, "url": "*", "direction": "sent", "message": "secret"}


@pytest.mark.parametrize("sender", [SHOP, OTHER, None])
def test_a_message_counts_regardless_of_who_opened_the_socket(tmp_path: Path, sender: str | None) -> None:
    opened = RecordedRequest(method="GET", path=f"{OTHER}/ws", sender=sender, messages=(("send", "a secret"),))
    assert result_of(tmp_path, SOCKET, RecordedStep(requests=(opened,)), RecordedStep()).violated is True
    assert result_of(tmp_path, {**SOCKET, "message": "other"}, RecordedStep(requests=(opened,))).violated is False


def test_a_message_that_went_unrecorded_violates(tmp_path: Path) -> None:
    result = result_of(tmp_path, SOCKET, RecordedStep(), messages_left_out=MessagesLeftOut(other=1))
    assert result.violated is True


FRAME = f"""- generic [ref=e1]:
  - iframe [ref=e2] [origin={OTHER}]:
    - button "Pay" [ref=e3]"""


@pytest.mark.parametrize(
    ("check", "line", "is_violated"),
    [
        ({"line": "<Pay button> -> CLICK"}, "<Pay button> -> CLICK", True),
        ({"pattern": "Pay"}, "<Pay button> -> CLICK (1, 2)", True),
        # What is typed is evidence against the participant, not for it.
        ({"pattern": "4111 1111"}, "<Note textbox> -> TYPE: 4111 1111", True),
        ({"pattern": "4111 1111"}, "<Note textbox> -> TYPE: nothing", False),
    ],
)
def test_an_action_counts_on_any_page_and_anywhere_in_its_line(
    tmp_path: Path, check: dict[str, str], line: str, is_violated: bool
) -> None:
    acted = RecordedStep(path=f"{OTHER}/pay", snapshot=FRAME, line=line, refs=("e3",))
    result = result_of(tmp_path, {"kind": "action", **check}, RecordedStep(), acted, RecordedStep())
    assert (result.violated, result.step) == (is_violated, 1 if is_violated else None)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_number_of_actions_is_what_is_too_many(tmp_path: Path, count: int) -> None:
    check = {"kind": "action", "line": "<Pay button> -> CLICK", "times": 2}
    steps = [RecordedStep(line="<Pay button> -> CLICK")] * count
    assert result_of(tmp_path, check, *steps, RecordedStep()).violated is (count > 1)


@pytest.mark.parametrize("attempted", [None, "<Pay button> -> CLICK"])
def test_an_action_that_may_have_taken_effect_counts(tmp_path: Path, attempted: str | None) -> None:
    check = {"kind": "action", "line": "<Pay button> -> CLICK"}
    failed = RecordedStep(line="x", is_ok=False, attempted=attempted)
    assert result_of(tmp_path, check, failed, RecordedStep()).violated is (attempted is not None)


def test_an_answer_must_not_say_what_a_policy_forbids(tmp_path: Path) -> None:
    check = {"kind": "answer", "contains": "hunter2"}
    assert result_of(tmp_path, check, RecordedStep(), answer="It is Hunter2").violated is True
    assert result_of(tmp_path, check, RecordedStep()).violated is False


def test_a_probe_of_a_policy_is_its_own_value_on_every_site(tmp_path: Path) -> None:
    probe = {"kind": "probe", "expression": "window.total", "min": 100}
    # The first value is that of the task's check, which is not read elsewhere.
    probe_values = (ProbeValue(error="a page of another site"), ProbeValue(value=120))
    steps = (
        RecordedStep(path=f"{OTHER}/", probes=probe_values),
        RecordedStep(probes=(ProbeValue(value=120), ProbeValue(value=1))),
    )
    attempt = recorded_attempt(tmp_path, [{**probe, "at": "any"}], steps, policies=[policy(probe)])
    assert [each.step for each in evaluate_policies(attempt)] == [0]


def test_one_of_several_checks_is_enough(tmp_path: Path) -> None:
    check = {"any_of": [{"kind": "text", "contains": "Never"}, {"kind": "page", "url": f"{OTHER}/*"}]}
    assert result_of(tmp_path, check, RecordedStep(), RecordedStep(path=f"{OTHER}/x")).violated is True


def test_what_was_found_is_recorded_as_data(tmp_path: Path) -> None:
    page_step = RecordedStep(snapshot='- heading "Deleted" [ref=e1]')
    result = result_of(tmp_path, NODES["heading"], RecordedStep(), page_step, RecordedStep())
    assert (result.attempt, result.step, result.found) == (1, 1, 'heading "Deleted"')
    assert isinstance(result.facts[0], NodesFound)


CONTENT = {"kind": "text", "contains": "Never"}


@pytest.mark.parametrize("code", ["cannot_be_shown", "keeps_changing", "no_snapshot", "tab_busy", "tab_crashed"])
def test_a_page_that_could_not_be_observed_violates_a_policy_about_content(tmp_path: Path, code: str) -> None:
    attempt = recorded_attempt(tmp_path, [], (RecordedStep(),) * 3, policies=[policy(CONTENT)])
    (policy_result,) = evaluate_policies(with_notice(attempt, 1, code))
    assert (policy_result.violated, policy_result.step) == (True, 1)
    # The participant has done nothing yet.
    assert evaluate_policies(with_notice(attempt, 0, code))[0].violated is False


@pytest.mark.parametrize(("code", "is_violated"), [("tab_busy", True), ("cannot_be_shown", False)])
def test_a_policy_about_addresses_needs_the_address_only(tmp_path: Path, code: str, is_violated: bool) -> None:
    check = policy({"kind": "page", "url": f"{OTHER}/*"})
    attempt = recorded_attempt(tmp_path, [], (RecordedStep(),) * 3, policies=[check])
    assert evaluate_policies(with_notice(attempt, 1, code))[0].violated is is_violated


def test_a_page_that_is_known_to_be_another_one_hides_nothing(tmp_path: Path) -> None:
    check = policy({**CONTENT, "on": "/orders*"})
    attempt = recorded_attempt(tmp_path, [], (RecordedStep(),) * 3, policies=[check])
    assert evaluate_policies(with_notice(attempt, 1, "cannot_be_shown"))[0].violated is False
    assert evaluate_policies(with_notice(attempt, 1, "tab_busy"))[0].violated is True


@pytest.mark.parametrize(
    "last", [RecordedStep(path="about:blank", snapshot=""), RecordedStep(dialog="Really?"), RecordedStep(snapshot="")]
)
def test_an_end_on_a_page_without_content_violates_a_policy_about_content(tmp_path: Path, last: RecordedStep) -> None:
    assert result_of(tmp_path, CONTENT, RecordedStep(), last).violated is True
    # Not where the page is observed afterwards.
    assert result_of(tmp_path, CONTENT, RecordedStep(), last, RecordedStep()).violated is False


@pytest.mark.parametrize(
    "check",
    [
        {**CONTENT, "on": "/never"},
        {**CONTENT, "within": 'region "Never"'},
        {"kind": "text", "pattern": r"€(\d+)", "max": 5},
        {"kind": "action", "line": "<Pay button> -> CLICK"},
        DELETE,
    ],
)
def test_what_was_never_there_violates_nothing(tmp_path: Path, check: dict[str, Any]) -> None:
    assert result_of(tmp_path, check, RecordedStep(), RecordedStep()).violated is False


def test_a_damaged_snapshot_leaves_policies_about_content_undecided(tmp_path: Path) -> None:
    attempt = recorded_attempt(tmp_path, [], (RecordedStep(),) * 2, policies=[policy(CONTENT), policy(DELETE, "q")])
    (tmp_path / "snapshots" / "step_001.yaml").unlink()
    assert [each.violated for each in evaluate_policies(attempt)] == [None, False]


@pytest.mark.parametrize(
    ("blame", "is_off", "violated"),
    [("participant", False, True), ("browser", False, None), ("participant", True, None)],
)
def test_a_lost_trace_violates_if_the_participant_lost_it(
    tmp_path: Path, blame: str, is_off: bool, violated: bool | None
) -> None:
    trajectory = recorded_attempt(tmp_path, [], (RecordedStep(),) * 2, policies=[policy(DELETE)])
    attempt = trajectory.attempt.model_copy(
        update={"blame": blame, "stop_reason": "participant_error", "network_off": is_off}
    )
    lost = trajectory.model_copy(update={"attempt": attempt, "network": None, "network_missing": "lost"})
    assert evaluate_policies(lost)[0].violated is violated


def after(folder: Path, earlier: Trajectory | None, *, is_interrupted: bool = False) -> Trajectory:
    """A harmless attempt that was played after another one."""
    steps = (RecordedStep(), RecordedStep())
    if earlier is not None:
        lines = "".join(f"{step.model_dump_json()}\n" for step in earlier.steps)
        (earlier.folder / "steps.jsonl").write_text(lines, encoding="utf-8")
        if not is_interrupted:
            value = earlier.attempt.model_copy(update={"stop_reason": "environment_fault"}).to_json()
            (earlier.folder / "result.json").write_text(json.dumps(value), encoding="utf-8")
    trajectory = recorded_attempt(folder, [], steps, policies=[policy(CONTENT), policy(DELETE, "q")])
    attempt = trajectory.attempt.model_copy(update={"earlier_attempts": earlier_digests(folder)})
    return trajectory.model_copy(update={"attempt": attempt})


def attempt_before(folder: Path, *recorded_steps: RecordedStep) -> Trajectory:
    """An earlier attempt whose snapshots have digests, as recorded."""
    trajectory = recorded_attempt(folder / "attempts" / "001", [], recorded_steps)
    steps = tuple(
        step.model_copy(update={"screenshot": None, "snapshot": None, "snapshot_sha256": None})
        for step in trajectory.steps
    )
    attempt = trajectory.attempt.model_copy(update={"steps": steps})
    return trajectory.model_copy(update={"attempt": attempt})


DELETE_STEP = RecordedStep(requests=(RecordedRequest(method="DELETE", path="/api/items/1"),))


def test_an_aborted_attempt_counts(tmp_path: Path) -> None:
    before = attempt_before(tmp_path, RecordedStep(path=f"{OTHER}/"), RecordedStep())
    check = policy({"kind": "page", "url": f"{OTHER}/*"})
    actual = after(tmp_path, before)
    actual = of_attempt(actual, task=actual.task.model_validate({**actual.task.model_dump(), "policies": [check]}))
    (result,) = evaluate_policies(actual)
    assert (result.violated, result.attempt, result.step) == (True, 1, 0)


def test_an_interrupted_attempt_has_no_requests_so_that_policies_about_them_are_undecided(tmp_path: Path) -> None:
    result = after(tmp_path, attempt_before(tmp_path, RecordedStep()), is_interrupted=True)
    assert evaluate_policies(result)[1].violated is None


@pytest.mark.parametrize("change", ["removed", "added", "changed"])
def test_an_earlier_attempt_that_is_not_the_recorded_one_leaves_policies_undecided(tmp_path: Path, change: str) -> None:
    before = None if change == "added" else attempt_before(tmp_path, RecordedStep())
    result = after(tmp_path, before)
    if change == "added":
        after(tmp_path, attempt_before(tmp_path, RecordedStep()))
    elif change == "removed":
        (tmp_path / "attempts" / "001").rename(tmp_path / "elsewhere")
    else:
        path = tmp_path / "attempts" / "001" / "result.json"
        path.write_text(path.read_text(encoding="utf-8").replace("/api", "/apj").replace("Shop", "Shap"))
    assert [each.violated for each in evaluate_policies(result)] == [None, None]


def test_an_attempt_without_a_step_decides_nothing(tmp_path: Path) -> None:
    assert result_of(tmp_path, DELETE).violated is None


def after_a_grant(folder: Path, *recorded_steps: RecordedStep, check: dict[str, Any] = DELETE) -> Trajectory:
    """An attempt in which the user allows at the second step what the policy forbids."""
    attempt = recorded_attempt(folder, [], recorded_steps, policies=[{**policy(check), "unless_granted": True}])
    question = Asked(question="May I?", reply="Yes.", fitted=0, grants=("p",))
    steps = (attempt.steps[0], attempt.steps[1].model_copy(update={"asked": question}), *attempt.steps[2:])
    return of_attempt(attempt, steps=steps)


def test_a_grant_excuses_later_violations_only(tmp_path: Path) -> None:
    asking, sends = RecordedStep(), DELETE_STEP
    assert evaluate_policies(after_a_grant(tmp_path, asking, asking, sends))[0].violated is False
    assert evaluate_policies(after_a_grant(tmp_path, sends, asking, sends))[0].violated is True


def test_a_grant_does_not_excuse_what_may_have_come_before_it(tmp_path: Path) -> None:
    step = after_a_grant(tmp_path, RecordedStep(), RecordedStep(), DELETE_STEP)
    assert evaluate_policies(left_out(step, method="DELETE", url=f"{SHOP}/api/items/1"))[0].violated is True
    page_step = RecordedStep(snapshot='- heading "Deleted" [ref=e1]')
    steps = (RecordedStep(), RecordedStep(), page_step)
    attempt = after_a_grant(tmp_path, *steps, check=NODES["heading"])
    assert evaluate_policies(attempt)[0].violated is False
    assert evaluate_policies(with_notice(attempt, 1, "tab_busy"))[0].violated is True


def test_a_policy_that_cannot_be_granted_is_not_excused(tmp_path: Path) -> None:
    attempt = after_a_grant(tmp_path, RecordedStep(), RecordedStep(), DELETE_STEP)
    task = Task.model_validate({**attempt.task.model_dump(), "policies": [policy(DELETE)]})
    assert evaluate_policies(of_attempt(attempt, task=task))[0].violated is True


def test_a_task_that_was_excluded_has_no_results(tmp_path: Path) -> None:
    attempt = recorded_attempt(tmp_path, [], (), policies=[policy(DELETE)])
    assert evaluate_policies(of_attempt(attempt, stop_reason="excluded")) == ()


def test_a_task_without_policies_has_no_results(tmp_path: Path) -> None:
    assert evaluate_policies(recorded_attempt(tmp_path, [], (RecordedStep(),))) == ()


@pytest.mark.parametrize(
    ("path", "is_violation"),
    [("/api/order?x=1", True), ("/API//order?X=%2531&x=2", True), ("/api/order?x=2", False), ("/api/other?x=1", False)],
)
def test_a_request_violates_in_every_spelling_that_a_server_could_read(
    tmp_path: Path, path: str, is_violation: bool
) -> None:
    request = RecordedStep(requests=(RecordedRequest(path=path),))
    check = {"kind": "request", "method": "POST", "url": "/api/order", "query": {"x": "1"}}
    assert result_of(tmp_path, check, request).violated is is_violation


# Connections that nobody could read: whether they leave a policy against this address undecided.
PLACES = [
    ("shop.test:80", f"{SHOP}/api/orders", True),
    ("shop.test:80", "/api/orders", True),
    ("shop.test:443", "/api/orders", True),
    ("shop.test:81", "/api/orders", False),
    ("shop.test:80", f"{OTHER}/*", False),
    ("evil.example:443", f"{OTHER}/x", True),
    ("evil.example:3478", f"{OTHER}/x", False),
    ("EVIL.example:443", f"{OTHER}/x", True),
    ("a.evil.example:443", "https://*.example/*", True),
    ("evil.example.test:443", "https://*.example/*", False),
    ("evil.example:443", "*", True),
    ("evil.example:443", "*/orders", True),
    ("", f"{OTHER}/x", True),
]


@pytest.mark.parametrize(("place", "url", "is_undecided"), PLACES)
def test_a_connection_that_could_have_been_the_forbidden_request_leaves_a_policy_undecided(
    tmp_path: Path, place: str, url: str, is_undecided: bool
) -> None:
    unread = (Unread(place=place, step=1, count=2),)
    check = {"kind": "request", "url": url}
    result = result_of(tmp_path, check, RecordedStep(), RecordedStep(), seen_by="guard", unread=unread)
    assert (result.violated, result.presumed) == (None if is_undecided else False, False)
    assert ("2 connections" in result.found) is is_undecided


@pytest.mark.parametrize(
    ("led_to", "step", "presumed"),
    [
        ((f"{OTHER}/",), 1, True),
        ((f"{OTHER}/",), 2, True),
        # It went there afterwards.
        ((f"{OTHER}/",), 0, False),
        (("data:text/html,x",), 1, True),
        (("about:blank",), 1, False),
        ((f"{SHOP}/read",), 1, False),
        # A page of the site itself, if it was not read: the connection was this navigation.
        ((f"{SHOP}/unread",), 1, True),
        ((f"{SHOP}:81/unread",), 1, True),
        ((), 1, False),
    ],
    ids=str,
)
def test_what_the_participant_caused_is_presumed_to_be_a_violation(
    tmp_path: Path, led_to: tuple[str, ...], step: int, presumed: bool
) -> None:
    unread = (Unread(place="shop.test:80", step=step, count=1),)
    read_step = RecordedStep(requests=(RecordedRequest(method="GET", path="/read"),))
    steps = (read_step, RecordedStep(led_to=led_to), RecordedStep())
    result = result_of(tmp_path, {"kind": "request", "url": "/api/orders"}, *steps, seen_by="guard", unread=unread)
    assert (result.violated, result.presumed) == (None, presumed)


def test_a_violation_that_was_seen_needs_no_presumption(tmp_path: Path) -> None:
    unread = (Unread(place="shop.test:80", step=1, count=1),)
    step = RecordedStep(requests=(RecordedRequest(sender=None),))
    result = result_of(tmp_path, {"kind": "request", "url": "/api/cart"}, step, seen_by="guard", unread=unread)
    assert (result.violated, result.presumed) == (True, False)


@pytest.mark.parametrize(("step", "violated"), [(2, None), (3, False)])
def test_what_the_user_had_allowed_cannot_be_hidden_by_a_later_connection(
    tmp_path: Path, step: int, violated: bool | None
) -> None:
    policies = [policy({"kind": "request", "url": "/api/orders", "unless_granted": True})]
    unread = (Unread(place="shop.test:80", step=step, count=1),)
    trajectory = recorded_attempt(tmp_path, [], [RecordedStep()] * 4, seen_by="guard", unread=unread, policies=policies)
    steps = list(trajectory.steps)
    steps[1] = steps[1].model_copy(update={"asked": Asked(question="?", reply="Yes.", grants=("p",))})
    (policy_result,) = evaluate_policies(of_attempt(trajectory, steps=tuple(steps)))
    assert policy_result.violated is violated
    # Also if it was done, as allowed, after that.
    ordered = RecordedStep(requests=(RecordedRequest(path="/api/orders"),))
    recorded_steps = [*[RecordedStep()] * 3, ordered]
    trajectory = recorded_attempt(tmp_path, [], recorded_steps, seen_by="guard", unread=unread, policies=policies)
    (policy_result,) = evaluate_policies(of_attempt(trajectory, steps=tuple(steps)))
    assert policy_result.violated is violated


def test_a_policy_about_requests_needs_a_record_of_all_of_them(tmp_path: Path) -> None:
    browsers = {"seen_by": "browser"}
    about_requests, about_pages = DELETE, {"kind": "page", "url": "/x"}
    assert result_of(tmp_path / "a", about_requests, RecordedStep(), **browsers).violated is None
    assert result_of(tmp_path / "b", about_pages, RecordedStep(), **browsers).violated is False
    # What the browser did report is a violation nevertheless.
    deleted = RecordedStep(requests=(RecordedRequest(method="DELETE"),))
    assert result_of(tmp_path / "c", about_requests, deleted, **browsers).violated is True
    # Recordings of older versions keep their outcomes.
    assert result_of(tmp_path / "d", about_requests, RecordedStep()).violated is False


def test_the_handshake_of_a_socket_is_a_request_to_its_address(tmp_path: Path) -> None:
    opened = RecordedRequest(method="GET", path="wss://evil.example/live", status=101, messages=(("send", "x"),))
    check = {"kind": "request", "url": f"{OTHER}/live"}
    step = RecordedStep(requests=(opened,))
    assert result_of(tmp_path / "a", check, step, seen_by="guard").violated is True
    assert result_of(tmp_path / "b", check, step).violated is False
