"""Log-ins by headers: the site of a task gets them, and nothing else does, whatever its pages do."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from helpers.browser.hostile_site import Handler, Site, hostile_site
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, participant, ref, some_tasks, tool_call
from judge.runner.restarts import restarts_of
from judge.scenario.models import SiteEntry

NAME, VALUE = "X-Auto-Login", "admin:pass-word"


@contextmanager
def recording_site(content: str = "") -> Iterator[tuple[Site, list[tuple[str, str | None]]]]:
    """A site that notes who asked with which log-in, and says in its page whether it is the right one."""
    seen: list[tuple[str, str | None]] = []

    def answer(handler: Handler) -> None:
        seen.append((handler.path.partition("?")[0], handler.headers[NAME]))
        if handler.path.startswith("/away"):
            handler.redirect(handler.path.partition("?")[2])
        else:
            who = "Inside" if handler.headers[NAME] == VALUE else "Outside"
            handler.send(f"<title>Home</title><h1>{who}</h1>{content}".encode())

    with hostile_site(dict.fromkeys(("/", "/away", "/pixel", "/frame"), answer)) as site:
        yield site, seen


@pytest.mark.e2e
async def test_v14_only_the_tasks_site_gets_the_headers_and_the_service_beside_it_resets_it(judge: LiveJudge) -> None:
    resets: list[tuple[str, str | None]] = []

    def init(handler: Handler) -> None:
        resets.append((handler.command, handler.headers[NAME]))
        handler.send(b"{}", 200, Content_Type="application/json")

    def leave(turn: ParticipantTurn) -> str:
        return tool_call("browser_click", ref=ref(turn, 'link "Away"')) if turn.n == 0 else finish("left")

    with recording_site() as (other, elsewhere), hostile_site({"/init": init}) as service:
        content = f"<img src={other.url}pixel><iframe src={other.url}frame></iframe><a href=/away?{other.url}>Away</a>"
        with recording_site(content) as (site, seen):
            tasks = some_tasks(site.url, 2)
            for task in tasks:
                task["allowed_sites"] = [other.url.rstrip("/")]
                task["checks"] = [{"kind": "text", "contains": "Inside", "at": "any"}]
                task["http_credentials"] = {"headers": {NAME: VALUE}}
            entry = {"name": "shop", "endpoint": site.url, "reset_url": f"{service.url}init"}
            async with participant(leave) as url, restarts_of([SiteEntry.model_validate(entry)], []) as restarts:
                assessed = await judge.ask(url, tasks, site_restarts=restarts)
    assessed.check()
    await judge.is_clean()
    assert [(entry["verdict"], entry["flags"]) for entry in assessed.detail["tasks"]] == [("success", [])] * 2
    # The service is not the site.
    assert resets == [("POST", None)] * 2
    # Also where the site itself leads to another one.
    assert {login for _, login in seen} == {VALUE}
    assert {path for path, _ in elsewhere} == {"/", "/pixel", "/frame"}
    assert {login for _, login in elsewhere} == {None}
    assert [
        str(path) for path in assessed.folder.rglob("*") if path.is_file() and b"pass-word" in path.read_bytes()
    ] == []
