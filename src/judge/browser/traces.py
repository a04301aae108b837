"""Records Playwright's trace of each attempt, for `wabe run --record-trace`.

Traces stand beside the runs, in `<output_dir>/traces/<run_id>/`, so that nothing which covers a run (uploads, digests,
signatures, exports, reports) covers them: they contain cookies, passwords and request bodies as they were.
https://playwright.dev/docs/trace-viewer
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from judge.browser.mcp_server import PageTrouble
from judge.browser.playwright import PlaywrightBrowser
from shared.errors import WabeError

_START = """async page => {
  const context = page.context();
  await context.tracing.start({ screenshots: true, snapshots: true });
  context[Symbol.for("wabe.traced")] = true;
}"""
_STOP = "async page => {{ await page.context().tracing.stop({{ path: {} }}); }}"
# Writing a long attempt's trace takes seconds.
_SAVE_LIMIT_S = 60.0
_log = logging.getLogger(__name__)

Lends = Callable[..., AbstractAsyncContextManager[PlaywrightBrowser]]


def traced(browsers: Lends, folder: Path) -> Lends:
    """`browsers` that record a trace of each loan: `<task_id>-<number>.zip` in `folder`, numbered from 1.

    An attempt never fails without its trace; the log says what went wrong.
    """

    @asynccontextmanager
    async def opened(*args: Any, **kwargs: Any) -> AsyncIterator[PlaywrightBrowser]:
        async with browsers(*args, **kwargs) as browser:
            with _missing(browser):
                await browser.run_own(_START)
            try:
                yield browser
            finally:
                with _missing(browser):
                    async with asyncio.timeout(_SAVE_LIMIT_S):
                        await browser.run_own(_STOP.format(json.dumps(str(_next(folder, browser.task_id).resolve()))))

    return opened


def _next(folder: Path, task_id: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while (path := folder / f"{task_id}-{number}.zip").exists():
        number += 1
    return path


@contextlib.contextmanager
def _missing(browser: PlaywrightBrowser) -> Iterator[None]:
    try:
        yield
    except (WabeError, PageTrouble, TimeoutError, OSError) as error:
        _log.warning("no trace of an attempt at %s: %s", browser.task_id, str(error) or "it takes too long")
