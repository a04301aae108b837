"""Random ways to an address that kills the browser: whose fault that is, compared with an oracle."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adversarial.blame_plays_live import fault_of, play_live, two_sites
from helpers.cases import each
from helpers.episode.blame_plays import blame_of, blame_play
from helpers.episode.live_judge import LiveJudge
from helpers.episode.several_tasks import with_judge

# The first three have both parties; the scripted browser plays every way.
REAL_PLAYS = (3, 6)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_crash_of_a_scripted_browser_is_the_fault_of_who_led_it_there(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    play = blame_play(random.Random(seed))
    assert blame_of(play, tmp_path_factory.mktemp("play")) == play.fault_of, play


@pytest.mark.e2e
@pytest.mark.own_browser
@pytest.mark.parametrize("count", each(REAL_PLAYS, suite=REAL_PLAYS[:1]))
async def test_a_crash_of_a_real_browser_is_the_fault_of_who_led_it_there(tmp_path: Path, count: int) -> None:
    chance = random.Random(25)
    plays = [blame_play(chance) for _ in range(count)]

    async def play(judge: LiveJudge) -> list[str]:
        return [fault_of(task) for task in await play_live(judge, plays, sites)]

    with two_sites() as sites:
        result = await with_judge(tmp_path, play)
    assert result == [each.fault_of for each in plays]
