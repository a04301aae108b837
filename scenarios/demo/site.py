"""The demo's website: a furniture shop with a help centre. `python site.py --host 127.0.0.1 --port 9180`."""

import argparse

import uvicorn
from shop.app import create_app


def main() -> None:
    """Serve the shop until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9180)
    parser.add_argument(
        "--tool-bug", action="store_true", help="add_to_cart, the site's own tool, always adds one piece"
    )
    options = parser.parse_args()
    uvicorn.run(
        create_app(has_tool_bug=options.tool_bug),
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    main()
