"""Pages whose documents of every kind send requests to a site, and who sent each: an oracle for recorded senders."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from helpers.browser.hostile_site import Page

# What sends the request at `url`.
MEANS = {
    "fetch": "fetch(url, {method: 'POST', mode: 'no-cors', body: 'x'}).catch(() => {})",
    "get": "fetch(url, {mode: 'no-cors'}).catch(() => {})",
    "unreferred get": "fetch(url, {mode: 'no-cors', referrerPolicy: 'no-referrer'}).catch(() => {})",
    "beacon": "navigator.sendBeacon(url, 'x')",
    "form": """const form = document.createElement('form'); Object.assign(form, {method: 'post', action: url,
        target: '_blank'}); document.documentElement.append(form); form.submit()""",
    "link": "open(url, '_blank', 'noopener')",
    "frame": "const made = document.createElement('iframe'); made.src = url; document.documentElement.append(made)",
    "worker": """new Worker(URL.createObjectURL(new Blob(['fetch(' + JSON.stringify(url) +
        ', {method: "POST", mode: "no-cors", body: "x"})'])))""",
    "worker's get": """new Worker(URL.createObjectURL(new Blob(['fetch(' + JSON.stringify(url) +
        ', {mode: "no-cors"})'])))""",
}
NAVIGATIONS = frozenset({"form", "link", "frame"})
# How a document is made inside its parent. `own` and `foreign` are pages of the two sites.
KINDS = ("own", "foreign", "blank", "srcdoc", "sandboxed", "data", "blob")
_SANDBOX = "allow-scripts allow-forms allow-popups"


@dataclass(frozen=True)
class Document:
    """A document: the requests that it sends, by number, and those inside it."""

    kind: str
    policy: str
    sends: tuple[tuple[int, str], ...]
    inside: tuple["Document", ...] = ()


@dataclass(frozen=True)
class SentRequest:
    """A request: the kinds of documents from the top to its sender, and whose it is: `own`, `foreign` or nobody's."""

    number: int
    means: str
    kinds: tuple[str, ...]
    policy: str
    owner: str | None

    def is_told(self, *, with_metadata: bool) -> bool:
        """Whether the browser tells the sender."""
        if self.means not in NAVIGATIONS:
            return True
        # Of what a sandboxed document leads to, it says only that it is nobody's. Without fetch metadata, a page that
        # allows no referrer says nothing either.
        return "sandboxed" not in self.kinds and (with_metadata or self.policy != "no-referrer")


def random_page(pick: random.Random, requests: int) -> Document:
    """A page whose documents send so many requests."""
    numbers = iter(range(requests))

    def new_document(kind: str, depth: int) -> Document:
        count = pick.randint(1, 2)
        sends = tuple((number, pick.choice(list(MEANS))) for _, number in zip(range(count), numbers, strict=False))
        inside = [new_document(pick.choice(KINDS), depth + 1) for _ in range(pick.randint(0, 2) if depth < 2 else 0)]
        return Document(kind, pick.choice(("", "no-referrer", "same-origin")), sends, tuple(inside))

    page = new_document(pick.choice(("own", "foreign")), 0)
    rest = [(number, pick.choice(list(MEANS))) for number in numbers]
    return Document(page.kind, page.policy, (*page.sends, *rest), page.inside)


def sent_by(page: Document, above: tuple[str, ...] = (), owner: str | None = None) -> Iterator[SentRequest]:
    """Every request of a page and of the documents in it."""
    kinds = (*above, page.kind)
    owner = {"own": "own", "foreign": "foreign", "data": None}.get(page.kind, owner)
    for number, means in page.sends:
        yield SentRequest(number, means, kinds, page.policy, owner)
    for document in page.inside:
        yield from sent_by(document, kinds, owner)


class Planted:
    """A page as HTML. `pages` are the documents that a site must serve for it; `sites` are the sites' addresses."""

    def __init__(self, page: Document, sites: dict[str, str]) -> None:
        self.pages: dict[str, Page] = {}
        self._sites = sites
        self.address = self._served(page)

    def _served(self, page: Document) -> str:
        path = f"page{len(self.pages)}"
        # Reserved before the documents inside are served.
        self.pages[f"/{path}"] = ""
        self.pages[f"/{path}"] = self._html(page)
        return self._sites[page.kind] + path

    def _html(self, page: Document) -> str:
        meta = f'<meta name="referrer" content="{page.policy}">' if page.policy else ""
        return f"<title>Page</title>{meta}<body><script>{self._script(page)}</script>"

    def _script(self, page: Document) -> str:
        urls = ((json.dumps(f"{self._sites['own']}target/{number}"), means) for number, means in page.sends)
        sends = [f"(url => {{ {MEANS[means]} }})({url})" for url, means in urls]
        return ";\n".join([*map(self._framed, page.inside), *sends])

    def _framed(self, page: Document) -> str:
        by_key, after = "", ""
        match page.kind:
            case "own" | "foreign":
                by_key = f"frame.src = {json.dumps(self._served(page))}"
            case "blank":
                after = f"frame.contentWindow.eval({_literal(self._script(page))})"
            case "srcdoc":
                by_key = f"frame.srcdoc = {_literal(self._html(page))}"
            case "sandboxed":
                by_key = f"frame.sandbox = '{_SANDBOX}'; frame.srcdoc = {_literal(self._html(page))}"
            case "data":
                by_key = f"frame.src = 'data:text/html,' + encodeURIComponent({_literal(self._html(page))})"
            case "blob":
                html = _literal(self._html(page))
                by_key = f"frame.src = URL.createObjectURL(new Blob([{html}], {{type: 'text/html'}}))"
        return f"{{ const frame = document.createElement('iframe'); {by_key}; document.body.append(frame); {after} }}"


def _literal(text: str) -> str:
    """A string of JavaScript that may stand inside a script element."""
    return json.dumps(text).replace("</", "<\\/")
