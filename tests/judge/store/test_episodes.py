"""Numbers, counts and retention of episodes, also after a kill at any point."""

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge.store.episodes as module
from helpers.episodes import files_below, folders_of
from judge.store.episodes import EpisodeStore, Retention, is_open, kept_counts, number_of, read_counts
from judge.store.layout import RunStore, TaskStore


def opened(folder: Path, retention: Retention | None = None) -> EpisodeStore:
    return EpisodeStore(RunStore(folder, "r1"), retention)


def ended(episodes: EpisodeStore, outcome: str | None = "success", task: str = "t1", size: int = 0) -> TaskStore:
    store = episodes.begin(task)
    store.begin()
    (store.folder / "trajectory" / "step_000.jpg").write_bytes(bytes(size))
    if outcome:
        store.write_result({"verdict": outcome})
    episodes.end(store)
    return store


def test_each_episode_has_a_number_and_one_task(tmp_path: Path) -> None:
    episodes = opened(tmp_path)
    first, second = episodes.begin("t1"), episodes.begin("t2")
    assert [(each.epoch, each.name, each.key, is_open(each)) for each in (first, second)] == [
        (1, "t1", "t1", True),
        (2, "t2", "t2.2", True),
    ]
    assert [each.folder for each in episodes.run.tasks()] == [first.folder, second.folder]


def test_of_many_episodes_the_newest_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    episodes = opened(tmp_path, Retention(episodes=3))
    for outcome in ("success", "failure", None, "aborted", "success", "unscored"):
        ended(episodes, outcome)
    assert folders_of(episodes) == [4, 5, 6]
    counts = read_counts(episodes.run)
    assert counts is not None
    assert counts.removed == {"t1": {"success": 1, "failure": 1, "interrupted": 1}}
    assert counts.remaining == {"t1": {"aborted": 1, "success": 1, "unscored": 1}}
    assert not [name for name in files_below(episodes.run.folder) if "new" in name or name.endswith("open.lock")]


def test_the_oldest_are_deleted_until_the_others_fit(tmp_path: Path) -> None:
    episodes = opened(tmp_path, Retention(size_bytes=2_500))
    for _ in range(4):
        ended(episodes, size=1_000)
    assert folders_of(episodes) == [3, 4]
    counts = read_counts(episodes.run)
    assert counts is not None
    assert 2_000 <= counts.removed_bytes <= 2_200


def test_an_open_episode_is_never_deleted(tmp_path: Path) -> None:
    episodes = opened(tmp_path, Retention(episodes=1))
    oldest = episodes.begin("t1")
    ended(episodes), ended(episodes)
    assert folders_of(episodes) == [1, 3]
    episodes.end(oldest)
    assert folders_of(episodes) == [3]


def test_with_a_retention_of_none_nothing_stays_and_no_number_is_used_again(tmp_path: Path) -> None:
    episodes = opened(tmp_path, Retention(episodes=0))
    for _ in range(3):
        ended(episodes)
    assert folders_of(episodes) == []
    assert ended(opened(tmp_path, Retention(episodes=0))).epoch == 4


def test_ending_an_episode_twice_counts_it_once(tmp_path: Path) -> None:
    episodes = opened(tmp_path)
    episodes.end(ended(episodes))
    counts = read_counts(episodes.run)
    assert counts is not None
    assert counts.ended == {"t1": {"success": 1}}


def test_several_threads_and_servers_share_the_numbers(tmp_path: Path) -> None:
    servers = [opened(tmp_path, Retention(episodes=5)) for _ in range(3)]
    with ThreadPoolExecutor(6) as threads:
        numbers = list(threads.map(lambda n: ended(servers[n % 3]).epoch, range(30)))
    assert sorted(numbers) == list(range(1, 31))
    counts = read_counts(servers[0].run)
    assert counts is not None
    assert (counts.last, number_of(counts.ended), number_of(counts.remaining)) == (30, 30, 5)
    assert kept_counts(servers[0].run) == counts.remaining


class Killed(BaseException):
    """Ends the process wherever it is."""


@pytest.mark.slow
@given(seed=st.integers(0, 10_000))
def test_wherever_a_server_is_killed_no_episode_is_lost_or_counted_twice(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    dice, folder = random.Random(seed), tmp_path_factory.mktemp("run")
    retention = Retention(episodes=dice.randrange(4), size_bytes=dice.choice((3_000, 1_000_000)))
    with pytest.MonkeyPatch.context() as patch:
        fuse: list[int] = []

        def fragile(name: str, of: Any = module) -> None:
            whole: Callable[..., Any] = getattr(of, name)

            def cut(*arguments: Any, **options: Any) -> Any:
                fuse[:] = [left - 1 for left in fuse]
                if fuse == [-1]:
                    raise Killed
                return whole(*arguments, **options)

            patch.setattr(of, name, cut)

        for name in ("write_json", "_delete", "size_of", "outcome_of", "locked"):
            fragile(name)
        fragile("rename", Path)
        fragile("unlink", Path)
        begun: list[int] = []
        for _ in range(6):
            # One server after the other; the kernel releases the locks of a killed one.
            server = None
            try:
                fuse[:] = [dice.randrange(60)]
                server = opened(folder, retention)
                playing = []
                for _ in range(dice.randrange(6)):
                    playing.append(server.begin(dice.choice(("t1", "t2"))))
                    begun.append(playing[-1].epoch)
                    if dice.random() < 0.7:
                        one = playing.pop(dice.randrange(len(playing)))
                        one.begin()
                        (one.folder / "trajectory" / "a").write_bytes(bytes(dice.randrange(2_000)))
                        one.write_result({"verdict": dice.choice(("success", "failure"))})
                        server.end(one)
            except Killed:
                pass
            fuse.clear()
            for stack in server._open.values() if server else ():
                stack.close()
        last = opened(folder, retention)
    counts = read_counts(last.run)
    assert counts is not None
    assert len(begun) == len(set(begun))
    # A kill may come after the number was given, and before anybody knew of it.
    assert number_of(counts.ended) == counts.last >= max(begun, default=0)
    assert kept_counts(last.run) == counts.remaining
    assert number_of(counts.remaining) <= retention.episodes
    assert len(folders_of(last)) == number_of(counts.remaining)
    assert files_below(last.run.episodes) == [name for name in files_below(last.run.episodes) if name[0] != "."]
    assert counts.kept_bytes == json.loads((last.run.folder / "episodes.json").read_text())["kept_bytes"]
