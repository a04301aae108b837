"""Plants a value in names and texts, typed or written by the site, and compares the results of checks with that.

`python benchmarks/named_pages.py [--pages N] [--first SEED]`. Each page is a document that combines a way of naming
(labels, `aria-labelledby`, `aria-owns`, reflection, slots, shadow trees, generated content, roles, summaries, figures,
tables) with a way of typing, or of not typing. Exit code 1 if a check was wrong.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("src", "tests")]

from helpers.browser.named_pages import in_frames, named_page, wrong_results
from helpers.browser.sessions import a_browser
from helpers.browser.written_pages import two_sites
from judge.browser.playwright import PlaywrightBrowser
from shared.errors import SiteUnreachable

AT_ONCE = 20


async def opened(browser: PlaywrightBrowser, url: str) -> None:
    """Open the address. On a busy machine the time may run out, so three times if necessary."""
    for _ in range(2):
        with contextlib.suppress(SiteUnreachable):
            await browser.open(url, "page-time")
            return
    await browser.open(url, "page-time")


async def measure(pages: int, first: int) -> int:
    wrong: list[str] = []
    typed = passes = 0
    began = time.monotonic()
    with two_sites() as (own, _, documents), tempfile.TemporaryDirectory() as folder:
        async with a_browser() as browser:
            for start in range(first, first + pages, AT_ONCE):
                pages_made = [named_page(seed) for seed in range(start, min(start + AT_ONCE, first + pages))]
                documents[f"/{start}"] = in_frames(pages_made)
                await opened(browser, f"{own}/{start}")
                results_wrong, passing = wrong_results(pages_made, await browser.observe(), own, Path(folder))
                for each in results_wrong:
                    print(each)
                wrong += results_wrong
                passes += passing
                typed += sum(page.is_typed for page in pages_made)
    print(
        f"{pages} documents, {typed} with a typed value, {4 * pages} checks, of which the snapshots show {passes}:"
        f" {len(wrong)} wrong; {time.monotonic() - began:.0f} s"
    )
    return len(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=3_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    return 1 if asyncio.run(measure(options.pages, options.first)) else 0


if __name__ == "__main__":
    sys.exit(main())
