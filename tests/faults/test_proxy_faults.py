"""The operator's own proxy stops working."""

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, to_the_goal
from helpers.proxies import PASSWORD, fake_proxy

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_proxy_that_no_longer_accepts_its_password_is_a_fault_that_names_it(
    judge: LiveJudge, scheme: str
) -> None:
    async with fake_proxy(scheme) as proxy:

        def script(turn: ParticipantTurn) -> str:
            proxy.has_forgotten = True
            return to_the_goal(turn)

        with hostile_site() as site:
            assessed = await judge.play(script, site.url, max_task_retries=0, upstream_proxy=proxy.url(scheme))
        (entry,) = assessed.detail["tasks"]
        assert (entry["verdict"], entry["stop_reason"]) == ("aborted", "environment_fault"), entry
        assert f"the proxy {scheme}://127.0.0.1:{proxy.port} does not accept" in entry["error"]
    files = [path for path in assessed.folder.rglob("*") if path.is_file()]
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []
