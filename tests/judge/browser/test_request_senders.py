"""Who sent a request, as recorded in a real browser: documents of every kind, compared with where each was planted."""

import asyncio
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import Page, hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings, found_browser, with_flags
from helpers.cases import each
from judge.browser.pool import BrowserPool
from judge.records.tasks import Task
from judge.trajectory.network import BROWSER

# Pages whose documents of every kind send requests to a site, and who sent each: an oracle for recorded senders.
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


pytestmark = pytest.mark.e2e

# Without TLS, the browser sends `Sec-Fetch-Site` to this machine only.
WITH_METADATA = ("127.0.0.1", "localhost")
WITHOUT_METADATA = ("shop.test", "evil.test")
ISOLATED = ("--site-per-process",)
PLAYS = 8
REQUESTS = 6


async def recorded_senders(pool: BrowserPool, page: Document, hosts: tuple[str, str]) -> dict[int, str]:
    """Whose each answered request was by the record: `own`, `foreign`, or nobody's."""
    with hostile_site() as own, hostile_site() as foreign:
        at = {"own": f"http://{hosts[0]}:{own.server_port}/", "foreign": f"http://{hosts[1]}:{foreign.server_port}/"}
        planted = Planted(page, at)
        for site in (own, foreign):
            site.pages |= planted.pages
        entries = await recorded_requests(pool, planted.address, at["own"], len(list(sent_by(page))))
    names = {at["own"].rstrip("/"): "own", BROWSER: "own", at["foreign"].rstrip("/"): "foreign"}
    return {int(each["request"]["url"].rpartition("/")[2]): names.get(each["_sender"], "nobody") for each in entries}


async def recorded_requests(pool: BrowserPool, address: str, website: str, count: int) -> list[dict[str, Any]]:
    """The requests at targets that were answered."""
    async with pool.browser(None) as browser:
        await browser.log_in(Task(task_id="t", website=website, task="x"))
        await browser.open(address)
        results: list[dict[str, Any]] = []
        for _ in range(60):
            traffic = browser.traffic()
            assert traffic is not None
            results = [
                each for each in traffic.entries if each["response"]["status"] and "/target/" in each["request"]["url"]
            ]
            if len(results) >= count and not traffic.is_pending:
                break
            await asyncio.sleep(0.05)
    return results


# Each kind of host and each number of processes once; the nightly run takes all four pairs.
@pytest.mark.parametrize(
    ("hosts", "flags"),
    each(
        [(hosts, flags) for hosts in (WITH_METADATA, WITHOUT_METADATA) for flags in ((), ISOLATED)],
        suite=[(WITH_METADATA, ()), (WITHOUT_METADATA, ISOLATED)],
    ),
    ids=["fetch metadata-one process", "fetch metadata-isolated", "plain-one process", "plain-isolated"],
)
async def test_a_request_is_the_sites_if_and_only_if_a_document_of_the_site_sent_it(
    tmp_path: Path, hosts: tuple[str, str], flags: tuple[str, ...]
) -> None:
    path = with_flags(tmp_path, "--host-resolver-rules='MAP *.test 127.0.0.1'", *flags)
    program = found_browser().model_copy(update={"path": path})
    wrong: list[tuple[SentRequest, str]] = []
    count = 0
    async with browser_pool(browser_settings(program), is_guarded=False) as pool:
        for seed in range(PLAYS):
            page = random_page(random.Random(seed), REQUESTS)
            result = await recorded_senders(pool, page, hosts)
            for request in (each for each in sent_by(page) if each.number in result):
                count += 1
                is_own, is_told = request.owner == "own", request.is_told(with_metadata=hosts == WITH_METADATA)
                if (result[request.number] == "own") != is_own and not (is_own and not is_told):
                    wrong.append((request, result[request.number]))
    assert wrong == []
    # A sandbox stops some of them.
    assert count > PLAYS * REQUESTS * 0.8
