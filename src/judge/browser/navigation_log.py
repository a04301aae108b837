"""Where the browser went: every request for a page, redirects included, recorded at the moment it is sent.

Playwright's server loads `RECORDER` into its own process (its option `browser.initPage`), out of reach of every page.
The recorder appends to a file, so the evidence includes a page that never arrives, and survives a tab that hangs and a
browser or server that is killed.
"""

import contextlib
from pathlib import Path

from judge.browser.session import Hop

RECORDER_FILE = "navigations.cjs"
# Enough for the longest origin, which is what decides.
MAX_URL_CHARS = 300
_LOG_FILE = "navigations.jsonl"

# Listens on the context, which also sees the first request of a new tab. That one has no frame yet, and is a main
# frame's by definition.
# After 2,000 lines only changes of origin are recorded, so that a page which reloads itself cannot fill the disk.
RECORDER = """
const fs = require("fs");
const path = require("path");
const log = path.join(__dirname, "%(log)s");
const recorded = new WeakSet();
let left = 2000;
let last = "";

function isInFrame(request) {
  try { return request.frame().parentFrame() !== null; } catch { return false; }
}

exports.default = async ({ page }) => {
  const context = page.context();
  if (recorded.has(context)) return;
  recorded.add(context);
  context.on("request", request => {
    if (!request.isNavigationRequest() || isInFrame(request)) return;
    const url = request.url().slice(0, %(max)d);
    const origin = url.split("/", 3).join("/");
    if (origin === last && left <= 0) return;
    last = origin;
    left -= 1;
    fs.appendFileSync(log, JSON.stringify({ url, is_redirect: request.redirectedFrom() !== null }) + "\\n");
  });
};
""" % {"log": _LOG_FILE, "max": MAX_URL_CHARS}  # noqa: UP031


class NavigationLog:
    """Reads what the recorder in `folder` has written since the last call."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LOG_FILE
        self._offset = 0

    def take(self) -> tuple[Hop, ...]:
        """The new hops, oldest first; none when the browser went nowhere, so that there is no file."""
        data = b""
        with contextlib.suppress(OSError), self._path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        # A last line that is still being written is left for the next call.
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return tuple(Hop.model_validate_json(line) for line in whole.splitlines())
