"""Builds the command that starts a browser and its MCP server, with their configuration and environment."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from playwright._impl._driver import compute_driver_executable
from pydantic import Field

from judge.browser import console, downloads, requests, uploads
from judge.browser.display import display_environ, has_display, require_display, xvfb
from judge.browser.hosted import HostedBrowser
from judge.browser.installed import FoundBrowser, find_browser, kind_of, version_of, wanted_by
from judge.browser.own_tools import own_tools
from judge.browser.proxying import NO_BYPASS, proxy_options
from judge.browser.settle import SETTLER
from judge.config import RunConfig
from shared.errors import ConfigError
from shared.models import Record
from shared.settings import Settings

CONFIG_FILE = "server.json"
AUTHORITY_FILE = "authority.pem"
_SERVER = Path(__file__).with_name("server.cjs")

# The environment variables that a browser may need. No API keys, in case a page breaks out of the browser.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "LANG", "LC_ALL", "TZ")


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
        return "headless shell" if kind_of(self.found.path) == "shell" else "new headless"

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

    def changed(self, changes: Mapping[str, Any]) -> "BrowserSettings":
        """The settings of browsers for tasks whose settings differ from the run's."""
        return self if not changes else self.model_copy(update={"config": self.config.model_copy(update=dict(changes))})

    def on_display(self, display: str) -> "BrowserSettings":
        """The settings of browsers on a display started for them."""
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
        # The server would write the texts of tools that pages register (WebMCP) into snapshots, unescaped.
        args += ["--snapshot-mode", "none", "--codegen", "none", "--no-webmcp"]
        args += ["--timeout-action", str(round(config.action_timeout_s * 1000))]
        args += ["--timeout-navigation", str(round(config.navigation_timeout_s * 1000))]
        # `judge.browser.settle` replaces the server's wait, which is 500 ms, and only after some tools.
        args += ["--timeout-settle", "0", "--config", str(folder / CONFIG_FILE)]
        if proxy:
            args += ["--proxy-server", proxy, "--proxy-bypass", NO_BYPASS]
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
        if arguments := [each for tool in own_tools(self.config).values() for each in tool.arguments]:
            launch["args"] = [*launch.get("args", ()), *arguments]
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
            "deviceScaleFactor": config.device_scale_factor,
            "reducedMotion": config.reduced_motion,
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
