"""What our pages share: their frame, colours for light and dark, and a Content-Security-Policy of hashes.

A page has one inline style sheet and inline scripts. Its policy allows exactly these, by hash, and images beside it:
even markup that got through escaping could neither run nor load anything.
"""

import base64
import hashlib
from functools import cache
from importlib import resources
from string import Template
from typing import NamedTuple

# The header of changes that a page sends (`change.js`).
TOKEN_HEADER = "X-WABE-Token"
BODY_END = "</body>\n</html>\n"


class HtmlPage(NamedTuple):
    """A page, and the Content-Security-Policy with which it is served."""

    html: str
    policy: str


def page_policy(*scripts: str, css: str, images: str = "'self' data:", connect: bool = False) -> str:
    """The policy of a page with these scripts and this style sheet; with `connect` it may ask its own server."""
    hashes = " ".join(f"'{_hash(script)}'" for script in dict.fromkeys(scripts))
    parts = ["default-src 'none'", f"img-src {images}", f"style-src '{_hash(css)}'", f"script-src {hashes}"]
    parts += ["base-uri 'none'", *(["form-action 'self'", "connect-src 'self'"] if connect else ["form-action 'none'"])]
    return "; ".join(parts)


def page_head(policy: str, css: str, generator: str = "wabe") -> str:
    """How every page begins."""
    return Template(asset("head.html")).substitute(policy=policy, css=css, generator=generator)


def page_frame(**parts: str) -> str:
    """The rest of every page, around its `content`. Without a template engine, which participants' images do not have.

    `begin` and `end` are what stands before and after what is visible: another frame may go around several pages.
    """
    return Template(asset("frame.html")).substitute(parts)


def body_start(token: str = "") -> str:
    """The beginning of the body of a page that may send changes with this token."""
    data = f' data-token="{token}" data-header="{TOKEN_HEADER}"' if token else ""
    return f"</head>\n<body{data}>"


def asset(name: str, package: str = "shared.pages") -> str:
    """The text of a file among a package's templates."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


@cache
def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
