"""Finds the browser: the configured one, Playwright's own Chromium, or an installed Chromium or Chrome."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from judge.config import RunConfig
from shared.errors import ConfigError
from shared.models import Record
from shared.settings import Settings

_SYSTEM = platform.system()
# The headless shell first: a smaller download, faster to start, and it renders the same pages.
_PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
)
_MAC_PROGRAMS = tuple(f"{app}.app/Contents/MacOS/{app}" for app in ("Chromium", "Google Chrome", "Microsoft Edge"))
_WINDOWS_PROGRAMS = tuple(
    f"{app}.exe"
    for app in ("Chromium/Application/chrome", "Google/Chrome/Application/chrome", "Microsoft/Edge/Application/msedge")
)
_SHELL_NAME = re.compile(r"headless[-_]?shell", re.IGNORECASE)
BrowserBuild = Literal["any", "shell", "full"]
_BROWSER_NAME = re.compile(r"chrom|edge|brave|vivaldi|opera|browser|headless[-_]?shell", re.IGNORECASE)
# As `playwright install chromium` lays them out; the older layout of the full browser is `chrome-linux`.
_OWN_BUILDS = (
    ("chromium_headless_shell-", ("chrome-headless-shell-*/chrome-headless-shell*", "chrome-*/headless_shell*")),
    ("chromium-", ("chrome-*/chrome", "chrome-*/chrome.exe", "chrome-mac*/*.app/Contents/MacOS/*")),
)
_PROBE_TIMEOUT_S = 10
_AS_SANDBOX = ("--user", "--map-root-user", "--root=/")
_REMEDY = (
    f"run `{sys.executable} -m playwright install chromium`, install Chromium or Chrome, or set browser_path or"
    " WABE_BROWSER_PATH"
)


class FoundBrowser(Record):
    """A browser to run. `source` says where it was found; `sandbox_reason` why its sandbox is on or off."""

    path: Path
    source: str
    sandbox: bool
    sandbox_reason: str


def find_browser(configured: str | None, settings: Settings, *, build: BrowserBuild = "any") -> FoundBrowser:
    """The browser to use: `configured` (`config.browser_path`), then `WABE_BROWSER_PATH`, then the first found.

    Raises `ConfigError` if a configured path is not a program, or if no browser (of this `build`) is installed.
    """
    if configured:
        path, source = configured_browser(configured, settings), "config.browser_path"
    elif settings.browser_path:
        path, source = _program(settings.browser_path, "WABE_BROWSER_PATH", settings), "WABE_BROWSER_PATH"
    else:
        fitting = (each for each in _candidates(settings) if build in ("any", kind_of(each[0])))
        runnable = (candidate for candidate in fitting if _is_runnable(candidate[0]))
        if (first := next(runnable, None)) is None:
            what = {"any": "no browser", "shell": "no headless shell", "full": "no full browser"}[build]
            raise ConfigError(f"{what} found", remedy=_REMEDY)
        path, source = first
    if build != "any" and kind_of(path) != build:
        problem = f"{str(path)[:300]!r} is {'the headless shell' if build == 'full' else 'a full browser'}"
        remedy = f"name {'a full browser' if build == 'full' else 'a headless shell'}, or leave it out"
        raise ConfigError(problem, key=source, remedy=remedy)
    sandbox, reason = sandbox_state(settings)
    return FoundBrowser(path=path, source=source, sandbox=sandbox, sandbox_reason=reason)


def wanted_by(config: RunConfig) -> BrowserBuild:
    """The kind of browser that the settings need."""
    if config.browser == "headed" or config.headless == "new":
        return "full"
    return "shell" if config.headless == "shell" else "any"


def kind_of(path: Path) -> BrowserBuild:
    """Whether a program is the headless shell or a full browser."""
    names = (path.name, Path(os.path.realpath(path)).name)
    return "shell" if any(_SHELL_NAME.search(name) for name in names) else "full"


def configured_browser(configured: str, settings: Settings) -> Path:
    """The program that `config.browser_path` names. Raises `ConfigError` if it cannot be run or is not a browser.

    Recognised by its name, or by its link target's, because validating a scenario must not start a program.
    """
    path = _program(configured, "config.browser_path", settings)
    if not any(_BROWSER_NAME.search(name) for name in (path.name, Path(os.path.realpath(path)).name)):
        raise ConfigError(
            f"{configured[:300]!r} does not look like Chromium or a browser built on it",
            key="config.browser_path",
            remedy="give its path, or set WABE_BROWSER_PATH for a program with another name",
        )
    return path


def _program(configured: str, source: str, settings: Settings) -> Path:
    path = Path(configured).expanduser()
    if _is_runnable(path):
        return path.absolute()
    program_path = shutil.which(configured, path=settings.path) if os.sep not in configured else None
    if program_path is None:
        raise ConfigError(f"{source}: {configured[:300]!r} is not a program that can be run", remedy=_REMEDY)
    return Path(program_path)


def _is_runnable(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:
        return False


def _candidates(settings: Settings) -> Iterator[tuple[Path, str]]:
    folder = _registry_folder(settings)
    for prefix, patterns in _OWN_BUILDS:
        builds = [build for build in folder.glob(f"{prefix}*") if build.name.removeprefix(prefix).isdigit()]
        for build in sorted(builds, key=lambda build: int(build.name.removeprefix(prefix)), reverse=True):
            for pattern in patterns:
                yield from ((path, "Playwright's own Chromium") for path in sorted(build.glob(pattern)))
    for name in _PROGRAMS:
        if program_path := shutil.which(name, path=settings.path):
            yield Path(program_path), f"{name} on PATH"
    roots: Sequence[str | None] = ()
    programs: Sequence[str] = ()
    if _SYSTEM == "Darwin":
        roots, programs = ("/Applications", settings.home and f"{settings.home}/Applications"), _MAC_PROGRAMS
    elif _SYSTEM == "Windows":
        variables = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
        roots, programs = [settings.environ.get(variable) for variable in variables], _WINDOWS_PROGRAMS
    yield from ((Path(root, program), "installed on this machine") for root in roots if root for program in programs)


def _registry_folder(settings: Settings) -> Path:
    """Where Playwright keeps its browsers. `0` in the variable means inside the package, which is not searched."""
    configured = settings.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    if configured and configured != "0":
        return Path(configured)
    variable, below_home = {"Windows": ("LOCALAPPDATA", "AppData/Local"), "Darwin": ("", "Library/Caches")}.get(
        _SYSTEM, ("XDG_CACHE_HOME", ".cache")
    )
    return Path(settings.environ.get(variable) or Path(settings.home or os.sep, below_home), "ms-playwright")


def version_of(browser: FoundBrowser, environment: Mapping[str, str]) -> str:
    """The version that the browser reports, such as `Chromium 156.0`; `unknown` if it cannot be queried.

    This runs the browser for some milliseconds, so do it once for all episodes. On Windows it would open a window.
    """
    output = _run([browser.path, "--version"], environment) if _SYSTEM != "Windows" else None
    printed = output.stdout.decode("utf-8", "replace") if output else ""
    return " ".join(printed.split())[:100] or "unknown"


def _run(command: Sequence[str | Path], environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _can_unshare(path: str) -> bool | None:
    """Whether this process may create a user namespace and `chroot` in it; `None` if that cannot be tried.

    Chromium's sandbox does both. Podman's default profile forbids the second in a container without capabilities.
    """
    program = shutil.which("unshare", path=path)
    result = _run([program, *_AS_SANDBOX, "--", "true"], {"PATH": path}) if program else None
    return None if result is None else result.returncode == 0


def sandbox_state(
    settings: Settings,
    *,
    system: str = _SYSTEM,
    user_id: int | None = None,
    read_line: Callable[[str], str | None] = _first_line,
    can_unshare: Callable[[str], bool | None] = _can_unshare,
) -> tuple[bool, str]:
    """Whether Chromium's own sandbox can be enabled here, and why.

    On Linux it needs unprivileged user namespaces, which many containers forbid, and root cannot use it.
    """
    if system != "Linux":
        return True, "the system supports it"
    if (os.getuid() if user_id is None else user_id) == 0:
        return False, "running as root"
    if (
        read_line("/proc/sys/user/max_user_namespaces") == "0"
        or read_line("/proc/sys/kernel/unprivileged_userns_clone") == "0"
    ):
        return False, "unprivileged user namespaces are disabled"
    if read_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return False, "AppArmor restricts unprivileged user namespaces"
    contained = (
        settings.in_container or read_line("/.dockerenv") is not None or read_line("/run/.containerenv") is not None
    )
    allowed = can_unshare(settings.path)
    # Where it cannot be tried, assume that a container forbids it, as most do.
    if allowed is False or (allowed is None and contained):
        by = "by the container" if contained else "here"
        return False, f"user namespaces, or chroot in them, are forbidden {by}"
    return True, "unprivileged user namespaces are available"
