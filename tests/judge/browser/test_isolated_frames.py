"""Frames of other sites that Chromium runs in processes of their own, as its full version does."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from helpers.browser.sessions import a_browser, browser_settings, processes_of_browser, ref_of, with_flags

FRAME = """<button onclick="setTimeout(() => { document.title = said.textContent = 'after' }, 1500)">Act</button>
    <p id="said" role="status">before</p>"""


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        port = self.headers["Host"].rpartition(":")[2]
        # The same server by another name: another site for a browser.
        outer = f'<title>Outer</title><iframe src="http://localhost:{port}/inner"></iframe>'
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write((FRAME if self.path == "/inner" else outer).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.e2e
async def test_what_comes_late_in_a_frame_of_another_process_is_waited_for(tmp_path: Path, site: str) -> None:
    # The headless shell does not keep sites apart unasked.
    isolating = browser_settings().found.model_copy(update={"path": with_flags(tmp_path, "--site-per-process")})
    async with a_browser(isolating) as browser:
        await browser.open(site, "page-time")
        before = await browser.observe()
        tabs = [process for process in processes_of_browser(browser) if "--type=renderer" in process.command]
        assert len(tabs) >= 2, "the frame has no process of its own"
        await browser.act("browser_click", {"target": ref_of(before.snapshot, 'button "Act"')})
        after = await browser.observe()
    assert "before" in before.snapshot
    assert "after" in after.snapshot
    assert "timer" in after.settled.waited_for
