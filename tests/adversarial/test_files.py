"""Uploads and downloads as a task's evidence, with the real browser."""

import hashlib
import json
from itertools import product
from pathlib import Path

import pytest

from adversarial.file_plays import CASES, FILES, WAYS_OUT, FilePlayer, file_site, file_tasks
from helpers.browser.download_pages import ORDERS, attached
from helpers.browser.hostile_site import Handler, Page, hostile_site
from helpers.cases import each
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, participant, ref, some_tasks, tool_call
from helpers.plugins import verify_run
from judge.browser.settle import SettleMode
from judge.network import guard
from judge.network.policy import NetworkPolicy
from judge.store.layout import RunStore
from judge.trajectory.network import read_har

pytestmark = pytest.mark.e2e

# One page of each mechanism: a chooser that the page replaces, a drop, a navigation, a link, a PDF.
SOME = ("replaced", "frame", "attachment", "generated")


def files_left(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "downloads").glob("*"))]


# How a page is waited for changes when a file is taken, and not what is made of it: one of each direction in real time.
IN_REAL_TIME = ("replaced", "attachment")
MODES = ("page-time", "real-time")
SUITE = [(SOME, "page-time")]


@pytest.mark.parametrize(
    ("names", "settle"),
    each([(SOME, "page-time"), (IN_REAL_TIME, "real-time"), *product((tuple(CASES),), MODES)], suite=SUITE),
)
async def test_the_right_files_pass_and_others_fail(judge: LiveJudge, names: tuple[str, ...], settle: str) -> None:
    judge.files = FILES
    with hostile_site(file_site()) as site:
        tasks = file_tasks(site.url, {name: CASES[name] for name in names})
        async with participant(FilePlayer()) as url:
            assessed = await judge.ask(url, tasks, judge_model="offline", settle=settle, max_parallel=2, max_steps=8)
    verdicts = {entry["task_id"]: entry["verdict"] for entry in assessed.detail["tasks"]}
    expected = {
        f"{name}-{way}": "success" if way == "right" else "failure" for name in names for way in ("right", "wrong")
    }
    assert verdicts == expected, json.dumps([assessed.result(each)["key_points"] for each in verdicts], indent=1)
    assert verify_run(RunStore(judge.output_dir, assessed.folder.name)).mismatches == ()
    results = assessed.folder / "results"
    assert files_left(results / "attachment-right") == [b"id,total\nL-7,40\nL-9,12\n"]
    (post,) = (e for e in read_har(results / "replaced-right" / "network.har").entries if e.request.method == "POST")
    assert [(one.file_name, one.size, one.sha256) for one in post.files] == [
        ("cv.pdf", len(FILES["cv.pdf"]), hashlib.sha256(FILES["cv.pdf"]).hexdigest())
    ]
    declared = assessed.result("replaced-right")["files"]
    assert declared[0] == {"name": "cv.pdf", "size": 300_020, "sha256": post.files[0].sha256}
    assert "<file chooser> -> UPLOAD: cv.pdf" in assessed.result("replaced-right")["action_history"]


# A guest book with an open redirect: what is posted becomes a link.
GUEST_BOOK = """<title>Guest book</title><form id="f"><input aria-label="Link"><button>Post</button></form>
<ul id="l"></ul><script>f.onsubmit = event => {
  event.preventDefault();
  const link = document.createElement('a');
  link.href = link.textContent = f.elements[0].value;
  l.append(link);
};</script>"""


def sent_elsewhere(handler: Handler) -> None:
    handler.redirect(handler.path.partition("?")[2])


async def test_a_file_from_the_participants_own_server_is_not_the_sites(
    judge: LiveJudge, settle: SettleMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("judge.plugins.downloads")
    content = ORDERS.encode()
    pages: dict[str, Page] = {"/": GUEST_BOOK, "/go": sent_elsewhere}
    own_pages: dict[str, Page] = {"/orders.csv": attached("orders.csv", content, "text/csv")}
    with hostile_site(pages) as site, hostile_site(own_pages) as own:
        # Played on this machine, its server stands for one on the public web.
        monkeypatch.setattr(NetworkPolicy, "refuse_address", lambda *_: None)
        monkeypatch.setattr(guard, "is_this_machine", lambda _: False)
        links = {"own server": f"{own.url}orders.csv", "site's redirect": f"{site.url}go?{own.url}orders.csv"}
        facts = {"name": "orders.csv", "type": "text/csv", "size": len(content), "text": {"contains": "L-7"}}
        check = {"kind": "download", **facts, "sha256": hashlib.sha256(content).hexdigest()}
        trials = [(name, extra) for name in links for extra in ({}, {"from": [own.url.rstrip("/")]})]
        tasks = [
            {**task, "task": f"Post: {name}, {number}", "checks": [check | extra]}
            for number, (task, (name, extra)) in enumerate(zip(some_tasks(site.url, 4), trials, strict=True))
        ]
        posted: dict[int, str] = {}

        def posts_and_clicks(turn: ParticipantTurn) -> str:
            text = turn.observation.instruction or ""
            link = posted.setdefault(turn.episode, next((links[name] for name in links if name in text), ""))
            steps = (
                lambda: tool_call("browser_type", ref=ref(turn, 'textbox "Link"'), text=link, submit=True),
                lambda: tool_call("browser_click", ref=ref(turn, f'link "{link}"')),
                finish,
            )
            return steps[turn.n]()

        async with participant(posts_and_clicks) as url:
            assessed = await judge.ask(url, tasks, judge_model="offline", settle=settle, max_steps=4)
    results = [assessed.result(f"t{number}") for number in range(4)]
    assert [one["verdict"] for one in results] == ["failure", "success"] * 2, json.dumps(results)
    assert all("is not the task's site" in one["reason"] for one in results[::2])


async def test_no_way_leads_to_another_file_of_this_machine(judge: LiveJudge) -> None:
    judge.files = FILES
    ways = list(WAYS_OUT.values())
    messages: list[str | None] = []

    def tries(turn: ParticipantTurn) -> str:
        messages.append(turn.observation.feedback)
        if turn.n == 0:
            return tool_call("browser_click", ref=ref(turn, 'button "Your CV"'))
        return ways[turn.n - 1] if turn.n <= len(ways) else finish()

    with hostile_site(file_site()) as site:
        task = {**some_tasks(f"{site.url}plain")[0], "files": ["cv.pdf"], "checks": [{"kind": "page", "url": "/plain"}]}
        async with participant(tries) as url:
            assessed = await judge.ask(url, [task], judge_model="offline", max_steps=len(ways) + 5)
        assert not site.was_requested("/upload")
    steps = assessed.result()["steps"]
    assert [step["outcome"]["ok"] for step in steps[1:-1]] == [False] * len(ways)
    unknown = [text for text in messages if text and "there is no file" in text]
    assert len(unknown) >= 20
    # No message to the participant contains anything of this machine.
    assert not any("wabe-browser" in (text or "") or "root:" in (text or "") for text in messages)
