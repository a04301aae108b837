"""Finds the browser: the configured one, Playwright's own Chromium, or a Chromium or Chrome that is installed."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from shared.errors import ConfigError
from shared.models import Record
from shared.settings import Settings

# The lean build first: a smaller download, faster to start, and the same pages.
_SYSTEM = platform.system()
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
_BROWSER_NAME = re.compile(r"chrom|edge|brave|vivaldi|opera|browser|headless[-_]?shell", re.IGNORECASE)
_MAC_APPS = ("Chromium", "Google Chrome", "Microsoft Edge")
_WINDOWS_PROGRAMS = (
    "Chromium/Application/chrome.exe",
    "Google/Chrome/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
)
# As `playwright install chromium` lays them out; the older layout of the full browser is `chrome-linux`.
_OWN_BUILDS = (
    ("chromium_headless_shell-", ("chrome-headless-shell-*/chrome-headless-shell*", "chrome-*/headless_shell*")),
    ("chromium-", ("chrome-*/chrome", "chrome-*/chrome.exe", "chrome-mac*/*.app/Contents/MacOS/*")),
)
_VERSION_TIMEOUT_S = 10
_REMEDY = "run `playwright install chromium`, install Chromium or Chrome, or set browser_path or WABE_BROWSER_PATH"


class FoundBrowser(Record):
    """A browser to run. `source` says where it comes from; `sandbox_reason` why its sandbox is on or off."""

    path: Path
    source: str
    sandbox: bool
    sandbox_reason: str


def find_browser(configured: str | None, settings: Settings) -> FoundBrowser:
    """The browser to use: `configured` (`config.browser_path`), then `WABE_BROWSER_PATH`, then the first found.

    Raises `ConfigError` when a configured path is no program, or when there is no browser at all.
    """
    sandbox, reason = sandbox_state(settings)
    if configured:
        path, source = configured_browser(configured, settings), "config.browser_path"
        return FoundBrowser(path=path, source=source, sandbox=sandbox, sandbox_reason=reason)
    if settings.browser_path:
        path, source = _given_program(settings.browser_path, "WABE_BROWSER_PATH", settings), "WABE_BROWSER_PATH"
        return FoundBrowser(path=path, source=source, sandbox=sandbox, sandbox_reason=reason)
    for path, source in _candidates(settings):
        if _runnable(path):
            return FoundBrowser(path=path, source=source, sandbox=sandbox, sandbox_reason=reason)
    raise ConfigError("no browser found", remedy=_REMEDY)


def configured_browser(given: str, settings: Settings) -> Path:
    """The program that `config.browser_path` names. Raises `ConfigError` when it cannot be run or is not a browser.

    It is known by its name, or by the name of what it links to: a scenario that is only looked at starts nothing.
    """
    path = _given_program(given, "config.browser_path", settings)
    if not any(_BROWSER_NAME.search(name) for name in (path.name, Path(os.path.realpath(path)).name)):
        raise ConfigError(
            f"config.browser_path: {given[:300]!r} does not look like Chromium or a browser built on it",
            remedy="give its path, or set WABE_BROWSER_PATH for a program with another name",
        )
    return path


def _given_program(given: str, source: str, settings: Settings) -> Path:
    path = _program(given, settings)
    if path is None:
        raise ConfigError(f"{source}: {given[:300]!r} is not a program that can be run", remedy=_REMEDY)
    return path


def version_of(found: FoundBrowser, environment: Mapping[str, str]) -> str:
    """What the browser says of itself, such as `Chromium 156.0`; `unknown` where it cannot be asked.

    It runs the browser for some milliseconds: ask once for many episodes. On Windows it would open a window.
    """
    if _SYSTEM == "Windows":
        return "unknown"
    try:
        asked = subprocess.run(
            [found.path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return " ".join(asked.stdout.decode("utf-8", "replace").split())[:100] or "unknown"


def _program(given: str, settings: Settings) -> Path | None:
    path = Path(given).expanduser()
    if _runnable(path):
        return path.absolute()
    found = shutil.which(given, path=settings.path) if os.sep not in given else None
    return Path(found) if found else None


def _runnable(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:
        return False


def _candidates(settings: Settings) -> Iterator[tuple[Path, str]]:
    for folder in _registry_folders(settings):
        for path in _own_builds(folder):
            yield path, "Playwright's own Chromium"
    for name in _PROGRAMS:
        found = shutil.which(name, path=settings.path)
        if found:
            yield Path(found), f"{name} on PATH"
    for path in _usual_places(settings):
        yield path, "installed on this machine"


def _registry_folders(settings: Settings) -> Iterator[Path]:
    """Where Playwright keeps its browsers. The variable set to `0` means inside the package, which is not looked at."""
    environ = settings.environ
    given = environ.get("PLAYWRIGHT_BROWSERS_PATH")
    if given and given != "0":
        yield Path(given)
        return
    home = Path(settings.home) if settings.home else None
    if _SYSTEM == "Windows":
        local = environ.get("LOCALAPPDATA")
        cache = Path(local) if local else home / "AppData" / "Local" if home else None
    elif _SYSTEM == "Darwin":
        cache = home / "Library" / "Caches" if home else None
    else:
        xdg = environ.get("XDG_CACHE_HOME")
        cache = Path(xdg) if xdg else home / ".cache" if home else None
    if cache:
        yield cache / "ms-playwright"


def _own_builds(folder: Path) -> Iterator[Path]:
    for prefix, patterns in _OWN_BUILDS:
        builds = [build for build in folder.glob(f"{prefix}*") if build.name.removeprefix(prefix).isdigit()]
        for build in sorted(builds, key=lambda build: int(build.name.removeprefix(prefix)), reverse=True):
            for pattern in patterns:
                yield from sorted(build.glob(pattern))


def _usual_places(settings: Settings) -> Iterator[Path]:
    if _SYSTEM == "Darwin":
        roots = [Path("/Applications"), *([Path(settings.home) / "Applications"] if settings.home else [])]
        for root in roots:
            for app in _MAC_APPS:
                yield root / f"{app}.app" / "Contents" / "MacOS" / app
    elif _SYSTEM == "Windows":
        for variable in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
            base = settings.environ.get(variable)
            if base:
                yield from (Path(base) / program for program in _WINDOWS_PROGRAMS)


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _can_unshare(path: str) -> bool | None:
    """Whether this process may make a user namespace; `None` where it cannot be tried."""
    program = shutil.which("unshare", path=path)
    if program is None:
        return None
    try:
        tried = subprocess.run(
            [program, "--user", "--", "true"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": path},
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tried.returncode == 0


def sandbox_state(
    settings: Settings,
    *,
    system: str = _SYSTEM,
    user_id: int | None = None,
    read: Callable[[str], str | None] = _first_line,
    can_unshare: Callable[[str], bool | None] = _can_unshare,
) -> tuple[bool, str]:
    """Whether Chromium's own sandbox can be on here, and why.

    On Linux it needs unprivileged user namespaces, which many containers forbid, and root cannot use it.
    """
    if system != "Linux":
        return True, "the system supports it"
    if (os.getuid() if user_id is None else user_id) == 0:
        return False, "running as root"
    if read("/proc/sys/user/max_user_namespaces") == "0" or read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return False, "unprivileged user namespaces are disabled"
    if read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return False, "AppArmor restricts unprivileged user namespaces"
    contained = settings.in_container or read("/.dockerenv") is not None or read("/run/.containerenv") is not None
    allowed = can_unshare(settings.path)
    if allowed is False or (allowed is None and contained):
        return False, "the container forbids user namespaces" if contained else "user namespaces are forbidden"
    return True, "unprivileged user namespaces are available"
