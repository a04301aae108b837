"""Annotates a snapshot with the authors of its content: the origin of each frame's document, and what is inside
editors.

The facts come from `provenance.js`, which reads them in the browser right after the snapshot. They are added to the
snapshot's lines as states, which names and texts of a page cannot imitate because the snapshot quotes them:

- `[origin=https://pay.example]` on a frame: the origin of the document in it; `null` is an opaque origin, none is
  unknown;
- `[editable]`: inside an editing host; `[editable=host]`: the host itself;
- `[editable=name]`: its name includes text from inside a host; `[editable=text]`: its own text, or that of content
  without a reference, does (several are joined: `[editable=host+name]`);
- `[site=0-9,12-20]` beside it: which of that content the site wrote (`judge.evaluators.pieces`);
- `[editable=unknown]`: the page replaced the element while it was being observed;
- `[editable=…+foreign]`: what its name or text includes is not typed, but was put in by the judge as an attack;
- `[inserted=page]`: the judge put it in; `[label=:Close]`: the judge renamed it, and this is the name of the site;
- `[joined]`: its text follows what is before it without a space, and is followed without one (`joins.js`);
  `[joined=before]` and `[joined=after]`: only one of them.

Participants see none of them (`shared.snapshot.as_shown`). `judge.evaluators.provenance` uses them.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from judge.evaluators.pieces import written_by_site
from shared.snapshot import MARKABLE_LINE, REF, parse_snapshot

_FRAME = re.compile(r"(?:f[0-9]{1,9})?(?=e[0-9])")
_REF_STATE = re.compile(rf" \[ref=({REF.pattern})\]")
_SRCDOC, _BLANK = "about:srcdoc", "about:blank"
_OPAQUE = "null"
_MAX_ORIGIN_CHARS = 300
# In the order in which `[editable=…]` joins them.
_MARKS = ("true", "unknown", "host", "name", "text", "foreign")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class _Host(BaseModel):
    """An editing host: its reference (may be empty), its text if it is a text box, and the references around it.

    `inserted`: it is no editor, but what the judge put in as an attack.
    """

    model_config = ConfigDict(frozen=True)

    ref: str
    text: str
    around: tuple[str, ...]
    inserted: bool = False


class Document(BaseModel):
    """What `provenance.js` found in one document. `refs` and `inside` are references separated by spaces.

    `origin` is that of the document, `address_origin` that of its address. `named` are elements whose name includes
    text from inside a host; `owners` are chains of references around elements that own (`aria-owns`) such text. Where
    what the judge put in is part of it, the names are also `foreign_names`, and the chains are `foreign_owners`.
    `joined_before` and `joined_after` are elements whose text goes on there without a space. `pieces` are the drawn
    text in order, with who wrote it, and the elements around it; none if there are no hosts. `inserted` are references
    of what the judge put in, `labels` those of elements that it renamed, with the site's names (empty: their content).
    """

    model_config = ConfigDict(frozen=True)

    is_main: bool
    address: str
    address_origin: str
    origin: str
    refs: str
    inside: str
    inserted: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    hosts: tuple[_Host, ...] = ()
    named: tuple[str, ...] = ()
    foreign_names: frozenset[str] = frozenset()
    owners: tuple[tuple[str, ...], ...] = ()
    foreign_owners: tuple[tuple[str, ...], ...] = ()
    joined_before: str = ""
    joined_after: str = ""
    pieces: tuple[tuple[Literal["in", "as", "out", "site", "typed"], str], ...] = ()

    def origin_in(self, parent: str | None) -> str | None:
        """The origin of whoever wrote the document, in a document of the origin `parent`; `None` if that is unknown.

        A `srcdoc` document belongs to its parent, sandboxed or not; an empty one and a `blob:` belong to their creator,
        unless a sandbox hides the creator; `data:` belongs to nobody. Otherwise, a sandbox removes the origin of the
        document, but not that of its author.
        """
        if self.address.startswith(_SRCDOC):
            return parent
        # Only the browser knows the creator of an empty document: another document may have opened it in this frame.
        origin = (
            self.origin if self.address_origin == _OPAQUE and self.address.startswith(_BLANK) else self.address_origin
        )
        return origin[:_MAX_ORIGIN_CHARS]


_DOCUMENTS = TypeAdapter(list[Document])
# An element's line with its reference.
_Line = tuple[re.Match[str], str | None]


class Marked(NamedTuple):
    """A snapshot with its facts, and the main document's origin (`None`: unknown).

    `is_mixed`: what has no reference in the main document may come from an editor. `is_complete`: every element with a
    reference was still in the page. `inserted` are the references of what the judge put in or renamed.
    """

    snapshot: str
    origin: str | None
    is_mixed: bool
    is_complete: bool
    inserted: tuple[str, ...] = ()


class _Frame(NamedTuple):
    """The prefix of the references in a frame, and the origin of its document if that is known."""

    prefix: str
    origin: str | None


def read_documents(found: Sequence[object]) -> list[Document]:
    """The documents reported by the browser; empty if the report is unreadable."""
    try:
        return _DOCUMENTS.validate_python(found)
    except ValidationError:
        return []


def mark(snapshot: str, documents: Sequence[Document]) -> Marked:
    """Add the facts to a snapshot that was taken with boxes."""
    by_frame = {_frame_of(document.refs): document for document in documents if document.refs}
    lines = [(line, _ref_of(line)) for line in MARKABLE_LINE.finditer(snapshot)]
    main = next((document for document in documents if document.is_main), None)
    origin = main.origin_in(None) if main else None
    frames = _frames(lines, by_frame, origin)
    marks, values = _marks(documents, {ref for _, ref in lines if ref})
    site = _site(snapshot, documents, {ref for ref, found in marks.items() if "text" in found})
    joins, attacks = _joins(documents), _attacks(documents)
    covered = {ref for document in documents for ref in document.refs.split()}
    unknown = {ref for _, ref in lines if ref} - covered
    marks |= dict.fromkeys(unknown, frozenset({"unknown"}))
    # The marks of a frame apply to its content without references.
    is_mixed = main is not None and (_frame_of(main.refs) or "") in marks
    pieces: list[str] = []
    written = 0
    for at, (line, ref) in enumerate(lines):
        inner, states = frames.get(at), ""
        found = marks.get(ref, frozenset()) if ref else frozenset()
        if inner:
            states = f" [origin={_quoted(inner.origin)}]" if inner.origin else ""
            found |= marks.get(inner.prefix, frozenset())
        if found:
            names = "+".join(name for name in _MARKS if name in found)
            states += " [editable]" if names == "true" else f" [editable={names}]"
        states += site.get(ref or "", "") + joins.get(ref or "", "") + attacks.get(ref or "", "")
        value = values.get(ref or "", "") if not snapshot.startswith(":", line.end()) else ""
        if states or value:
            pieces += [snapshot[written : line.end("states")], states, snapshot[line.end("states") : line.end()], value]
            written = line.end()
    text = "".join((*pieces, snapshot[written:]))
    inserted = tuple(ref for _, ref in lines if ref in attacks)
    return Marked(text, origin, is_mixed=is_mixed, is_complete=not unknown, inserted=inserted)


def _site(snapshot: str, documents: Iterable[Document], mixed: set[str]) -> dict[str, str]:
    """The state of each element that is known to have some content by the site."""
    told = [document.pieces for document in documents if document.pieces]
    if not told or not mixed:
        return {}
    page = parse_snapshot(snapshot)
    return {ref: f" [site={state}]" for pieces in told for ref, state in written_by_site(page, pieces, mixed).items()}


def _attacks(documents: Iterable[Document]) -> dict[str, str]:
    """The state of each element that the judge put in or renamed."""
    found: dict[str, str] = {}
    for document in documents:
        found |= {ref: f" [label=:{quote(name, safe='')}]" for ref, name in document.labels}
        found |= dict.fromkeys(document.inserted.split(), " [inserted=page]")
    return found


def _joins(documents: Iterable[Document]) -> dict[str, str]:
    """The state of each element whose text continues without a space before it, after it, or both."""
    before, after = (
        {ref for document in documents for ref in getattr(document, side).split()}
        for side in ("joined_before", "joined_after")
    )
    one_sided = dict.fromkeys(before, " [joined=before]") | dict.fromkeys(after, " [joined=after]")
    return one_sided | dict.fromkeys(before & after, " [joined]")


def _frames(lines: Sequence[_Line], by_frame: Mapping[str | None, Document], origin: str | None) -> dict[int, _Frame]:
    """The frames with elements in them, by the place of their lines."""
    # The origins of the documents around a line, each with the depth of its frame's line.
    around: list[tuple[int, str | None]] = [(-1, origin)]
    found = {}
    for at, (line, _) in enumerate(lines):
        depth = len(line["indent"])
        while around[-1][0] >= depth:
            around.pop()
        if line["role"] != "iframe":
            continue
        prefix = _frame_below(lines, at)
        document = by_frame.get(prefix)
        inner = document.origin_in(around[-1][1]) if document else None
        around.append((depth, inner))
        if prefix:
            found[at] = _Frame(prefix, inner)
    return found


def _marks(documents: Iterable[Document], shown: set[str]) -> tuple[dict[str, frozenset[str]], dict[str, str]]:
    """The marks of each reference and frame, and the values of text boxes that the snapshot leaves out."""
    marks: dict[str, set[str]] = {}
    values: dict[str, str] = {}
    for document in documents:
        for ref in document.inside.split():
            marks.setdefault(ref, set()).add("true")
        for ref in document.named:
            marks.setdefault(ref, set()).update({"name", "foreign"} if ref in document.foreign_names else {"name"})
        for chain, is_foreign in _chains(document, shown):
            # The key of a document stands for content outside all elements with references.
            nearest = next((ref for ref in chain if ref in shown), _frame_of(document.refs) or "")
            marks.setdefault(nearest, set()).update({"text", "foreign"} if is_foreign else {"text"})
        for host in document.hosts:
            if host.ref in shown and not host.inserted:
                marks.setdefault(host.ref, set()).add("host")
                text = " ".join(host.text.split())
                values |= {host.ref: f': "{_escaped(text)}"'} if text else {}
    inside = frozenset({"true"})
    return {ref: inside if "true" in found else frozenset(found) for ref, found in marks.items()}, values


def _chains(document: Document, shown: set[str]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The references around each text from inside a host that may be shown as the text of what is around it, and
    whether what the judge put in is part of that text.
    """
    yield from ((chain, False) for chain in document.owners)
    yield from ((chain, True) for chain in document.foreign_owners)
    yield from ((host.around, host.inserted) for host in document.hosts if host.ref not in shown)


def _frame_below(lines: Sequence[_Line], at: int) -> str | None:
    """The prefix of the references inside a frame, whose line is at this place."""
    depth = len(lines[at][0]["indent"])
    below = itertools.takewhile(lambda each: len(each[0]["indent"]) > depth, itertools.islice(lines, at + 1, None))
    return next((_frame_of(ref) for _, ref in below if ref), None)


def _frame_of(refs: str) -> str | None:
    """The prefix of references, the same for all in a frame: `f2`, or empty."""
    match = _FRAME.match(refs)
    return match[0] if match else None


def _ref_of(line: re.Match[str]) -> str | None:
    found = _REF_STATE.search(line["states"])
    return found[1] if found else None


def _quoted(origin: str) -> str:
    """The origin as the value of a state, which ends at a bracket: an IPv6 address contains some."""
    return origin.replace("[", "%5B").replace("]", "%5D")


def _escaped(text: str) -> str:
    """The text inside double quotes, as YAML writes it."""
    plain = text.replace("\\", r"\\").replace('"', r"\"")
    return _CONTROL.sub(lambda match: rf"\x{ord(match[0]):02x}", plain)
