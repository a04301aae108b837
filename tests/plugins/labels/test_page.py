"""The page for labelling: what it shows and does not, to whom, and what it keeps."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from helpers.results import a_finished_run, a_result, a_step, a_verdict
from helpers.runs import a_png, write_synthetic_run
from judge.plugins.labels.label_files import LabelWord, label_file
from judge.plugins.labels.labelling import Labelling, begin
from judge.plugins.labels.page import label_routes
from judge.records.tasks import Task
from plugins.labels.labelled import a_hostile_run, a_run_to_label, say
from shared.pages import TOKEN_HEADER

HOSTILE = "</pre></textarea><script>alert(1)</script><img src=x onerror=alert(1)> \u202e"


@asynccontextmanager
async def opened(session: Labelling, peer: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(Starlette(routes=label_routes(session)), client=(peer, 50_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:9011") as client:
        yield client


async def send(client: httpx.AsyncClient, path: str, change: Any, **headers: str) -> httpx.Response:
    page = (await client.get("/attempt/1")).text
    token = re.search(r'data-token="([^"]+)"', page)
    assert token is not None
    known = {"Origin": "http://localhost:9011", TOKEN_HEADER: token[1], "Content-Type": "application/json"}
    return await client.post(path, json=change, headers=known | headers)


async def test_a_label_is_kept_at_once_and_the_next_open_attempt_follows(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path, 6)
    async with opened(begin([run], "anna", seed=1)) as client:
        assert (await client.get("/")).headers["location"] == "/attempt/1"
        answer = await send(client, "/label", {"place": 0, "label": "success", "note": "well", "seconds": 3.21})
        assert answer.json() == {"next": "/attempt/2", "labelled": 1}
        [line] = label_file(run, "anna").read_text().splitlines()
        assert '"label":"success","note":"well","seconds":3.2,"page":1,"blind":true' in line
        assert (await client.get("/")).headers["location"] == "/attempt/2"
        assert (await send(client, "/undo", {})).json() == {"next": "/attempt/1", "labelled": 0}
        for place in range(6):
            answer = await send(client, "/label", {"place": place, "label": "undecided"})
        assert answer.json() == {"next": "/done", "labelled": 6}
        # More labels cannot help here, only others.
        text = (await client.get("/done")).text
        assert "people left 6 attempts undecided: wabe label RUN --conflicts" in text
        assert "more labels needed" not in text


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"place": 99, "label": "success"}, 422),
        ({"place": -1, "label": "success"}, 422),
        ({"place": 0, "label": "good"}, 422),
        ({"place": 0, "label": "success", "note": "x" * 2001}, 422),
        ({"place": 0}, 422),
    ],
)
async def test_what_is_not_a_label_changes_nothing(tmp_path: Path, change: dict[str, Any], status: int) -> None:
    run = a_run_to_label(tmp_path, 3)
    async with opened(begin([run], "anna")) as client:
        assert (await send(client, "/label", change)).status_code == status
    assert not label_file(run, "anna").exists()


async def test_only_the_page_itself_on_this_machine_may_label(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path, 3)
    session, change = begin([run], "anna"), {"place": 0, "label": "success"}
    async with opened(session) as client:
        for headers in ({"Origin": "https://evil.test"}, {TOKEN_HEADER: "guess"}, {"Host": "evil.test"}):
            assert (await send(client, "/label", change, **headers)).status_code == 403
        for path in ("/", "/attempt/1", "/image/1/1", "/done"):
            assert (await client.get(path, headers={"Host": "evil.test"})).status_code == 403
    async with opened(session, peer="192.0.2.7") as client:
        assert (await client.get("/attempt/1")).status_code == 403
    assert not label_file(run, "anna").exists()


async def test_a_blind_page_tells_neither_the_verdict_nor_the_agent_nor_the_run(tmp_path: Path) -> None:
    attempts = [
        a_result(
            f"t{number}",
            verdict=a_verdict(outcome, reason="zqxj-reason", reason_code="zqxjcode", key_points=("zqxj-point",)),
            steps=(a_step(0, thought="zqxj-thought", flags=("zqxj_flag",)), a_step(1, line="<page> -> FINISH")),
            task=Task(task_id=f"t{number}", website="https://example.org/", task="Find it.", level="hard"),
            final_answer="42",
        )
        for number, outcome in enumerate(("success", "failure"))
    ]
    run = a_finished_run(tmp_path, *attempts, run_id="zqxj-run", judge_id="zqxjjudge-1")
    record = run.read_run() or {}
    identity = {"card_name": "zqxj-agent", "card_version": "zqxj1", "model": "zqxj-model", "name": "zqxj-name"}
    run.write_run(
        {**record, "identity": identity, "participants": {"zqxj_role": "http://zqxj/"}, "judge_model": "zqxj-judge"}
    )
    say(run, "bert", "t0", "failure", note="zqxj-other")
    for is_blind in (True, False):
        async with opened(begin([run], "anna", seed=1, is_blind=is_blind)) as client:
            pages = [(await client.get(f"/attempt/{number}")) for number in (1, 2)]
        for page in pages:
            assert page.status_code == 200
            assert "Find it." in page.text
            result = re.sub(r"<(style|script)\b.*?</\1>", "", page.text, flags=re.DOTALL) + str(page.headers)
            leaks = re.findall(r"zqxj\S*|\bt[01]\b|webjudge|\bhard\b|t-success|t-failure|\bpassed\b", result)
            assert bool(leaks) != is_blind, leaks
        # Apart from the place and the buttons, the two verdicts give the same page.
        plain = [
            re.sub(r'attempt/\d|image/\d|data-place="\d"|<a rel="(prev|next)".*?</a>', "", page.text) for page in pages
        ]
        plain = [re.sub(r"token=\"[^\"]+\"", "", page) for page in plain]
        assert (plain[0] == plain[1]) == is_blind


async def test_what_attempts_contain_is_escaped(tmp_path: Path) -> None:
    run = a_hostile_run(tmp_path, HOSTILE)
    async with opened(begin([run], "anna", is_blind=False)) as client:
        page = (await client.get("/attempt/1")).text
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page


async def test_a_picture_is_served_as_one_or_not_at_all(tmp_path: Path) -> None:
    run = write_synthetic_run(tmp_path, "run-1", tasks=1, steps=2, image=a_png(64, 36))
    session = begin([run], "anna")
    async with opened(session) as client:
        response = await client.get("/image/1/1")
        assert (response.headers["content-type"], response.headers["x-content-type-options"]) == (
            "image/png",
            "nosniff",
        )
        for path in ("/image/1/99", "/image/9/1", "/image/1/0"):
            assert (await client.get(path)).status_code == 404
        for picture in session.places[0].attempt.folder.glob("trajectory/*"):
            picture.write_text("<script>alert(1)</script>")
        assert (await client.get("/image/1/1")).status_code == 404


async def test_whoever_adjudicates_sees_what_others_said(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path, 4)
    labels: dict[str, LabelWord] = {"anna": "success", "bert": "failure"}
    for labeller, label in labels.items():
        say(run, labeller, "t2", label, note=f"note of {labeller}")
        say(run, labeller, "t3", "success")
    session = begin([run], "carla", conflicts=True)
    assert len(session.places) == 1
    async with opened(session) as client:
        page = (await client.get("/attempt/1")).text
        assert "note of anna" in page
        assert "note of bert" in page
        await send(client, "/label", {"place": 0, "label": "failure"})
    assert '"adjudicates":true' in label_file(run, "carla").read_text()
