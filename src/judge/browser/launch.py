"""How a browser and its MCP server are started: arguments, environment, configuration file. Pure but for finding it."""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from judge.browser.chromium import FoundBrowser, find_browser, version_of
from judge.browser.guard.navigation_log import RECORDER_FILE
from judge.config import RunConfig
from shared.models import Record
from shared.settings import Settings

CONFIG_FILE = "server.json"
# What a browser may need of our environment. Keys stay out: a page that breaks out of the browser finds none.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "LANG", "LC_ALL", "TZ")


class BrowserSettings(Record):
    """How a browser is started. Times are in the unit their name ends with."""

    found: FoundBrowser
    browser_version: str = "unknown"
    viewport_width: int = 1280
    viewport_height: int = 720
    call_timeout_s: float = 60.0
    navigation_timeout_s: float = 30.0
    action_timeout_s: float = 5.0
    settle_ms: int = 500
    proxy_server: str | None = None
    proxy_bypass: str | None = None
    chromium_args: tuple[str, ...] = ()
    environment: Mapping[str, str] = Field(default_factory=dict, repr=False)
    compile_cache: Path | None = None

    @classmethod
    def from_config(cls, config: RunConfig, settings: Settings) -> "BrowserSettings":
        """Read what concerns the browser. Raises `ConfigError` when no browser is found."""
        cache = settings.environ.get("XDG_CACHE_HOME") or (f"{settings.home}/.cache" if settings.home else None)
        environment = {name: settings.environ[name] for name in _PASSED_ON if name in settings.environ}
        found = find_browser(config.browser_path, settings)
        return cls(
            found=found,
            browser_version=version_of(found, environment),
            viewport_width=config.viewport_width,
            viewport_height=config.viewport_height,
            call_timeout_s=config.call_timeout_s,
            navigation_timeout_s=config.navigation_timeout_s,
            action_timeout_s=config.action_timeout_s,
            settle_ms=config.settle_ms,
            environment=environment,
            compile_cache=Path(cache, "wabe", "node") if cache else None,
        )

    def arguments(self, folder: Path) -> list[str]:
        """The server's arguments. It takes no snapshots on its own: the judge asks for the one it needs."""
        args = ["mcp", "--headless", "--isolated", "--output-dir", str(folder), "--caps", "vision"]
        args += ["--executable-path", str(self.found.path), "--sandbox" if self.found.sandbox else "--no-sandbox"]
        args += ["--viewport-size", f"{self.viewport_width}x{self.viewport_height}", "--idle-timeout", "0"]
        args += ["--snapshot-mode", "none", "--codegen", "none", "--no-webmcp", "--image-responses", "allow"]
        args += ["--timeout-action", str(round(self.action_timeout_s * 1000))]
        args += ["--timeout-navigation", str(round(self.navigation_timeout_s * 1000))]
        args += ["--timeout-settle", str(self.settle_ms), "--config", str(folder / CONFIG_FILE)]
        if self.proxy_server:
            args += ["--proxy-server", self.proxy_server]
        if self.proxy_bypass:
            args += ["--proxy-bypass", self.proxy_bypass]
        return args

    def config_file(self, folder: Path) -> str:
        """What the server takes from a file only. Downloads are refused: nobody may fill this machine's disk."""
        launch, context = {"args": list(self.chromium_args)}, {"acceptDownloads": False}
        recorder = [str(folder / RECORDER_FILE)]
        browser = {"launchOptions": launch, "contextOptions": context, "initPage": recorder}
        return json.dumps({"browser": browser})

    def environ(self, folder: Path) -> dict[str, str]:
        """The server's environment: its folder is its home, so that a browser leaves nothing elsewhere."""
        places = {name: str(folder) for name in ("HOME", "TMPDIR", "TEMP", "TMP")}
        cache = {"NODE_COMPILE_CACHE": str(self.compile_cache)} if self.compile_cache else {}
        return {**self.environment, **places, **cache}
