"""The recorder's file: what is kept when there are more requests than it has room for."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright._impl._driver import compute_driver_executable

from judge.browser.requests import RECORDER, RequestLog, begin_code
from judge.browser.session import Traffic

SITE, EVIL = "http://shop.test", "http://evil.test"
# Writes one entry for each request; a number begins that step, as the judge does.
WRITE = """
    const { Log } = require(process.argv[1]);
    const fs = require("fs");
    const [limits, requests] = JSON.parse(fs.readFileSync(0));
    const log = new Log(limits);
    let number = 0;
    for (const request of requests) {
        if (typeof request === "number") {
            fs.appendFileSync("requests.jsonl", JSON.stringify({ step: request }) + "\\n");
            continue;
        }
        const [own, method, url, size] = request;
        const slot = log.enter(own, method, url.split("?")[0]);
        if (!slot) continue;
        const body = "b".repeat(size);
        const post = log.hasRoomForBody(slot, size) ? { text: body } : { dropped: size };
        const document = own ? "http://shop.test" : "http://evil.test";
        log.write(slot, { began: 1, method, url, type: "fetch", sender: { document },
            fixed: {}, size, post, ...(log.hasRoomForHeaders(slot) ? { headers: [["X-A", "h".repeat(size)]] } : {}) });
        log.write(slot, { answered: 2, ended: 3, status: 200 });
    }"""
SMALL: dict[str, Any] = {
    "entries": 6,
    "bytes": 4_000,
    "bytesWithHeaders": 3_000,
    "bytesWithBodies": 2_000,
    "paths": 4,
    "lateBytes": 4_000,
}
LIMITS = {"own": SMALL, "other": SMALL, "bodyBytes": 500, "url": 200, "method": 20, "keyChars": 100}
ExpectedRequest = tuple[bool, str, str, int]


def recorded(folder: Path, requests: Sequence[ExpectedRequest | int], limits: dict[str, Any] | None = None) -> Traffic:
    node, _ = compute_driver_executable()
    for name in ("requests.jsonl", "late_requests.jsonl"):
        (folder / name).unlink(missing_ok=True)
    given_to = json.dumps([limits or LIMITS, requests]).encode()
    script = RECORDER.with_name("request_log.cjs")
    subprocess.run([node, "-e", WRITE, str(script)], cwd=folder, check=True, input=given_to)
    return RequestLog(folder).read()


def urls(traffic: Traffic) -> list[str]:
    return [entry["request"]["url"] for entry in traffic.entries]


REQUESTS = st.lists(
    st.tuples(
        st.booleans(),
        st.sampled_from(("GET", "POST")),
        st.integers(0, 5).map(lambda path: f"{SITE}/{path}"),
        st.sampled_from((1, 300, 2_000)),
    ),
    max_size=60,
)


@pytest.mark.slow
@given(requests=REQUESTS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_first_and_the_last_request_of_each_path_are_kept_in_order(
    tmp_path: Path, requests: list[ExpectedRequest]
) -> None:
    numbered = [(own, method, f"{url}?{number}", size) for number, (own, method, url, size) in enumerate(requests)]
    traffic = recorded(tmp_path, numbered)
    remaining = [int(url.partition("?")[2]) for url in urls(traffic)]
    assert remaining == sorted(set(remaining))
    assert not traffic.is_pending
    unnamed = {one.is_own for one in traffic.left_out if not one.url}
    named = {(one.is_own, one.method, one.url) for one in traffic.left_out if one.url}
    places: dict[tuple[bool, str, str], list[int]] = {}
    for number, (own, method, url, _) in enumerate(requests):
        places.setdefault((own, method, url), []).append(number)
    for key, numbers in places.items():
        missing = [number for number in numbers if number not in remaining]
        # What was left out is said: of this path, between its first and its last request, or of any.
        assert not missing or key in named or key[0] in unnamed
        if key[0] not in unnamed:
            assert {numbers[0], numbers[-1]} <= set(remaining)
    assert sum(one.count for one in traffic.left_out) <= len(requests) - len(remaining)


@pytest.mark.slow
@given(others=REQUESTS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_others_cannot_push_out_a_request_of_the_tasks_site(tmp_path: Path, others: list[ExpectedRequest]) -> None:
    own: list[ExpectedRequest] = [(True, "POST", f"{SITE}/order?{number}", 300) for number in range(5)]
    foreign = [(False, method, url, size) for _, method, url, size in others]
    alone = recorded(tmp_path, own)
    among = recorded(tmp_path, [*foreign, *own])
    mine = [entry for entry in among.entries if "?" in entry["request"]["url"]]
    assert mine == list(alone.entries)
    assert not [one for one in among.left_out if one.is_own]


def test_a_late_request_belongs_to_the_step_in_which_it_began(tmp_path: Path) -> None:
    order = (True, "POST", f"{SITE}/order", 1)
    requests: list[ExpectedRequest | int] = [1, *[order] * 6, 2, order, order, 3, order, 4]
    traffic = recorded(tmp_path, requests)
    assert [entry["_step"] for entry in traffic.entries] == [1] * 6 + [3]
    assert [(one.url, one.count) for one in traffic.left_out] == [(f"{SITE}/order", 2)]


def test_a_full_file_still_says_who_sent_a_request(tmp_path: Path) -> None:
    traffic = recorded(tmp_path, [(False, "POST", f"{SITE}/order", 1_500)] * 6)
    (bare, *_) = [entry for entry in traffic.entries if entry.get("_headersLeftOut")]
    assert (bare["_sender"], bare["_bodySize"], bare["request"]["headers"]) == (EVIL, 1_500, [])


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 20_000, 200_000])
def test_a_flood_is_recorded_within_bounds(tmp_path: Path, size: int) -> None:
    limits = json.loads(begin_code(()).partition("begin(")[2].rstrip(")"))["limits"]
    flood = [(number % 2 == 0, "POST", f"{SITE}/{number % 900}", size) for number in range(14_000)]
    traffic = recorded(tmp_path, flood, limits)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 50_000_000
    assert traffic.entries[-1]["request"]["url"] == f"{SITE}/{13_999 % 900}"
    assert sum(one.count for one in traffic.left_out) > 0


WHOLE: list[list[dict[str, Any]]] = [
    [
        {"id": number, "began": 10 + number, "method": "POST", "url": f"{SITE}/{number}", "type": "fetch",
         "sender": {"document": SITE, **({"from": number - 1} if number else {})}, "fixed": {}, "body_awaited": True},
        {"id": number, "fixed": {"origin": SITE, "length": "3"}, "headers": [["Origin", SITE]]},
        {"id": number, "answered": 20, "status": 200, "response_headers": []},
        {"id": number, "post": {"text": "abc"}, "size": 3, "digest": "d", "body_awaited": False},
        {"id": number, "ended": 30, "body": {"text": "{}"}},
    ]
    for number in range(3)
]  # fmt: skip


def merged(folder: Path, parts: Sequence[dict[str, Any]], tail: bytes = b"") -> Traffic:
    lines = "".join(json.dumps(part) + "\n" for part in parts)
    (folder / "requests.jsonl").write_bytes(lines.encode() + tail)
    return RequestLog(folder).read()


@given(
    turns=st.permutations([number for number in range(3) for _ in WHOLE[0]]),
    tail=st.sampled_from((b"", b"{", b'{"id": 1, "status": 50')),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_of_several_requests_may_arrive_in_any_turn(tmp_path: Path, turns: list[int], tail: bytes) -> None:
    left = [iter(parts) for parts in WHOLE]
    expected = merged(tmp_path, [part for parts in WHOLE for part in parts])
    assert merged(tmp_path, [next(left[number]) for number in turns], tail) == expected


@given(places=st.lists(st.integers(0, len(WHOLE[0]) * 3 - 1), unique=True))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_missing_part_never_makes_a_sender_known(tmp_path: Path, places: list[int]) -> None:
    parts = [part for parts in WHOLE for part in parts]
    result = merged(tmp_path, [parts[place] for place in sorted(places)])
    began = {number for number in range(3) if len(WHOLE[0]) * number in places}
    assert len(result.entries) == len(began)
    for entry in result.entries:
        number = int(entry["request"]["url"].rpartition("/")[2])
        # A redirect whose earlier addresses are unknown is nobody's.
        assert entry["_sender"] == (SITE if set(range(number + 1)) <= began else None)
