"""What logs a browser in is nowhere but in the browser: not on disk, not in a message, not in a log or report."""

import json
import logging
from pathlib import Path
from urllib.parse import quote

import pytest

from helpers.browser.hostile_site import Handler, Page, Site, hostile_site, never_answers
from helpers.episode.live_judge import FAST, LiveJudge, ParticipantTurn, finish, participant, ref, tool_call
from judge.report.build import make_report
from judge.runner.follow import request_assessment
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from judge.store.layout import RunStore
from shared.settings import Settings

SECRETS = ("cookie-Zq81", "token-Zq82", "user-Zq83", "password-Zq84")
BASIC = "dXNlci1acTgzOnBhc3N3b3JkLVpxODQ="  # of user and password
# A shop for members, which sends what it was given wherever a site may send it.
MEMBERS = """<title>Members</title><p id=said role=status>guest</p><button onclick="
    if (document.cookie.includes('cookie-Zq81')) said.textContent = 'member';
    const token = localStorage.token;
    fetch('/api?token=' + token, {headers: {Authorization: 'Bearer ' + token}});
    fetch('/api', {method: 'POST', body: new URLSearchParams({token})});
    fetch('/api', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({token})})">
    enter</button>"""

SCENARIO = """
[green_agent]
endpoint = "{judge}"
[[participants]]
role = "white_agent"
endpoint = "{participant}"
[[sites]]
name = "shop"
endpoint = "{site}"
storage_state = "login/shop.json"
http_credentials = {{ username = "${{SHOP_USER}}", password = "${{SHOP_PASSWORD}}" }}
[config]
max_steps = 4
[[tasks]]
task_id = "finished"
website = "{site}"
task = "Enter."
start_urls = ["{site}members", "{site}members?2"]
checks = [{{ kind = "text", contains = "member" }}]
[[tasks]]
task_id = "environment_fault"
website = "{site}"
task = "Enter."
start_urls = ["{site}members", "{site}silent"]
checks = [{{ kind = "text", contains = "member" }}]
"""


def members(handler: Handler) -> None:
    if handler.headers["Authorization"] == f"Basic {BASIC}":
        handler.send(MEMBERS.encode())
    else:
        handler.send(b"<title>Outside</title>", 401, WWW_Authenticate='Basic realm="x"')


def answers(handler: Handler) -> None:
    handler.send(b"{}", Content_Type="application/json", Set_Cookie="session=cookie-Zq81; HttpOnly")


PAGES: dict[str, Page] = {"/members": members, "/api": answers, "/silent": never_answers}


def enters(turn: ParticipantTurn) -> str:
    return tool_call("browser_click", ref=ref(turn, 'button "enter"')) if turn.n == 0 else finish()


def write_scenario(folder: Path, site: Site, judge: str, agent: str) -> Path:
    state = {
        "cookies": [{"name": "session", "value": "cookie-Zq81", "domain": "127.0.0.1", "path": "/"}],
        "origins": [{"origin": site.url.rstrip("/"), "localStorage": [{"name": "token", "value": "token-Zq82"}]}],
    }
    (folder / "login").mkdir(parents=True)
    (folder / "login" / "shop.json").write_text(json.dumps(state))
    path = folder / "scenario.toml"
    path.write_text(SCENARIO.format(judge=judge, participant=agent, site=site.url))
    return path


def places_of_secrets(folder: Path, *texts: str) -> list[str]:
    """Every file under `folder`, and every text, that holds a secret as it is or as part of an address."""
    words = [word.encode() for secret in (*SECRETS, BASIC) for word in {secret, quote(secret)}]
    results = [str(path) for path in folder.rglob("*") if path.is_file() and any(w in path.read_bytes() for w in words)]
    results += [str(path) for path in folder.rglob("*") if any(w.decode() in path.name for w in words)]
    return results + [text[:300] for text in texts if any(word in text.encode() for word in words)]


@pytest.mark.e2e
async def test_no_file_message_or_log_holds_what_logs_a_browser_in(
    judge: LiveJudge, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    messages: list[str] = []
    environ = Settings.from_environ({"SHOP_USER": "user-Zq83", "SHOP_PASSWORD": "password-Zq84"})

    def script(turn: ParticipantTurn) -> str:
        messages.append(turn.message.text)
        return enters(turn)

    with hostile_site(PAGES) as site:
        async with participant(script) as agent:
            scenario = write_scenario(tmp_path_factory.mktemp("scenario"), site, judge.url, agent)
            request = json.loads(make_plan(RunOptions(scenario=scenario), environ).request)
            request["config"] |= {**FAST, "judge_model": "offline", "run_id": "r"}
            outcome = await request_assessment(
                judge.url, json.dumps(request), lambda event: messages.append(str(event))
            )
    store = RunStore(judge.output_dir, "r")
    make_report([store])
    for entry in outcome.results[0]["detail"]["tasks"]:
        ends = entry["task_id"]
        assert (entry["stop_reason"], entry["success"]) == (ends, ends == "finished"), entry
    assert "/api?token=token-Zq82" in site.paths
    assert (judge.output_dir / "tasks.sqlite").is_file()
    assert places_of_secrets(judge.output_dir, *messages, caplog.text, json.dumps(outcome.results)) == []


async def test_the_request_itself_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text(json.dumps({"password": SECRETS[3]}))
    assert places_of_secrets(tmp_path, BASIC) == [str(tmp_path / "request.json"), BASIC]
