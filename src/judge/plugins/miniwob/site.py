"""Serves MiniWoB++: `python -m judge.plugins.miniwob.site --host 127.0.0.1 --port 9182`.

`/miniwob/NAME.html?seed=N` is a page whose episode has begun, without overlay and score display. The server keeps no
state: whether an episode has begun is in the browser context's storage (`start.js`).
"""

import argparse
import asyncio
import re
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from judge.plugins.miniwob.tasks import PORT, package_folder, page_names
from shared.errors import ConfigError

_START = Path(__file__).with_name("start.js")
# Hidden, not removed, because the end of an episode writes to the display.
_STYLE = "<style>#reward-display { display: none !important }</style>"


def create_app(html: Path, names: frozenset[str]) -> Starlette:
    """The site for the tasks `names`, whose pages are in the package's folder `html`."""
    added = f"{_STYLE}<script>{_START.read_text()}</script>"

    async def page(request: Request) -> Response:
        name, seed = request.path_params["name"], request.query_params.get("seed", "")
        if name not in names or request.url.query != f"seed={seed}" or not is_seed(seed):
            return PlainTextResponse("No such task.", 404)
        text = await asyncio.to_thread((html / "miniwob" / f"{name}.html").read_text)
        # A page from the browser's cache would not notice that it was loaded again.
        return HTMLResponse(text.replace("</body>", f"{added}</body>", 1), headers={"Cache-Control": "no-store"})

    # Not the pages' folder: a page without the script above could be played repeatedly.
    assets = [Mount(f"/{folder}", StaticFiles(directory=html / folder)) for folder in ("core", "common")]
    return Starlette(routes=[Route("/miniwob/{name}.html", page), *assets])


def is_seed(text: str) -> bool:
    """Whether the text is a seed as in a task's address: below `MAX_SEED`, without leading zeros."""
    return re.fullmatch("0|[1-9][0-9]{0,5}", text) is not None


def main() -> None:
    """Serve the pages until a signal arrives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args()
    try:
        package = package_folder()
    except ConfigError as error:
        sys.exit(str(error))
    app = create_app(package / "html", frozenset(page_names(package)))
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
