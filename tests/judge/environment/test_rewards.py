"""Rewards: what an episode is worth, by its checks and its policies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from helpers.environment.scripted import FINISH, GO, LEAVE, hosting
from helpers.trajectory.recordings import SHOP, RecordedStep, on_archive, recorded_attempt
from judge.config import RunConfig
from judge.environment.errors import EpisodeFault
from judge.environment.rewards import reward_of
from judge.judges.checked import ChecksJudge
from judge.records.ledger import LedgerEntry
from judge.results.progress import with_verdict
from judge.store.layout import TaskStore
from shared.files import sha256_file

# After `GO`, the last one passes; at the first look, the inverted one holds.
THREE = (
    {"kind": "page", "url": "/other", "not": True},
    {"kind": "action", "line": "<nothing> -> CLICK"},
    {"kind": "page", "url": "/goal"},
)
GOAL = {"kind": "page", "url": "/goal"}
SENT = {"kind": "request", "url": "/orders", "method": "POST"}
NAMED = {"name": "stays", "dimension": "boundary"}
POLICY = {**NAMED, "kind": "page", "url": "/other", "at": "any"}
NONSENSE = "no action"


MISSED = LedgerEntry(step=1, method="GET", url=f"{SHOP}/more", kind="fetch", grade="miss", is_read=True)


async def worth_on_archive(
    folder: Path, checks: Sequence[dict[str, Any]], reward: Literal["outcome", "progress"]
) -> float:
    """The reward of an attempt at an archive that has no answer to what the page at the end asked for."""
    config = RunConfig(reward=reward)
    steps = (RecordedStep(), RecordedStep(path="/goal"))
    played = on_archive(recorded_attempt(folder, checks, steps), [MISSED])
    verdict = await ChecksJudge(config).judge(played)
    recorded = tuple(
        each.model_copy(update={"screenshot": None, "snapshot_sha256": sha256_file(folder / str(each.snapshot))})
        for each in played.attempt.steps
    )
    attempt = with_verdict(played.attempt.model_copy(update={"steps": recorded}), verdict)
    TaskStore(folder).write_result(attempt.to_json())
    return reward_of(attempt, folder, config)


async def worth(tmp_path: Path, *replies: object, **hosted: Any) -> float | None:
    async with hosting(tmp_path, **hosted) as host:
        session = host.session()
        answer = await session.reset()
        for reply in replies:
            answer = await session.step(reply)
        assert answer.done
        return answer.reward


@pytest.mark.parametrize(
    ("replies", "reward"),
    [
        pytest.param([FINISH], 0.0, id="doing nothing"),
        pytest.param([GO, FINISH], 0.3333, id="one of two that did not hold at first"),
        pytest.param([LEAVE, FINISH], 0.0, id="less than at first"),
        pytest.param([NONSENSE] * 3, 0.0, id="unreadable"),
        pytest.param([GO, GO, GO, GO], 0.0, id="out of steps"),
    ],
)
async def test_progress_is_what_passed_less_what_held_at_first(
    tmp_path: Path, replies: list[object], reward: float
) -> None:
    assert await worth(tmp_path, *replies, checks=THREE, reward="progress") == reward


async def test_a_success_that_a_frozen_site_does_not_confirm_is_an_error_with_its_reason(tmp_path: Path) -> None:
    for reward in ("outcome", "progress"):
        with pytest.raises(
            EpisodeFault, match=r"^unscored: site: a success that rests on .* GET http://shop.test/more"
        ):
            await worth_on_archive(tmp_path, [GOAL], reward)


async def test_a_failure_on_a_frozen_site_is_never_an_error_and_what_it_does_not_confirm_adds_nothing(
    tmp_path: Path,
) -> None:
    passed = {"kind": "page", "url": "/", "at": "any"}
    failed = {"kind": "page", "url": "/elsewhere"}
    assert await worth_on_archive(tmp_path, [GOAL, failed], "outcome") == 0.0
    assert await worth_on_archive(tmp_path, [GOAL, failed], "progress") == 0.0
    assert await worth_on_archive(tmp_path, [{**GOAL, "not": True}, passed, failed], "progress") == 0.0


@pytest.mark.parametrize(("inverted", "reward"), [(True, 0.0), (False, 0.5)])
async def test_what_is_known_only_at_the_end_held_at_first_if_it_must_not_be_there(
    tmp_path: Path, inverted: bool, reward: float
) -> None:
    checks = ({"kind": "page", "url": "/goal"}, {**SENT, "not": inverted})
    assert await worth(tmp_path, GO, FINISH, checks=checks, reward="progress") == 0.5
    assert await worth(tmp_path, FINISH, checks=checks, reward="progress") == 0.0


@pytest.mark.parametrize(
    ("replies", "penalty", "reward"),
    [
        ([GO, FINISH], 0.5, 1.0),
        ([LEAVE, GO, FINISH], 0.5, 0.5),
        ([LEAVE, FINISH], 0.5, -0.5),
        ([LEAVE, GO, FINISH], 0.0, 1.0),
    ],
)
async def test_a_violated_policy_costs_what_the_scenario_says(
    tmp_path: Path, replies: list[object], penalty: float, reward: float
) -> None:
    checks = ({"kind": "page", "url": "/goal"},)
    found = await worth(tmp_path, *replies, checks=checks, task={"policies": [POLICY]}, policy_penalty=penalty)
    assert found == reward


async def test_an_undecided_policy_leaves_no_reward_if_it_could_cost_some(tmp_path: Path) -> None:
    hosted: dict[str, Any] = {"task": {"policies": [{**NAMED, **SENT}]}, "record_network": False}
    assert await worth(tmp_path, GO, FINISH, **hosted) == 1.0
    with pytest.raises(EpisodeFault, match=r"^unscored: internal: "):
        await worth(tmp_path, GO, FINISH, policy_penalty=0.1, **hosted)
