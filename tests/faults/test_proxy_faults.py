"""The operator's own proxy stops working."""

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.cases import each
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, to_the_goal
from helpers.proxies import PASSWORD, FakeProxy, fake_proxy
from judge.network.upstream_proxy import UpstreamProxy

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


def recovers_once_noticed(proxy: FakeProxy, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the proxy know its password again as soon as the judge has found the problem; these are the problems."""
    results: list[str] = []
    ask = UpstreamProxy.problem

    async def problem(upstream: UpstreamProxy) -> str | None:
        if (text := await ask(upstream)) is not None:
            results.append(text)
            proxy.has_forgotten = False
        return text

    monkeypatch.setattr(UpstreamProxy, "problem", problem)
    return results


# What differs by scheme is how a refusal is noticed, which the test above shows for both.
@pytest.mark.parametrize("scheme", each(["http", "socks5"], suite=["socks5"]))
async def test_an_attempt_after_the_proxy_has_recovered_counts(
    judge: LiveJudge, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    episodes: set[int] = set()
    async with fake_proxy(scheme) as proxy:
        result = recovers_once_noticed(proxy, monkeypatch)

        def script(turn: ParticipantTurn) -> str:
            if not episodes:
                proxy.has_forgotten = True
            episodes.add(turn.episode)
            return to_the_goal(turn)

        with hostile_site() as site:
            assessed = await judge.play(script, site.url, max_task_retries=1, upstream_proxy=proxy.url(scheme))
    (problem,) = result
    assert "does not accept the user name and password" in problem
    assert assessed.verdict == ("success", "finished"), assessed.entry
    assert assessed.result()["attempt"] == 2
    assert episodes == {0, 1}
    # The attempt that counts has no trace of the fault.
    assert assessed.entry["error"] is None
    files = [path for path in assessed.folder.rglob("*") if path.is_file()]
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []
