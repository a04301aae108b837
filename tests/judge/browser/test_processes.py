"""Which processes belong to a browser, and seeing at once that one has ended."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.browser import processes
from judge.browser.processes import Process, Watch, end_family, family, is_browser, list_processes

FOLDER = Path("/tmp/wabe-browser-1")
SERVER = Process(10, 1, 10, f"node cli.js mcp --output-dir {FOLDER} --caps vision")
WRAPPER = Process(11, 10, 11, f"sh chromium --user-data-dir={FOLDER}/profile --x")
BROWSER = Process(12, 11, 11, f"chromium --user-data-dir={FOLDER}/profile --x")
ZYGOTE = Process(13, 12, 11, "chromium --type=zygote")
ORPHAN = Process(14, 1, 11, "chromium --type=gpu-process")
OTHER = Process(20, 1, 20, f"chromium --user-data-dir={FOLDER}0/profile")


def pids(processes: list[Process]) -> set[int]:
    return {process.pid for process in processes}


def test_a_family_is_recognised_by_folder_descent_and_group() -> None:
    everyone = [SERVER, WRAPPER, BROWSER, ZYGOTE, ORPHAN, OTHER]
    assert pids(family(everyone, FOLDER)) == {10, 11, 12, 13, 14}


def test_an_orphan_is_recognised_by_a_group_seen_before() -> None:
    assert pids(family([ORPHAN, OTHER], FOLDER, known_groups=frozenset({11}))) == {14}


def test_a_stranger_with_a_similar_folder_is_spared() -> None:
    assert family([OTHER], FOLDER) == []


def test_our_own_group_is_never_mistaken_for_the_browsers() -> None:
    ours = Process(os.getpid(), 1, 500, "python")
    sibling = Process(501, 1, 500, "editor")
    in_our_group = SERVER._replace(group=500)
    assert pids(family([ours, sibling, in_our_group], FOLDER)) == {10}


@pytest.mark.parametrize(("process", "main"), [(WRAPPER, True), (BROWSER, True), (ZYGOTE, False), (OTHER, False)])
def test_the_main_process_is_distinguished_from_its_helpers(process: Process, main: bool) -> None:
    assert is_browser(process, FOLDER) is main


def test_this_process_is_listed_with_its_parent() -> None:
    me = next(process for process in list_processes() if process.pid == os.getpid())
    assert (me.parent, me.group) == (os.getppid(), os.getpgrp())


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    code = "import sys; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, f"--user-data-dir={tmp_path}/profile"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_a_watch_sees_the_end_of_a_process(sleeper: subprocess.Popen[bytes]) -> None:
    watch = Watch([os.getpid(), sleeper.pid])
    assert watch.alive()
    sleeper.kill()
    sleeper.wait()
    assert not watch.alive()
    watch.close()


def test_a_watch_on_a_process_that_has_already_ended_is_not_alive(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    sleeper.wait()
    watch = Watch([sleeper.pid])
    assert not watch.alive()
    watch.close()


async def test_a_family_is_ended(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    assert await end_family(tmp_path, frozenset())
    assert family(list_processes(), tmp_path) == []


async def test_a_helper_that_started_while_its_browser_was_ended_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["sh", "-c", "sleep 60 & echo $!; wait", "sh", f"--user-data-dir={tmp_path}/profile"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as browser:
        assert browser.stdout is not None
        helper = int(browser.stdout.readline())
        seen = [[process for process in list_processes() if process.pid != helper]]
        monkeypatch.setattr(processes, "list_processes", lambda: seen.pop() if seen else list_processes())
        assert await end_family(tmp_path, frozenset())
    assert helper not in pids(list_processes())
