"""Search the built documentation in a browser, on a phone and on a desk.

python scripts/search_site.py SITE     SITE is what scripts/build_site.py wrote

Fails if the first result is a page without what was searched for, or if a page is wider than the screen.
"""

import functools
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from judge.browser.installed import find_browser
from shared.settings import Settings

WIDTHS = (390, 1280)
SEARCHES = ("sealed", "reset_url", "load_run", "kappa")


def search(page: Page, address: str, words: str) -> str:
    """Search from the first page, follow the first result, and return its address."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.get_by_text("results").or_(page.get_by_text("1 result")).first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url.rstrip("/") != address.rstrip("/"))
    page.locator("article").get_by_text(words).first.wait_for(state="attached")
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        sys.exit(f"{page.url} is wider than {page.viewport_size}")
    return page.url.removeprefix(address)


def main(folder: Path) -> None:
    """Serve the folder, and make all searches at all widths."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(SimpleHTTPRequestHandler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = find_browser(None, Settings.from_environ())
    with sync_playwright() as playwright:
        arguments = [] if found.sandbox else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=str(found.path), args=arguments)
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 800})
            for words in SEARCHES:
                print(f"{width} px, {words!r}: {search(page, f'http://127.0.0.1:{server.server_port}/', words)}")
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
