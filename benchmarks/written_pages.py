"""Plants expected words in random pages, and compares the results of checks with where they were planted.

`python benchmarks/written_pages.py [--pages N] [--first SEED]`. Each page nests frames of all kinds (own, foreign,
`data:`, `srcdoc`, sandboxed, `blob:`, written and rebuilt by scripts), editors and shadow trees. It is observed in the
real browser, and judged with and without `editable` and `allowed_sites`. Exit code 1 if a check was wrong.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("src", "tests")]

from helpers.browser.sessions import a_browser
from helpers.browser.written_pages import two_sites, verdicts, written_page


async def measure(pages: int, first: int) -> int:
    checks = passed = wrong = 0
    inside = foreign = 0
    began = time.monotonic()
    with two_sites() as (own, other, documents), tempfile.TemporaryDirectory() as folder:
        async with a_browser() as browser:
            for seed in range(first, first + pages):
                page = written_page(seed, own, other)
                documents.clear()
                documents |= page.documents
                await browser.open(own + page.path, "page-time")
                observation = await browser.observe()
                inside += page.expected.is_inside
                foreign += page.expected.origin != own
                for check, expected_result, actual in verdicts(observation, page.expected, own, other, Path(folder)):
                    checks += 1
                    passed += actual
                    if expected_result != actual:
                        wrong += 1
                        print(f"page {seed}: {check}: expected {expected_result}, found {actual}: {page.shape}")
    print(
        f"{pages} pages, {checks} checks: {wrong} wrong, {passed} passed; the words were"
        f" inside an editor on {inside} pages, in a document of another origin on {foreign};"
        f" {time.monotonic() - began:.0f} s"
    )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    return 1 if asyncio.run(measure(options.pages, options.first)) else 0


if __name__ == "__main__":
    sys.exit(main())
