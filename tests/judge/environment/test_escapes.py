"""Whatever a policy does in a real browser to get rid of a 0, the reward is 0 and never an error."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from helpers.cases import each
from helpers.ports import free_port
from judge.environment.host import EnvironmentHost, HostSettings
from judge.environment.opening import open_host
from judge.environment.session import EnvironmentSession, StepResult

pytestmark = pytest.mark.e2e
LINKS = ("dialog", "downloads", "leave", "popups", "reload")
PAGES = {
    "index": "".join(f'<p><a href="/{name}.html">{name}</a>' for name in (*LINKS, "flood")),
    "dialog": "<script>setTimeout(() => { alert('one'); confirm('two'); prompt('three'); }, 1)</script>",
    "popups": "<script>for (let n = 0; n < 3; n++) open('/index.html?' + n)</script>x",
    # Keeps the browser's server busy, so that the page's process must be killed.
    "flood": "<script>setTimeout(() => { for (;;) console.error('x'.repeat(1000)) }, 1)</script>x",
    "reload": "<script>location.reload()</script>x",
    "downloads": "<a id=a href=/index.html download=x.bin>x</a><script>for (const n of [1, 2, 3]) a.click()</script>",
    "leave": "<script>addEventListener('beforeunload', e => { e.preventDefault(); e.returnValue = 'x' })</script>x",
}
FINISH = {"tool": "finish", "params": {"answer": "done"}}
NESTED: Any = "x"
for _ in range(21):
    NESTED = {"a": NESTED}


def goes(url: str) -> dict[str, Any]:
    return {"tool": "browser_navigate", "params": {"url": url}}


@pytest.fixture(scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EnvironmentHost]:
    folder = tmp_path_factory.mktemp("escapes")
    site = folder / "site"
    site.mkdir()
    for name, content in PAGES.items():
        (site / f"{name}.html").write_text(f"<!doctype html><title>{name}</title>{content}")
    port = free_port()
    scenario = folder / "escapes.toml"
    scenario.write_text(f"""
[green_agent]
endpoint = "http://127.0.0.1:{free_port()}"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:{free_port()}"
[[sites]]
name = "escapes"
endpoint = "http://127.0.0.1:{port}"
static = true
cmd = "python -m http.server {port} --bind 127.0.0.1 --directory {site}"
[config]
judge_model = "offline"
max_steps = 30
[[tasks]]
task_id = "unreachable"
website = "http://127.0.0.1:{port}/index.html"
task = "Open a page that does not exist."
checks = [{{ kind = "page", url = "/goal.html" }}]
""")
    async with open_host(scenario, HostSettings()) as opened:
        yield opened


async def tried(host: EnvironmentHost, *replies: object) -> float | None:
    """The reward of a policy that tries these, and then finishes."""
    session = host.session()
    try:
        answer = await session.reset()
        for reply in (*replies, *[FINISH] * 3):
            if answer.done:
                break
            answer = await session.step(reply)
        assert answer.done
        return answer.reward
    finally:
        await session.close()


async def clicked(session: EnvironmentSession, answer: StepResult, name: str) -> StepResult:
    assert answer.message is not None
    line = next(line for line in answer.message.page.snapshot.splitlines() if f'link "{name}"' in line)
    return await session.step({"tool": "browser_click", "params": {"target": line.partition("[ref=")[2].split("]")[0]}})


@pytest.mark.parametrize(
    "replies",
    [
        pytest.param(
            [goes("chrome://crash"), goes("chrome://kill"), goes("javascript:while(1);"), goes("file:///etc/passwd")],
            id="addresses that break a browser",
        ),
        pytest.param(
            [goes("data:text/html,<script>for(;;);</script>"), goes("about:blank"), goes("http://127.0.0.1:9/")],
            id="addresses elsewhere",
        ),
        pytest.param(
            [goes("http://127.0.0.1:1/"), goes("http://no-such-host.invalid/"), {"tool": "browser_navigate_back"}],
            id="addresses where nobody answers",
        ),
        pytest.param(["\ud800" * 9, NESTED, "a" * 1_000_000], id="unreadable replies"),
        pytest.param(["x" * 1_200_000], id="a reply above the limit"),
        pytest.param([{"tool": "browser_close"}], id="closing the browser"),
        pytest.param(
            [
                {"tool": "browser_wait_for", "params": {"time": 2}},
                {"tool": "browser_tabs", "params": {"action": "close", "index": 0}},
                {"tool": "browser_press_key", "params": {"key": "Control+w"}},
                {"tool": "browser_press_key", "params": {"key": "F12"}},
            ],
            id="waiting, and closing tabs",
        ),
    ],
)
async def test_what_a_policy_writes_is_worth_nothing_and_no_error(host: EnvironmentHost, replies: list[object]) -> None:
    assert await tried(host, *replies) == 0.0


# To replace a flooded tab takes a minute of CPU. `test_odd_pages.py` shows that an attempt goes on after it.
@pytest.mark.parametrize("names", each([(LINKS,), (("flood",),)], suite=[(LINKS,)]), ids=lambda names: names[-1])
async def test_what_a_policy_finds_on_the_site_is_worth_nothing_and_no_error(
    host: EnvironmentHost, names: tuple[str, ...]
) -> None:
    session = host.session()
    answer = await session.reset()
    assert answer.message is not None
    start = answer.message.page.url
    for name in names:
        answer = await clicked(session, answer, name)
        for _ in range(4):
            page = answer.message.page if answer.message else None
            assert page is not None
            if page.dialog is not None:
                answer = await session.step({"tool": "browser_handle_dialog", "params": {"accept": True}})
            elif page.url != start:
                answer = await session.step(goes(start))
    answer = await session.step(FINISH)
    assert (answer.done, answer.reward) == (True, 0.0)
    await session.close()
