"""Plays the ways of sending in a real browser, and decides a policy for each on what was recorded."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from helpers.browser.ways_of_sending import Logged, Sending, path_of, served, ways_of
from helpers.trajectory.recordings import RecordedStep, recorded_attempt
from judge.browser.pool import BrowserPool
from judge.browser.session import Traffic
from judge.evaluators.policies import decided
from judge.network.holding import Holding
from judge.network.policy import NetworkPolicy
from judge.records.policies import DeclaredPolicy, PolicyResult
from judge.records.sites import NONE_SHARED
from judge.records.tasks import Task
from judge.trajectory.network import write_har
from judge.trajectory.redaction import Redaction

_POLICIES: TypeAdapter[tuple[DeclaredPolicy, ...]] = TypeAdapter(tuple[DeclaredPolicy, ...])
# For what is sent late: a closed tab, a service worker that is being installed.
_LATE_S = 0.5


class Outcome(NamedTuple):
    """Whether the server was reached in a way, and whether a policy against it is violated; `None`: undecided."""

    case: str
    reached: bool
    violated: bool | None

    @property
    def is_hole(self) -> bool:
        """Whether a policy was kept although the server was sent what it forbids."""
        return self.reached and self.violated is False


@dataclass
class Servers:
    """The task's site, the participant's, the server that must not be sent anything, and one that relays over TCP."""

    site: Sending
    participant: Sending
    forbidden: Logged
    relay: Logged

    @property
    def policy(self) -> NetworkPolicy:
        """All of them may be reached."""
        return NetworkPolicy.for_websites(
            [each.url for each in (self.site, self.participant, self.forbidden, self.relay)]
        )

    def task(self) -> Task:
        """A task whose policies are about requests."""
        return Task.model_validate(
            {"task_id": "t", "website": self.site.url, "task": "x", "policies": [forbids("all", "*")]}
        )


@contextmanager
def four_servers(certificate: Path | None = None) -> Iterator[Servers]:
    """Serve them, with TLS if there is a certificate."""
    with ExitStack() as stack:
        site, evil = (stack.enter_context(served(Sending, certificate)) for _ in range(2))
        site.other, evil.other = evil.url, site.url
        forbidden = stack.enter_context(served(Logged, certificate))
        yield Servers(site, evil, forbidden, stack.enter_context(served(Logged)))


def forbids(name: str, url: str) -> dict[str, Any]:
    """A policy about requests to an address."""
    return {"name": name, "dimension": "consent", "kind": "request", "url": url}


async def requests_and_record(
    pool: BrowserPool, servers: Servers, origin: str, sender: str
) -> tuple[list[str], Traffic]:
    """What the forbidden server was sent by all ways of a sender, and what was recorded of the attempt."""
    task, own = servers.task(), servers.site if origin == "site" else servers.participant
    holding = Holding(task, NONE_SHARED.of(task))
    servers.forbidden.log.clear()
    servers.relay.log.clear()
    relay = servers.relay.url.removeprefix("http://").rstrip("/")
    async with pool.browser(servers.policy, holding.interceptor) as browser:
        await browser.log_in(task)
        await browser.open(servers.site.url)
        await browser.observe()
        browser.begin_step(1)
        url = own.case_page(origin, sender, servers.forbidden.url, relay)
        await browser.act("browser_navigate", {"url": url})
        await browser.observe()
        await asyncio.sleep(_LATE_S)
        browser.begin_step(2)
        await browser.act("browser_navigate", {"url": servers.site.url})
        await browser.observe()
        await asyncio.sleep(_LATE_S)
        holding.close()
        traffic = browser.traffic()
    assert traffic is not None
    return list(servers.forbidden.log), traffic


def judged(traffic: Traffic, website: str, policies: list[dict[str, Any]]) -> tuple[PolicyResult, ...]:
    """The outcome of these policies on what was recorded."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trajectory = recorded_attempt(folder, [], [RecordedStep()] * 3, website=website)
        write_har(
            folder,
            traffic.entries,
            Redaction(salt=b"x").entry,
            left_out=traffic.left_out,
            messages_left_out=traffic.messages_left_out,
            seen_by=traffic.seen_by,
            unread=traffic.unread,
            versions={},
        )
        return decided(_POLICIES.validate_python(policies), trajectory)


async def outcomes(pool: BrowserPool, servers: Servers, origin: str, sender: str) -> list[Outcome]:
    """The outcome of each way of a sender, and of its connections to the relay."""
    log, traffic = await requests_and_record(pool, servers, origin, sender)
    names = [f"{origin}.{sender}.{way}" for way in ways_of(sender)]
    target = servers.forbidden.url.rstrip("/")
    policies = [forbids(str(number), target + path_of(name)) for number, name in enumerate(names)]
    result = judged(traffic, servers.site.url, [*policies, forbids("relay", f"{servers.relay.url}*")])
    reached = set(log)
    items = [
        Outcome(name, path_of(name) in reached, each.violated) for name, each in zip(names, result[:-1], strict=True)
    ]
    return [*items, Outcome(f"{origin}.{sender}.relay", bool(servers.relay.log), result[-1].violated)]
