"""Random pages in which an expected text or element stands in one known place, and what checks must make of it.

A page nests frames of all kinds, editors, shadow trees and boxes. The oracle knows the place because it put the content
there; it does not look at the page.
"""

import html
import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from judge.evaluators.checks import evaluate
from judge.records.steps import Step
from judge.records.tasks import Task
from judge.trajectory.record import CURRENT_RULES, Attempt, Trajectory
from shared.models import Page

_HOSTS = (
    "contenteditable",
    'contenteditable="true"',
    'contenteditable="plaintext-only"',
    'contenteditable role="none"',
)
_STYLES = ("", ' style="pointer-events:none"', ' style="display:inline"', ' style="display:contents"')
_FRAMES = (
    "own", "other", "data", "srcdoc", "own sandboxed", "other sandboxed", "srcdoc sandboxed", "blob", "written",
    "rebuilt",
)  # fmt: skip
# What can hold the expected words, with a check that looks for the element; `None` if only its text can be looked for.
_LEAVES: tuple[tuple[str, str | None], ...] = (
    ("<p>{}</p>", "paragraph: {}"),
    ("<h3>{}</h3>", 'heading "{}"'),
    ("<button>{}</button>", 'button "{}"'),
    ("<ul><li>{}</li></ul>", "listitem: {}"),
    ("<table><tr><td>{}</td><td>x</td></tr></table>", 'cell "{}"'),
    ('<a href="#">{}</a>', 'link "{}"'),
    ("<span>{}</span>", None),
    ("{}", None),
)
# Editors that hold the expected words themselves.
_EDITED_LEAVES: tuple[tuple[str, str | None], ...] = (
    ("<h3 contenteditable>{}</h3>", 'heading "{}"'),
    ("<ul><li contenteditable>{}</li></ul>", "listitem: {}"),
    ("<table><tr><td contenteditable>{}</td><td>x</td></tr></table>", 'cell "{}"'),
    ("<p>Said: <span contenteditable>{}</span></p>", None),
    ("<h3><span contenteditable>{}</span></h3>", 'heading "{}"'),
    ('<button aria-labelledby="named">x</button><div contenteditable id="named">{}</div>', 'button "{}"'),
    ('<div contenteditable role="textbox" aria-label="Doc"><p>{}</p></div>', "paragraph: {}"),
)


@dataclass(frozen=True)
class Expected:
    """The planted words, the origin of their document (`None`: nobody's), and whether they are inside an editor."""

    words: str
    element: str | None
    origin: str | None
    is_inside: bool

    def passes(self, own: str, *, editable: bool, allowed: str | None) -> bool:
        """Whether a check for them passes."""
        return self.origin is not None and self.origin in (own, allowed) and (editable or not self.is_inside)


@dataclass
class WrittenPage:
    """One page: its path, every document that it consists of by path, and what is expected of it."""

    path: str
    documents: dict[str, str]
    expected: Expected
    shape: str


@dataclass(frozen=True)
class _Place:
    origin: str | None
    is_inside: bool = False
    # In a document whose origin the browser hides, what the document makes itself is nobody's.
    is_hidden: bool = False
    # A sandbox hides the origins of all documents in it; a `data:` document only its own.
    is_sandboxed: bool = False
    trail: tuple[str, ...] = ()

    def within(self, what: str, **changes: Any) -> "_Place":
        return replace(self, **changes, trail=(*self.trail, what))


@dataclass
class _Maker:
    rng: random.Random
    number: int
    own: str
    other: str
    documents: dict[str, str] = field(default_factory=dict)
    count: int = 0
    labels: int = 0

    def page(self) -> WrittenPage:
        words = f"planted {self.number}"
        top = _Place(self.own)
        body, place, element = self._blocks(words, top, depth=0)
        path = self._document(body)
        expected = Expected(words, element, place.origin, place.is_inside)
        return WrittenPage(path, self.documents, expected, " > ".join(place.trail))

    def _document(self, body: str) -> str:
        path = f"/{self.number}/{self.count}"
        self.count += 1
        self.documents[path] = f"<!doctype html><meta charset=utf-8><title>t</title><body>{body}</body>"
        return path

    def _blocks(self, words: str | None, place: _Place, depth: int) -> tuple[str, _Place, str | None]:
        """Some content; with the words in one of its blocks."""
        count = self.rng.randint(1, 2 if depth else 3)
        at = self.rng.randrange(count)
        parts, results, element = [], place, None
        for each in range(count):
            part, there, what = self._block(words if each == at else None, place, depth + 1)
            parts.append(part)
            if each == at:
                results, element = there, what
        return "\n".join(parts), results, element

    def _block(self, words: str | None, place: _Place, depth: int) -> tuple[str, _Place, str | None]:
        kinds = ["leaf"] if depth > 5 else ["leaf", "box", "host", "island", "shadow", "slot", "frame", "frame"]
        kind = self.rng.choice(kinds)
        if kind == "leaf":
            return self._leaf(words, place)
        if kind == "frame":
            return self._frame(words, place, depth)
        if kind == "host":
            inner, there, element = self._blocks(words, place.within("host", is_inside=True), depth)
            return f"<div {self.rng.choice(_HOSTS)}>{inner}</div>", there, element
        inner, there, element = self._blocks(words, place.within(kind), depth)
        if kind == "island":
            return f'<div contenteditable="false">{inner}</div>', there, element
        if kind == "shadow":
            return f'<div><template shadowrootmode="open">{inner}</template></div>', there, element
        if kind == "slot":
            is_edited = self.rng.random() < 0.5
            there = there if not is_edited else there.within("edited slot", is_inside=True)
            attribute = " contenteditable" if is_edited else ""
            template = f'<template shadowrootmode="open"><section{attribute}><slot></slot></section></template>'
            return f"<div>{template}{inner}</div>", there, element
        return f"<div{self.rng.choice(_STYLES)}>{inner}</div>", there, element

    def _leaf(self, words: str | None, place: _Place) -> tuple[str, _Place, str | None]:
        is_edited = self.rng.random() < 0.3
        form, element = self.rng.choice(_EDITED_LEAVES if is_edited else _LEAVES)
        if "named" in form:
            # An id must be the only one of its document.
            self.labels += 1
            form = form.replace("named", f"named{self.labels}")
        text = form.format(words or f"other words {self.rng.randrange(1000)}")
        if is_edited:
            place = place.within("edited leaf", is_inside=True)
        return text, place.within(form), element.format(words) if element else None

    def _frame(self, words: str | None, place: _Place, depth: int) -> tuple[str, _Place, str | None]:
        kind = self.rng.choice(_FRAMES)
        # A document in a sandbox cannot write into the empty document of a frame.
        kind = "blob" if kind == "written" and place.is_hidden else kind
        is_sandboxed = place.is_sandboxed or kind.endswith("sandboxed")
        origin, is_hidden = self._origin_in(kind, place, is_sandboxed)
        is_designed = self.rng.random() < 0.15
        there = place.within(f"{kind} frame", origin=origin, is_hidden=is_hidden, is_sandboxed=is_sandboxed)
        if is_designed:
            there = there.within("design mode", is_inside=True)
        inner, result, element = self._blocks(words, there, depth)
        inner += "<script>document.designMode = 'on'</script>" if is_designed else ""
        return self._embedded(kind, inner), result, element

    def _origin_in(self, kind: str, place: _Place, is_sandboxed: bool) -> tuple[str | None, bool]:
        """Whose the document in a frame is, and whether the browser hides it."""
        if kind.startswith("own") or kind == "rebuilt":
            return self.own, is_sandboxed
        if kind.startswith("other"):
            return self.other, is_sandboxed
        if kind == "data":
            return None, True
        if kind.startswith("srcdoc"):
            return place.origin, is_sandboxed or place.is_hidden
        # Made by a script of the document: its own, unless the browser does not say whose that is.
        return (None, True) if place.is_hidden else (place.origin, False)

    def _embedded(self, kind: str, inner: str) -> str:
        sandbox = ' sandbox="allow-scripts"' if kind.endswith("sandboxed") else ""
        size = ' width="600" height="200"'
        name = f"f{self.number}_{self.count}_{self.rng.randrange(10**9)}"
        # A script inside a script must not end it.
        text = json.dumps(inner).replace("</", "<\\/")
        match kind.split()[0]:
            case "own" | "other":
                base = self.own if kind.startswith("own") else self.other
                return f'<iframe{sandbox}{size} src="{base}{self._document(inner)}"></iframe>'
            case "data":
                return f'<iframe{size} src="data:text/html;charset=utf-8,{quote(inner)}"></iframe>'
            case "srcdoc":
                return f'<iframe{sandbox}{size} srcdoc="{html.escape(inner)}"></iframe>'
            case "blob":
                result = f"URL.createObjectURL(new Blob([{text}], {{type: 'text/html;charset=utf-8'}}))"
                return f"<iframe{size} id={name}></iframe><script>{_script(name, f'frame.src = {result}')}</script>"
            case "written":
                code = f"frame.contentDocument.write({text}); frame.contentDocument.close()"
                return f"<iframe{size} id={name}></iframe><script>{_script(name, code)}</script>"
        # Another site's document at first.
        first, then = self._document("<p>first</p>"), self._document(inner)
        code = f"frame.onload = () => {{ frame.onload = null; frame.src = '{self.own}{then}' }}"
        return f'<iframe{size} id={name} src="{self.other}{first}"></iframe><script>{_script(name, code)}</script>'


def _script(name: str, code: str) -> str:
    """The code with `frame` as the element of that id, which may be inside a shadow tree."""
    find = (
        f"root => root.querySelector('#{name}') ?? "
        "[...root.querySelectorAll('*')].map(each => each.shadowRoot && find(each.shadowRoot)).find(Boolean)"
    )
    return f"{{ const find = {find}; const frame = find(document); {code} }}"


def written_page(seed: int, own: str, other: str) -> WrittenPage:
    """The page of this seed, for a site of its own and another one."""
    return _Maker(random.Random(seed), seed, own, other).page()


@contextmanager
def two_sites() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Two origins on this machine that serve the same documents, which may be added to."""
    documents: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = documents.get(self.path.partition("?")[0], "").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", f"http://localhost:{server.server_port}", documents
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def verdicts(page: Page, expected: Expected, own: str, other: str, folder: Path) -> list[tuple[str, bool, bool]]:
    """Each check on what was observed: in words, whether it must pass, and whether it does."""
    (folder / "page.yaml").write_text(page.snapshot, encoding="utf-8", errors="surrogatepass")
    results = []
    for editable in (False, True):
        for allowed in (None, other):
            checks: list[dict[str, Any]] = [{"kind": "text", "contains": expected.words}]
            checks += [{"kind": "element", "element": expected.element}] if expected.element else []
            checks = [{**check, **({"editable": True} if editable else {})} for check in checks]
            allowed_sites = [allowed] if allowed else []
            task = {"task_id": "t", "website": own, "task": "t", "checks": checks, "allowed_sites": allowed_sites}
            step = Step(index=0, url=page.url, title="", origin=page.origin, snapshot="page.yaml")
            attempt = Attempt(
                task=Task.model_validate(task), steps=(step,), stop_reason="finished", max_steps=1, started_at=0,
                ended_at=0, rules_version=CURRENT_RULES,
            )  # fmt: skip
            recorded = Trajectory(folder=folder, attempt=attempt)
            expectation = expected.passes(own, editable=editable, allowed=allowed)
            for check, assertion in zip(checks, evaluate(recorded), strict=True):
                results.append((f"{check} allowed={allowed}", expectation, assertion.passed is True))
    return results
