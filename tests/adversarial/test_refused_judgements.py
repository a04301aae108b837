"""A lost task made unjudgeable: the participant writes or shows what the judge model's provider refuses."""

import base64
import io
import json
from typing import Any

import pytest
from PIL import Image, ImageStat

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, always_yes, finish, ref, tool_call
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge
from helpers.llm.servers import Answer, ModelCall, openai_answer
from judge.network.policy import NetworkPolicy

BAD = "gunpowder"
FIELD = 'textbox "Field"'
DARK = "<title>Dark</title><body style='background:black'><h1>Dark</h1><a href='/'>Home</a>"
HOME = """<title>Home</title><h1>Welcome</h1><input aria-label="Field"
oninput="if (['paint', 'qq'].includes(value)) document.body.style.background = 'black'; made.textContent += value">
<button id="made">Add </button> <a href="/dark">Dark</a> <a href="{elsewhere}">Elsewhere</a>"""
# What the participant does, and at which step the model answers.
CAUSED = {
    "types it": "text",
    "names an address with it": "text",
    "answers with it": "text",
    "types half of it twice and presses what the page makes of it": "after_text",
    "types what makes the page a refused picture": "after_text",
    "presses keys that make the page a refused picture": "after_text",
    "goes to a refused picture elsewhere by its address": "off_site",
    "goes to a refused picture elsewhere by a link": "off_site",
}
OPEN = "follows a link to a refused picture of the site"
HARMLESS = "writes and shows nothing that is refused"


def types(text: str) -> Script:
    return lambda turn: tool_call("browser_type", ref=ref(turn, FIELD), text=text)


def clicks(element: str) -> Script:
    return lambda turn: tool_call("browser_click", ref=ref(turn, element))


def calls(tool: str, **params: str) -> Script:
    return lambda _: tool_call(tool, **params)


def doing(*scripts: Script, answer: str = "done") -> Script:
    def script(turn: ParticipantTurn) -> str:
        reply = scripts[turn.n](turn) if turn.n < len(scripts) else finish(answer)
        assert isinstance(reply, str)
        return reply

    return script


def filtered(call: ModelCall, number: int) -> Answer:
    """A provider that refuses a word and dark pictures, before a model that says yes to everything."""
    parts = [part for message in call.body["messages"] for part in message["content"] if isinstance(part, dict)]
    is_refused = any(BAD in part.get("text", "") for part in parts) or any(
        _is_dark(part["image_url"]["url"]) for part in parts if part["type"] == "image_url"
    )
    return openai_answer(None, finish="content_filter") if is_refused else always_yes(call, number)


def _is_dark(url: str) -> bool:
    picture = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("L")
    return ImageStat.Stat(picture).mean[0] < 80


@pytest.fixture(scope="module")
async def attempts_by_way(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlayedTask]:
    """One attempt in each way, judged by a model that would say success to all of them."""

    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        twice = (types("gun"), types("powder"), clicks('button "Add'))
        key = calls("browser_press_key", key="q")
        scripts = {
            "types it": doing(types(f"the {BAD}")),
            "names an address with it": doing(calls("browser_navigate", url=f"{site.url}?q={BAD}")),
            "answers with it": doing(clicks(FIELD), answer=f"I found {BAD}"),
            "types half of it twice and presses what the page makes of it": doing(*twice),
            "types what makes the page a refused picture": doing(types("paint")),
            "presses keys that make the page a refused picture": doing(clicks(FIELD), key, key),
            "goes to a refused picture elsewhere by its address": doing(
                calls("browser_navigate", url=f"{elsewhere.url}dark")
            ),
            "goes to a refused picture elsewhere by a link": doing(clicks('link "Elsewhere"')),
            OPEN: doing(clicks('link "Dark"'), clicks('link "Home"')),
            HARMLESS: doing(types("my own words"), clicks('button "Add')),
        }
        plays = {
            f"Reach the goal: case {number}.": Play(script, site.url) for number, script in enumerate(scripts.values())
        }
        attempts = await play_tasks(judge, plays, judge_sees_answer=True)
        return dict(zip(scripts, attempts.values(), strict=True))

    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        hostile_site({"/dark": DARK}) as elsewhere,
        hostile_site({"/dark": DARK}) as site,
    ):
        # The guard lets this machine's other sites pass, as it would public ones.
        monkeypatch.setattr(NetworkPolicy, "refuse_address", lambda *_: None)
        monkeypatch.setattr("judge.network.guard.is_this_machine", lambda _: False)
        site.pages["/"] = HOME.format(elsewhere=f"{elsewhere.url}dark")
        return await with_judge(tmp_path_factory.mktemp("run"), play, filtered)


@pytest.mark.e2e
@pytest.mark.parametrize("way", CAUSED)
def test_a_refusal_that_the_participant_brought_about_is_scored_zero(
    attempts_by_way: dict[str, PlayedTask], way: str
) -> None:
    attempt = attempts_by_way[way]
    assert attempt.verdict == ("failure", "finished"), attempt.entry
    assert (attempt.result()["reason_code"], attempt.entry["reason_code"]) == ("withheld_evidence",) * 2
    assert attempt.entry["reason"].startswith("the judge model refused to judge until ")
    (withheld,) = _evidence(attempt)["withheld"]
    assert (withheld["question"], withheld["step"]) == ("outcome", CAUSED[way])


@pytest.mark.e2e
def test_a_refusal_of_the_site_s_own_page_leaves_the_task_unscored(attempts_by_way: dict[str, PlayedTask]) -> None:
    attempt = attempts_by_way[OPEN]
    assert attempt.verdict == ("unscored", "finished"), attempt.entry
    assert "reason_code" not in attempt.result()


@pytest.mark.e2e
def test_what_is_not_refused_is_judged_as_ever(attempts_by_way: dict[str, PlayedTask]) -> None:
    attempt = attempts_by_way[HARMLESS]
    assert attempt.verdict == ("success", "finished"), attempt.entry
    assert "withheld" not in _evidence(attempt)


def _evidence(attempt: PlayedTask) -> dict[str, Any]:
    (file,) = (attempt.folder / "verdicts").glob("webjudge-*.json")
    return dict(json.loads(file.read_text())["evidence"])
