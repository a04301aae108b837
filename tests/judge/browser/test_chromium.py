"""Where the browser is found, whether its sandbox can be on, and what a killed judge left behind."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judge.browser import installed, requests
from judge.browser.chromium import BrowserSettings
from judge.browser.folders import BrowserFolder, sweep
from judge.browser.installed import FoundBrowser, find_browser, sandbox_state, version_of
from judge.config import RunConfig
from shared.errors import ConfigError
from shared.settings import Settings


@pytest.fixture(autouse=True)
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_SYSTEM", "Linux")


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def settings(tmp_path: Path, **environ: str) -> Settings:
    return Settings.from_environ({"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin"), **environ})


def own_build(tmp_path: Path, revision: int, *, shell: bool = True) -> Path:
    name = ("chromium_headless_shell-", "chrome-headless-shell-linux64/chrome-headless-shell")
    folder, inside = name if shell else ("chromium-", "chrome-linux64/chrome")
    return program(tmp_path / "home/.cache/ms-playwright" / f"{folder}{revision}" / inside)


def test_the_configured_path_comes_first(tmp_path: Path) -> None:
    mine = program(tmp_path / "my-chromium")
    browser = find_browser(str(mine), settings(tmp_path, WABE_BROWSER_PATH=str(program(tmp_path / "other"))))
    assert (browser.path, browser.source) == (mine, "config.browser_path")


def test_the_environment_comes_second(tmp_path: Path) -> None:
    own_build(tmp_path, 1)
    mine = program(tmp_path / "mine")
    browser = find_browser(None, settings(tmp_path, WABE_BROWSER_PATH=str(mine)))
    assert (browser.path, browser.source) == (mine, "WABE_BROWSER_PATH")


def test_a_configured_name_is_looked_up_on_the_path(tmp_path: Path) -> None:
    there = program(tmp_path / "bin" / "my-chrome")
    assert find_browser("my-chrome", settings(tmp_path)).path == there


@pytest.mark.parametrize("configured", ["/nowhere/chrome", "no-such-program", "."])
def test_a_configured_path_that_is_not_a_program_is_an_error_that_names_it(tmp_path: Path, configured: str) -> None:
    own_build(tmp_path, 1)
    with pytest.raises(ConfigError, match=r"config\.browser_path"):
        find_browser(configured, settings(tmp_path))


def test_playwrights_own_build_comes_before_the_path(tmp_path: Path) -> None:
    program(tmp_path / "bin/chromium")
    build = own_build(tmp_path, 7)
    browser = find_browser(None, settings(tmp_path))
    assert (browser.path, browser.source) == (build, "Playwright's own Chromium")


def test_the_newest_of_playwrights_builds_is_taken(tmp_path: Path) -> None:
    own_build(tmp_path, 999)
    newest = own_build(tmp_path, 1255)
    assert find_browser(None, settings(tmp_path)).path == newest


def test_playwrights_full_build_is_accepted(tmp_path: Path) -> None:
    build = own_build(tmp_path, 7, shell=False)
    assert find_browser(None, settings(tmp_path)).path == build


def test_playwrights_registry_may_be_elsewhere(tmp_path: Path) -> None:
    own_build(tmp_path, 7)
    elsewhere = program(tmp_path / "pw/chromium-3/chrome-linux64/chrome")
    browser = find_browser(None, settings(tmp_path, PLAYWRIGHT_BROWSERS_PATH=str(tmp_path / "pw")))
    assert browser.path == elsewhere


def test_the_lean_build_comes_first_on_the_path(tmp_path: Path) -> None:
    for name in ("google-chrome", "chromium", "chromium-headless-shell"):
        program(tmp_path / "bin" / name)
    browser = find_browser(None, settings(tmp_path))
    assert browser.source == "chromium-headless-shell on PATH"


def test_without_any_browser_the_error_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="playwright install chromium"):
        find_browser(None, settings(tmp_path))


USUAL = {"/proc/sys/user/max_user_namespaces": "15000"}


@pytest.mark.parametrize(
    ("user_id", "files", "allowed", "on", "reason"),
    [
        (1000, {}, True, True, "available"),
        (1000, {}, None, True, "available"),
        (1000, {}, False, False, "forbidden"),
        (0, {}, True, False, "root"),
        (1000, {"/.dockerenv": ""}, True, True, "available"),
        (1000, {"/.dockerenv": ""}, False, False, "by the container"),
        (1000, {"/run/.containerenv": ""}, None, False, "container"),
        (1000, {"/proc/sys/user/max_user_namespaces": "0"}, True, False, "disabled"),
        (1000, {"/proc/sys/kernel/unprivileged_userns_clone": "0"}, True, False, "disabled"),
        (1000, {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, True, False, "AppArmor"),
    ],
)
def test_the_sandbox_is_off_only_where_it_cannot_be_on(
    user_id: int, files: dict[str, str], allowed: bool | None, on: bool, reason: str
) -> None:
    state = sandbox_state(
        Settings(),
        system="Linux",
        user_id=user_id,
        read_line=lambda path: {**USUAL, **files}.get(path),
        can_unshare=lambda _: allowed,
    )
    assert state[0] is on
    assert reason in state[1]


@pytest.mark.parametrize(("allows_chroot", "on"), [(True, True), (False, False)])
def test_a_container_that_forbids_chroot_in_a_user_namespace_has_no_sandbox(
    tmp_path: Path, allows_chroot: bool, on: bool
) -> None:
    unshare = program(tmp_path / "bin" / "unshare")
    # As with Podman and no capabilities: a user namespace can be created, but not with another root.
    unshare.write_text(f'#!/bin/sh\ncase "$*" in *--root=/*) exit {int(not allows_chroot)};; esac\n')
    usual = Settings.from_environ({"PATH": f"{unshare.parent}:/usr/bin:/bin", "container": "podman"})
    state = sandbox_state(usual, system="Linux", user_id=1000, read_line=USUAL.get)
    assert state == (on, state[1])
    assert ("chroot" in state[1]) is not on


@pytest.mark.parametrize(
    ("script", "version"),
    [("echo 'Chromium  156.0 '", "Chromium 156.0"), ("exit 1", "unknown"), ("echo $KEY", "unknown")],
)
def test_the_version_is_read_without_passing_any_key_to_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, version: str
) -> None:
    monkeypatch.setenv("KEY", "secret")
    path = program(tmp_path / "bin/chromium")
    path.write_text(f"#!/bin/sh\n{script}\n")
    assert version_of(find_browser(None, settings(tmp_path)), {}) == version


OWNER = "from judge.browser.folders import BrowserFolder; f = BrowserFolder(); print(f.path, flush=True); input()"


@pytest.mark.parametrize("is_recorded", [True, False])
def test_requests_are_recorded_only_where_that_is_configured(tmp_path: Path, is_recorded: bool) -> None:
    browser = FoundBrowser(path=tmp_path, source="test", sandbox=False, sandbox_reason="test")
    settings = BrowserSettings(found=browser, config=RunConfig(record_network=is_recorded))
    scripts = json.loads(settings.config_file())["browser"]["initPage"]
    assert (str(requests.RECORDER) in scripts) is is_recorded


def test_another_version_of_the_server_may_be_named_by_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "node_modules" / "@playwright" / "mcp"
    cli = program(folder / "cli.js")
    mine = str(program(tmp_path / "chromium"))
    for location in (folder, cli):
        named = settings(tmp_path, WABE_BROWSER_PATH=mine, WABE_MCP_SERVER=str(location))
        assert str(cli) in BrowserSettings.from_config(RunConfig(), named).command(tmp_path)
    missing = settings(tmp_path, WABE_BROWSER_PATH=mine, WABE_MCP_SERVER=str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"WABE_MCP_SERVER: .* does not exist \(npm install @playwright/mcp"):
        BrowserSettings.from_config(RunConfig(), missing)


@pytest.fixture
def base(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Short, because a long one is replaced by the system's own.
    with tempfile.TemporaryDirectory(prefix="wabe-t-", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


@contextmanager
def owned_elsewhere() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that owns a folder."""
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        try:
            yield owner, Path(owner.stdout.readline().strip())
        finally:
            owner.kill()


def test_a_folder_is_gone_once_it_is_removed(base: Path) -> None:
    folder = BrowserFolder()
    (folder.path / "profile").mkdir()
    folder.remove()
    assert list(base.iterdir()) == []


def test_the_folder_of_a_killed_owner_is_removed(base: Path) -> None:
    with owned_elsewhere() as (owner, folder):
        owner.kill()
        owner.wait()
        assert folder.parent == base
        assert sweep() == 1
        assert not folder.exists()


def test_the_folder_of_a_living_owner_stays(base: Path) -> None:
    with owned_elsewhere() as (_, folder):
        assert sweep() == 0
        assert folder.is_dir()


def test_our_own_folder_stays(base: Path) -> None:
    folder = BrowserFolder()
    assert sweep() == 0
    assert folder.path.is_dir()
    folder.remove()


def test_a_folder_that_nobody_ever_locked_stays(base: Path) -> None:
    (base / "wabe-browser-strange").mkdir()
    assert sweep() == 0
    assert (base / "wabe-browser-strange").is_dir()


def test_a_lock_that_is_a_link_is_not_followed(base: Path, tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (base / "wabe-browser-link").mkdir()
    (base / "wabe-browser-link" / "owner.lock").symlink_to(tmp_path / "target")
    assert sweep() == 0
    assert (base / "wabe-browser-link").is_dir()


def test_a_process_that_still_uses_the_folder_is_ended(base: Path) -> None:
    with owned_elsewhere() as (owner, folder):
        owner.kill()
        owner.wait()
        sleeper = [sys.executable, "-c", "input()", f"--user-data-dir={folder}/profile"]
        with subprocess.Popen(sleeper, stdin=subprocess.PIPE, start_new_session=True) as browser:
            assert sweep() == 1
            assert browser.wait(timeout=10) == -9
