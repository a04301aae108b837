"""What the judge itself asks of a task's site, where participants try to answer in the site's place."""

import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from helpers.browser.hostile_site import Handler, hostile_site, never_answers
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, finish, ref, tool_call
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge

pytestmark = pytest.mark.e2e

UNSEEN = "nobody sees this 4711"
# The shop keeps the order in its session, and what to redirect to for everyone.
SHOP = """<title>Shop</title><h1>Shop</h1>
  <button onclick="document.cookie = 'session=1234567890; path=/';
    localStorage.token = '&quot;t0k3n-of-shop&quot;'">Order</button>
  <button onclick="document.cookie = 'session=1234567890; path=/'; alert('Ordered')">Order loudly</button>
  <button onclick="setTimeout(() => { for (;;); }, 50)">Hang</button>
  <form method="post" action="/move"><input name="to" aria-label="Move to"><button>Move</button></form>"""
LIAR = """<title>Shop</title><script>
  const lie = JSON.stringify({ordered: true});
  window.fetch = async () => new Response(lie);
  Object.defineProperty(window, 'localStorage', {get: () => ({token: 'forged', getItem: () => 'forged'})});
</script><h1>Shop</h1>"""
ORDERED = {"kind": "fetch", "url": "/api/order", "response": {"ordered": True}}
BY_TOKEN = {"kind": "fetch", "url": "/api/token", "response": {"ordered": True}, "bearer": "localStorage:token"}
MOVED = {"kind": "fetch", "url": "/api/moved", "response": {"ordered": True}}
SLOW = {"kind": "fetch", "url": "/api/slow", "response": {"ordered": True}, "not": True}


def answer(handler: Handler, *, is_ordered: bool) -> None:
    body = json.dumps({"ordered": is_ordered, "note": UNSEEN}).encode()
    handler.send(body, Content_Type="application/json")


def by_cookie(handler: Handler) -> None:
    answer(handler, is_ordered="session=1234567890" in handler.headers.get("Cookie", ""))


def by_token(handler: Handler) -> None:
    answer(handler, is_ordered=handler.headers.get("Authorization") == "Bearer t0k3n-of-shop")


def always(handler: Handler) -> None:
    answer(handler, is_ordered=True)


def moving(moved: dict[str, str]) -> dict[str, Any]:
    """Pages by which the participant chooses where `/api/moved` leads."""

    def move(handler: Handler) -> None:
        moved["to"] = parse_qs(handler.body.decode())["to"][0]
        handler.redirect("/")

    def lead(handler: Handler) -> None:
        handler.redirect(moved.get("to", "/"))

    return {"/move": move, "/api/moved": lead}


def presses(*buttons: str, types: str = "") -> Script:
    """Presses buttons, after typing; then finishes."""

    def script(turn: ParticipantTurn) -> str:
        messages.append(turn.message.text)
        at = turn.n - bool(types)
        if at < 0:
            return tool_call("browser_type", ref=ref(turn, 'textbox "Move to"'), text=types)
        if at == len(buttons):
            return finish('{"ordered": true}')
        return tool_call("browser_click", ref=ref(turn, f'button "{buttons[at]}"'))

    messages: list[str] = []
    script.seen = messages  # type: ignore[attr-defined]
    return script


HONEST = ("the cookie's answer", "the token's answer", "a dialog at the end", "a hanging page at the end")
CHEATS = (
    "nothing is done",
    "no token is stored",
    "a redirect to a site of its own",
    "a redirect to a neighbour",
    "a redirect by backslash",
    "a page that answers itself",
    "a page that stores another token",
    "no answer in time",
)


@pytest.fixture(scope="module")
async def attempts_by_name(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    async def play(judge: LiveJudge) -> dict[str, Any]:
        own, near = evil.url.rstrip("/"), f"http://localhost:{evil.server_port}"
        tasks = {
            "the cookie's answer": Play(presses("Order"), shop.url, [ORDERED]),
            "the token's answer": Play(presses("Order"), shop.url, [BY_TOKEN]),
            "a dialog at the end": Play(presses("Order loudly"), shop.url, [ORDERED]),
            "a hanging page at the end": Play(presses("Order", "Hang"), shop.url, [ORDERED]),
            "nothing is done": Play(presses(), shop.url, [ORDERED]),
            "no token is stored": Play(presses("Order loudly"), shop.url, [BY_TOKEN]),
            "a redirect to a site of its own": Play(presses("Move", types=f"{own}/api"), shop.url, [MOVED]),
            "a redirect to a neighbour": Play(presses("Move", types=f"{near}/api"), shop.url, [MOVED]),
            "a redirect by backslash": Play(
                presses("Move", types=f"{own}\\@127.0.0.1:{shop.server_port}/api"), shop.url, [MOVED]
            ),
            "a page that answers itself": Play(presses(), f"{shop.url}liar", [ORDERED]),
            "a page that stores another token": Play(presses(), f"{shop.url}liar", [BY_TOKEN]),
            "no answer in time": Play(presses(), shop.url, [SLOW]),
        }
        scripts = [task.script for task in tasks.values()]
        done = await play_tasks(judge, tasks, judge_model="offline", off_site="allow")
        messages = [text for script in scripts for text in script.seen]  # type: ignore[attr-defined]
        return {"tasks": done, "told": messages, "evil": list(evil.paths)}

    pages = {
        "/": SHOP,
        "/liar": LIAR,
        "/api/order": by_cookie,
        "/api/token": by_token,
        "/api/slow": never_answers,
        **moving({}),
    }
    with hostile_site(pages) as shop, hostile_site({"/api": always}) as evil:
        return await with_judge(tmp_path_factory.mktemp("run"), play)


def task(attempts: dict[str, Any], name: str) -> PlayedTask:
    tasks: dict[str, PlayedTask] = attempts["tasks"]
    return tasks[name]


@pytest.mark.parametrize("name", HONEST)
def test_the_sites_own_answer_decides(attempts_by_name: dict[str, Any], name: str) -> None:
    assert task(attempts_by_name, name).verdict == ("success", "finished")


@pytest.mark.parametrize("name", CHEATS)
def test_only_the_site_itself_answers(attempts_by_name: dict[str, Any], name: str) -> None:
    assert task(attempts_by_name, name).verdict == ("failure", "finished")


def test_the_judge_asks_no_other_site(attempts_by_name: dict[str, Any]) -> None:
    assert "/api" not in attempts_by_name["evil"]
    for name in CHEATS[2:5]:
        (result,) = task(attempts_by_name, name).result()["fetched"]
        assert "is not on the task's site" in result["error"]


def test_the_participant_never_sees_an_answer(attempts_by_name: dict[str, Any]) -> None:
    (result,) = task(attempts_by_name, HONEST[0]).result()["fetched"]
    assert UNSEEN in result["body"]
    assert attempts_by_name["told"]
    assert not any(UNSEEN in text for text in attempts_by_name["told"])


def test_the_judges_own_request_is_not_one_of_the_attempt(attempts_by_name: dict[str, Any]) -> None:
    trace = json.loads((task(attempts_by_name, HONEST[0]).folder / "network.har").read_text())
    assert not any("/api/order" in entry["request"]["url"] for entry in trace["log"]["entries"])


def test_a_token_is_stored_nowhere(attempts_by_name: dict[str, Any]) -> None:
    files = [path for path in task(attempts_by_name, HONEST[1]).folder.rglob("*") if path.is_file()]
    assert files
    assert not any(b"t0k3n-of-shop" in path.read_bytes() for path in files)
