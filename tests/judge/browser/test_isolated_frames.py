"""Frames of other sites that Chromium runs in processes of their own, as its full version does."""

from pathlib import Path

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser, found_browser, processes_of_browser, ref_of, with_flags

FRAME = """<button onclick="setTimeout(() => { document.title = said.textContent = 'after' }, 1500)">Act</button>
    <p id="said" role="status">before</p>"""


@pytest.mark.e2e
async def test_what_comes_late_in_a_frame_of_another_process_is_waited_for(tmp_path: Path) -> None:
    # The headless shell does not keep sites apart unasked.
    isolating = found_browser().model_copy(update={"path": with_flags(tmp_path, "--site-per-process")})
    with hostile_site({"/frame": FRAME}) as site:
        # The same server by another name is another site for a browser.
        site.pages["/"] = f'<title>Outer</title><iframe src="http://localhost:{site.server_port}/frame"></iframe>'
        async with a_browser(isolating) as browser:
            await browser.open(site.url, "page-time")
            before = await browser.observe()
            tabs = [process for process in processes_of_browser(browser) if "--type=renderer" in process.command]
            assert len(tabs) >= 2, "the frame has no process of its own"
            await browser.act("browser_click", {"target": ref_of(before.snapshot, 'button "Act"')})
            after = await browser.observe()
    assert "before" in before.snapshot
    assert "after" in after.snapshot
    assert "timer" in after.settled.waited_for
