"""What our own pages share: colours for light and dark, and a Content-Security-Policy of hashes.

A page has one inline style sheet and inline scripts. Its policy allows exactly these, by hash, and images beside it:
even markup that got through escaping could neither run nor load anything.
"""

import base64
import hashlib
from functools import cache
from importlib import resources


def page_policy(*scripts: str, css: str, images: str = "'self' data:", connect: bool = False) -> str:
    """The policy of a page with these scripts and this style sheet; with `connect` it may ask its own server."""
    hashes = " ".join(f"'{_hash(script)}'" for script in dict.fromkeys(scripts))
    parts = ["default-src 'none'", f"img-src {images}", f"style-src '{_hash(css)}'", f"script-src {hashes}"]
    parts += ["base-uri 'none'", *(["form-action 'self'", "connect-src 'self'"] if connect else ["form-action 'none'"])]
    return "; ".join(parts)


def asset(name: str, package: str = "shared.pages") -> str:
    """The text of a file among a package's templates."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


@cache
def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
