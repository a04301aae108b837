"""Each attempt has an instance of its sites for itself, which is reset for it and reached by its own requests only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.ports import free_port
from judge.config import RunConfig
from judge.episode.instances import SiteInstances, waiting_notes
from judge.episode.reset import ResetFailed, SiteTurns, SiteUse
from judge.network.policy import NetworkPolicy
from judge.records.sites import place_of
from judge.records.tasks import Task

pytestmark = pytest.mark.slow

SHOP, BANK = "http://127.0.0.1:9180", "https://bank.example"


@dataclass
class Instance:
    """A site's instance, which remembers what it was asked, and for which host; a broken one cannot be reset."""

    seen: list[str] = field(default_factory=list)
    is_broken: bool = False
    address: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        host = head.partition("\r\nhost: ")[2].partition("\r\n")[0]
        self.seen.append(f"{head.split()[0]} {head.split()[1]} at {host}")
        writer.write(b"HTTP/1.1 %d OK\r\nContent-Length: 0\r\n\r\n" % (500 if self.is_broken else 204))
        await writer.drain()
        writer.close()


@pytest.fixture
async def shops() -> AsyncIterator[list[Instance]]:
    """Three instances of a shop. Nothing listens at the shop's own address."""
    async with AsyncExitStack() as stack:
        instances = [Instance(address=f"http://127.0.0.1:{free_port()}") for _ in range(3)]
        for each in instances:
            place = place_of(each.address)
            assert place is not None
            await stack.enter_async_context(await asyncio.start_server(each.serve, place.host, place.port))
        yield instances


def turns_at(shops: list[Instance], **config: Any) -> tuple[SiteTurns, Task, str]:
    """The turns, a task on the shop, and the shop's own address."""
    site = f"http://127.0.0.1:{free_port()}"
    resets = {"site_resets": {site: f"{site}/reset"}} if config.pop("is_reset", True) else {}
    settings = {**resets, "site_instances": {site: [shop.address for shop in shops]}, **config}
    policy_for = lambda task: NetworkPolicy.for_websites([task.website, *task.allowed_sites])  # noqa: E731
    return SiteTurns(RunConfig(**settings), policy_for), Task(task_id="t", website=f"{site}/", task="x"), site


async def play_on(turns: SiteTurns, task: Task, ends: asyncio.Event, begun: list[SiteUse]) -> None:
    async with turns.turn(task, is_first=True) as turn:
        begun.append(turn)
        await ends.wait()


async def until(begun: list[SiteUse], count: int) -> None:
    async with asyncio.timeout(20):
        while len(begun) < count:
            await asyncio.sleep(0.01)


async def test_as_many_attempts_are_played_at_once_as_there_are_instances(shops: list[Instance]) -> None:
    turns, task, site = turns_at(shops)
    ends, is_started = asyncio.Event(), list[SiteUse]()
    playing = [asyncio.create_task(play_on(turns, task, ends, is_started)) for _ in range(5)]
    await until(is_started, 3)
    # Time enough for another one to begin, if it could.
    await asyncio.sleep(0.1)
    assert {turn.instances[site] for turn in is_started} == {shop.address for shop in shops}
    assert len(is_started) == turns.at_once(task) == 3
    ends.set()
    await asyncio.gather(*playing)
    assert len(is_started) == 5
    assert not any(turn.shares_state for turn in is_started)
    host = site.removeprefix("http://")
    assert sorted(seen for shop in shops for seen in shop.seen) == [f"post /reset at {host}"] * 5


async def test_an_attempts_policy_leads_to_its_own_instance(shops: list[Instance]) -> None:
    turns, task, site = turns_at(shops)
    async with turns.turn(task, is_first=True) as one, turns.turn(task, is_first=True) as two:
        place = place_of(site)
        assert place is not None
        assert [turn.policy.served_by(place) for turn in (one, two)] == [place_of(shop.address) for shop in shops[:2]]
        assert set(one.policy.instances) == {place_of(shop.address) for shop in shops}


async def test_an_instance_whose_reset_fails_is_put_aside_and_the_others_are_played_on(shops: list[Instance]) -> None:
    turns, task, site = turns_at(shops)
    shops[0].is_broken = True
    with pytest.raises(ResetFailed, match="could not be reset: POST /reset answered 500") as failure:
        async with turns.turn(task, is_first=True):
            pass
    assert failure.value.instances == {site: shops[0].address}
    for _ in range(4):
        async with turns.turn(task, is_first=False) as turn:
            assert turn.instances[site] != shops[0].address
    assert len(shops[0].seen) == 1


async def test_the_last_instance_stays_because_it_may_recover(shops: list[Instance]) -> None:
    turns, task, site = turns_at(shops[:2])
    for shop in shops[:2]:
        shop.is_broken = True
        with pytest.raises(ResetFailed):
            async with turns.turn(task, is_first=True):
                pass
    shops[1].is_broken = False
    async with turns.turn(task, is_first=False) as turn:
        assert turn.instances == {site: shops[1].address}


async def test_whether_a_site_works_again_is_asked_of_the_attempts_own_instance(shops: list[Instance]) -> None:
    turns, task, site = turns_at(shops)
    shops[1].is_broken = True
    results = [await turns.works_again(task, {site: shop.address}) for shop in shops]
    assert results == [True, False, True]
    assert [len(shop.seen) for shop in shops] == [2, 1, 2]
    # One that works again is lent again.
    shops[1].is_broken = False
    assert await turns.works_again(task, {site: shops[1].address})
    async with turns.turn(task, is_first=True), turns.turn(task, is_first=True), turns.turn(task, is_first=True):
        pass


async def test_a_question_about_an_instance_waits_until_its_next_attempt_has_ended(shops: list[Instance]) -> None:
    turns, task, _ = turns_at(shops[:1])
    async with turns.turn(task, is_first=True) as turn:
        asking = asyncio.create_task(turns.works_again(task, turn.instances))
        await asyncio.sleep(0.05)
        assert len(shops[0].seen) == 1
    assert await asking


async def test_an_instance_that_cannot_be_opened_or_reset_is_put_aside(shops: list[Instance]) -> None:
    turns, task, site = turns_at(shops, is_reset=False)
    turns.put_aside({site: shops[0].address})
    async with turns.turn(task, is_first=True) as one, turns.turn(task, is_first=True) as two:
        assert [turn.instances[site] for turn in (one, two)] == [shop.address for shop in shops[1:]]
        # Neither is disturbed by the other one, although the site is not reset.
        assert (one.shares_state, two.shares_state, turns.can_reset(task)) == (False, False, False)
    turns, task, site = turns_at(shops)
    turns.put_aside({site: shops[0].address})
    async with turns.turn(task, is_first=True) as turn:
        assert turn.instances[site] == shops[0].address


async def test_a_cancelled_attempt_returns_its_instance(shops: list[Instance]) -> None:
    turns, task, _ = turns_at(shops[:1])
    begun = list[SiteUse]()
    for number in range(1, 4):
        playing = asyncio.create_task(play_on(turns, task, asyncio.Event(), begun))
        waiting = asyncio.create_task(play_on(turns, task, asyncio.Event(), begun))
        await until(begun, number)
        for each in (waiting, playing):
            each.cancel()
        await asyncio.gather(playing, waiting, return_exceptions=True)
        assert len(begun) == number


async def test_a_task_elsewhere_has_no_instance_and_reaches_none(shops: list[Instance]) -> None:
    turns, _, _ = turns_at(shops)
    async with turns.turn(Task(task_id="o", website="https://example.org/", task="x"), is_first=True) as turn:
        assert (turn.instances, turn.policy.routes) == ({}, ())
        assert len(turn.policy.instances) == 3


async def test_a_frozen_site_needs_no_instance(shops: list[Instance]) -> None:
    site = SHOP
    config = RunConfig(site_instances={site: [shop.address for shop in shops]})
    turns = SiteTurns(config, lambda task: NetworkPolicy.for_websites([task.website]), lambda _: True)
    async with turns.turn(Task(task_id="t", website=site, task="x"), is_first=True) as turn:
        assert turn.instances == {}
    assert turns.at_once(Task(task_id="t", website=site, task="x")) is None


@given(
    wishes=st.lists(st.sets(st.sampled_from([SHOP, BANK])), max_size=12),
    counts=st.tuples(st.integers(1, 3), st.integers(0, 2)),
    pauses=st.lists(st.integers(0, 3), min_size=12, max_size=12),
)
@settings(max_examples=100, deadline=None)
async def test_no_two_attempts_ever_have_the_same_instance_and_all_have_their_turn(
    wishes: list[set[str]], counts: tuple[int, int], pauses: list[int]
) -> None:
    names = {SHOP: [f"http://s{n}" for n in range(counts[0])], BANK: [f"https://b{n}" for n in range(counts[1])]}
    instances = SiteInstances({site: addresses for site, addresses in names.items() if addresses})
    used: set[str] = set()
    done = list[int]()

    async def attempt(number: int) -> None:
        async with instances.lent(wishes[number]) as lent:
            own = {lent.get(site, site) for site in wishes[number]}
            assert not own & used
            used.update(own)
            for _ in range(pauses[number]):
                await asyncio.sleep(0)
            used.difference_update(own)
        done.append(number)

    async with asyncio.timeout(20):
        await asyncio.gather(*map(attempt, range(len(wishes))))
    assert sorted(done) == list(range(len(wishes)))


def test_fewer_instances_than_attempts_at_once_means_waiting_and_the_user_learns_it() -> None:
    tasks = [Task(task_id=name, website=SHOP, task="x") for name in "abc"]
    config = RunConfig(site_instances={SHOP: ["http://127.0.0.1:1", "http://127.0.0.1:2"]}, max_parallel=4)
    assert waiting_notes(tasks, config) == (
        f"{SHOP} has 2 instances, for 3 attempts at once: attempts there wait for a free one",
    )
    assert waiting_notes(tasks[:2], config) == ()
    assert waiting_notes(tasks, config.model_copy(update={"max_parallel": 2})) == ()
