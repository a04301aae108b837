"""Finds the browser, builds the command that starts it and its MCP server, and creates a folder for each.

The browser is the configured one, Playwright's own Chromium, an installed Chromium or Chrome, or a hosted one.
"""

import contextlib
import json
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from playwright._impl._driver import compute_driver_executable
from pydantic import Field

from judge.browser import console, downloads, requests, uploads
from judge.browser.display import display_environ, has_display, require_display, xvfb
from judge.browser.hosted import HostedBrowser
from judge.browser.processes import kill_family
from judge.browser.settle import SETTLER
from judge.config import RunConfig
from shared.errors import ConfigError
from shared.models import Record
from shared.settings import Settings

if sys.platform != "win32":
    import fcntl

CONFIG_FILE = "server.json"
AUTHORITY_FILE = "authority.pem"
_SERVER = Path(__file__).with_name("server.cjs")

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
# The environment variables that a browser may need. No API keys, in case a page breaks out of the browser.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "LANG", "LC_ALL", "TZ")
# Traffic that bypasses an HTTP proxy is disabled: WebRTC's and QUIC's datagrams, and DNS look-ups, through which a page
# could send data out. The guard resolves names itself.
_PROXY_ONLY = (
    # Two names for one policy: Chromium reads the first, its headless shell the second.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
# By default, Chromium bypasses the proxy for loopback addresses.
_NO_BYPASS = "<-loopback>"
_FOLDER_PREFIX = "wabe-browser-"
_LOCK = "owner.lock"
# A socket's path may have 108 characters, and browsers create theirs in folders below this one.
_MAX_FOLDER_CHARS = 61
_log = logging.getLogger(__name__)


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
        fitting = (each for each in _candidates(settings) if build in ("any", _kind_of(each[0])))
        runnable = (candidate for candidate in fitting if _is_runnable(candidate[0]))
        if (first := next(runnable, None)) is None:
            what = {"any": "no browser", "shell": "no headless shell", "full": "no full browser"}[build]
            raise ConfigError(f"{what} found", remedy=_REMEDY)
        path, source = first
    if build != "any" and _kind_of(path) != build:
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


def _kind_of(path: Path) -> BrowserBuild:
    names = (path.name, Path(os.path.realpath(path)).name)
    return "shell" if any(_SHELL_NAME.search(name) for name in names) else "full"


def configured_browser(configured: str, settings: Settings) -> Path:
    """The program that `config.browser_path` names. Raises `ConfigError` if it cannot be run or is not a browser.

    Recognised by its name, or by that of its link target, because validating a scenario must not start a program.
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


def _mcp_cli(settings: Settings) -> Path | None:
    """The program of the package of Playwright's MCP server that `WABE_MCP_SERVER` names; `None` for the bundled one.

    Raises `ConfigError`.
    """
    if settings.mcp_server is None:
        return None
    path = Path(settings.mcp_server).expanduser().absolute()
    path = path / "cli.js" if path.is_dir() else path
    if not path.is_file():
        raise ConfigError(
            f"WABE_MCP_SERVER: {str(path)[:300]!r} does not exist",
            remedy="npm install @playwright/mcp, and give the path of node_modules/@playwright/mcp",
        )
    return path


class BrowserSettings(Record):
    """How a browser is started. `mcp_cli` is another version of Playwright's MCP server than the bundled one.

    `found` is `None` for a `hosted` browser, which is not started here.

    `xvfb` is the program that draws the window where this machine has no display.
    """

    found: FoundBrowser | None
    hosted: HostedBrowser | None = None
    version: str = "unknown"
    config: RunConfig
    environment: Mapping[str, str] = Field(default_factory=dict, repr=False)
    compile_cache: Path | None = None
    xvfb: Path | None = None
    mcp_cli: Path | None = None

    @classmethod
    def from_config(cls, config: RunConfig, settings: Settings) -> "BrowserSettings":
        """The settings that concern the browser. Raises `ConfigError` if no browser is found, and none is hosted."""
        cache = settings.cache_folder
        environment = {name: settings.environ[name] for name in _PASSED_ON if name in settings.environ}
        compile_cache = cache / "wabe" / "node" if cache else None
        if (hosted := HostedBrowser.of(config)) is not None:
            return cls(
                found=None,
                hosted=hosted,
                config=config,
                environment=environment,
                compile_cache=compile_cache,
                mcp_cli=_mcp_cli(settings),
            )
        browser = find_browser(config.browser_path, settings, build=wanted_by(config))
        require_display(config, settings.environ)
        is_own = config.browser == "headed" and has_display(settings.environ)
        return cls(
            found=browser,
            version=version_of(browser, environment),
            config=config,
            environment={**environment, **(display_environ(settings.environ) if is_own else {})},
            xvfb=xvfb(settings.environ) if config.browser == "headed" and not is_own else None,
            compile_cache=compile_cache,
            mcp_cli=_mcp_cli(settings),
        )

    @property
    def mode(self) -> str:
        """How pages are shown, for records: a site may treat the modes differently."""
        if self.found is None:
            return "hosted"
        if self.config.browser == "headed":
            return "headed under Xvfb" if self.xvfb else "headed"
        return "headless shell" if _kind_of(self.found.path) == "shell" else "new headless"

    @property
    def has_own_clipboard(self) -> bool:
        """Whether no other browser or person can read or change what pages copy. A display has one clipboard."""
        return self.found is not None and (self.config.browser != "headed" or self.xvfb is not None)

    @property
    def confinement(self) -> dict[str, str]:
        """What confines pages, for records: Chromium's sandbox, and a guard, which only a hosted browser lacks."""
        if self.found is None:
            return {"sandbox": "unknown: a hosted browser", "guarded": "false"}
        return {"sandbox": "on" if self.found.sandbox else f"off: {self.found.sandbox_reason}"}

    def for_task(self, task_id: str) -> "BrowserSettings":
        """The settings of the browser for a task."""
        return self if self.hosted is None else self.model_copy(update={"hosted": self.hosted.for_task(task_id)})

    def on_display(self, display: str) -> "BrowserSettings":
        """The settings of browsers on a display that was started for them."""
        return self.model_copy(update={"environment": {**self.environment, "DISPLAY": display}})

    def command(self, folder: Path, proxy: str | None = None) -> list[str]:
        """The command that starts the server, which starts the browser; `folder` contains `config_file`.

        The server is configured not to take snapshots by itself, because the judge requests the one it needs.
        """
        config = self.config
        # `vision` adds the mouse wheel, which `browser_scroll` needs.
        window = [] if config.browser == "headed" else ["--headless"]
        args = ["mcp", *window, "--isolated", "--output-dir", str(folder), "--caps", "vision"]
        # By default the server closes a browser after an idle hour and relaunches it later, which would be a fault.
        args += ["--viewport-size", f"{config.viewport_width}x{config.viewport_height}", "--idle-timeout", "0"]
        # The tools that pages register are the judge's own affair (`judge.browser.site_tools`).
        args += ["--snapshot-mode", "none", "--codegen", "none", "--no-webmcp"]
        args += ["--timeout-action", str(round(config.action_timeout_s * 1000))]
        args += ["--timeout-navigation", str(round(config.navigation_timeout_s * 1000))]
        # `judge.browser.settle` replaces the server's own wait, which is 500 ms, and only after some tools.
        args += ["--timeout-settle", "0", "--config", str(folder / CONFIG_FILE)]
        if proxy:
            args += ["--proxy-server", proxy, "--proxy-bypass", _NO_BYPASS]
        node, cli = compute_driver_executable()
        return [node, str(_SERVER), str(self.mcp_cli or cli), *args]

    def config_file(self, proxy: str | None = None, spki_hash: str | None = None) -> str:
        """The server's configuration: how to launch Chromium, and the options of each context.

        `spki_hash` is that of the key with which the proxy ends TLS, if it does.
        """
        browser = {
            **self._source(proxy, spki_hash),
            "contextOptions": self._context_options(),
            "initPage": [str(path) for path in self._page_scripts()],
        }
        return json.dumps({"browser": browser})

    def _source(self, proxy: str | None, spki_hash: str | None) -> dict[str, Any]:
        if self.hosted is not None:
            # In this file rather than in the command, which every user of this machine can read.
            return {"cdpEndpoint": self.hosted.url}
        if self.found is None:
            raise ValueError("neither a browser to launch nor a hosted one")
        launch: dict[str, Any] = {"executablePath": str(self.found.path), "chromiumSandbox": self.found.sandbox}
        if proxy:
            launch |= proxy_options(proxy, spki_hash)
        if self.config.site_tools != "off":
            # Not `--enable-features`, which would replace Playwright's own.
            launch["args"] = [*launch.get("args", ()), "--enable-blink-features=WebMCP"]
        return {"launchOptions": launch}

    def _page_scripts(self) -> Iterator[Path]:
        """Scripts that the server runs in its own process for each new page."""
        yield requests.NAVIGATION_RECORDER
        if self.config.record_network:
            yield requests.RECORDER
            yield console.RECORDER
        yield uploads.CHOOSERS
        if self.hosted is None:
            yield downloads.TAKER
        yield SETTLER

    def _context_options(self) -> dict[str, Any]:
        config = self.config
        options = {
            # Downloads could fill this machine's disk. What is taken is bounded (`judge.browser.downloads`).
            "acceptDownloads": False,
            "locale": config.locale,
            "timezoneId": config.timezone,
            "colorScheme": config.color_scheme,
            # Other permissions are denied without a prompt, which nobody could answer.
            "permissions": [
                *(["geolocation"] if config.geolocation else []),
                *(["clipboard-write"] if self.has_own_clipboard else []),
            ],
            "geolocation": config.geolocation.model_dump() if config.geolocation else None,
            "userAgent": config.user_agent,
        }
        return {name: value for name, value in options.items() if value is not None}

    def environ(self, folder: Path, *, has_authority: bool = False) -> dict[str, str]:
        """The server's environment: its folder is its home, so that a browser leaves no files elsewhere.

        `has_authority`: its request client trusts the certificates of `AUTHORITY_FILE` in the folder.
        """
        trusted = {"NODE_EXTRA_CA_CERTS": str(folder / AUTHORITY_FILE)} if has_authority else {}
        places = {name: str(folder) for name in ("HOME", "TMPDIR", "TEMP", "TMP")}
        cache = {"NODE_COMPILE_CACHE": str(self.compile_cache)} if self.compile_cache else {}
        return {**self.environment, **places, **cache, **trusted}


def proxy_options(proxy: str, spki_hash: str | None = None) -> dict[str, Any]:
    """Playwright's launch options for a browser whose traffic all goes through a proxy, which may end TLS."""
    trust = [] if spki_hash is None else [f"--ignore-certificate-errors-spki-list={spki_hash}"]
    return {"args": [*_PROXY_ONLY, *trust], "proxy": {"server": proxy, "bypass": _NO_BYPASS}}


class BrowserFolder:
    """A new temporary folder for one browser, locked until `remove`.

    A killed judge cannot clean up, but the kernel releases its locks, by which the next judge recognises abandoned
    folders. Process ids would not work: they are reused, and differ between containers.
    The path contains no symbolic links, because command lines are searched for it, and is short, because socket paths
    are limited.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=_folder_base()))
        # Locked before it is renamed, so that other judges never see the lock file without its lock.
        unnamed = self.path / f"{_LOCK}.new"
        self._handle = os.open(unnamed, os.O_RDWR | os.O_CREAT)
        if sys.platform != "win32":
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unnamed.rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove the folder and its contents."""
        # Before the lock is released, so that no other judge sweeps the folder meanwhile.
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._handle)


def sweep() -> int:
    """End the browsers and remove the folders that killed judges left behind. Returns the number of folders."""
    if sys.platform == "win32":
        return 0
    swept = 0
    for folder in sorted(_folder_base().glob(f"{_FOLDER_PREFIX}*")):
        # Another user's folder, one that is still locked, or one that its owner has removed meanwhile: skip it.
        with contextlib.suppress(OSError):
            # No links: everyone may write to the temporary folder, and a link could point to any lock file.
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # First, because living processes would write more files.
                kill_family(folder)
                shutil.rmtree(folder, ignore_errors=True)
                swept += 1
            finally:
                os.close(handle)
    if swept:
        _log.warning("removed the files of %d browser(s) that a killed judge left", swept)
    return swept


def _folder_base() -> Path:
    base = Path(tempfile.gettempdir()).resolve()
    too_long = len(os.fsencode(base)) + len(f"/{_FOLDER_PREFIX}12345678") > _MAX_FOLDER_CHARS
    shorter = Path("/tmp").resolve()
    return shorter if too_long and shorter.is_dir() else base
