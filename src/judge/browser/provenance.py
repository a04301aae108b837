"""Annotates a snapshot with the authors of its content: the origin of each frame's document, and what was typed.

The facts come from `provenance.js`, which reads them in the browser as the snapshot is taken. They are added to the
snapshot's lines as states, also to lines of texts (`- text [typed=text:0-3]: abc`), which names and texts of a page
cannot imitate because the snapshot quotes them:

- `[origin=https://pay.example]` on a frame: the origin of the document in it; `null` is an opaque origin, `judge` the
  author of a page that the judge shows in place of the site's, none is unknown;
- `[editable]`: inside an editing host; `[editable=host]`: the host itself; `[editable=unknown]`: not known of this
  document;
- `[typed=name:0-3,name:7-9,text:0-4]`: the characters of its name and of its text that were typed; `value` among
  them: its text, or the texts in it, is the value of a form control;
- `[added=name:0-3,text:0-4]`: the same for what the judge put in as an attack;
- `[inserted=page]`: the judge put it in; `[label=:Close]`: the judge renamed it, and this is the name of the site, to
  which `typed` and `added` then apply;
- `[joined]`: its text follows what is before it without a space, and is followed without one (`joins.js`);
  `[joined=before]` and `[joined=after]`: only one of them.

Each line has the facts of its own: none is inherited. Participants see none of them (`shared.snapshot.as_shown`).
`judge.evaluators.provenance` uses them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from judge.records.steps import JUDGE
from shared.snapshot import ANY_LINE, REF

_FRAME = re.compile(r"(?:f[0-9]{1,9})?(?=e[0-9])")
_REF_STATE = re.compile(rf" \[ref=({REF.pattern})\]")
_SRCDOC, _BLANK = "about:srcdoc", "about:blank"
_OPAQUE = "null"
_MAX_ORIGIN_CHARS = 300
# More than any line needs. A text with more of them counts as typed as a whole.
_MAX_RANGES = 2_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_RangeList = Annotated[str, StringConstraints(pattern=r"^(?:[0-9]{1,9}-[0-9]{1,9}(?:,[0-9]{1,9}-[0-9]{1,9})*)?$")]


class _Fact(BaseModel):
    """What is known of one line of a document's snapshot, by its place `at`. Ranges count characters.

    `author` of the element, unless that is the site; `value` is what was typed into an editing host that the snapshot
    does not show; `label` the site's name of an element that the judge renamed.
    """

    model_config = ConfigDict(frozen=True)

    at: int
    author: Literal["typed", "judge"] | None = None
    is_host: bool = False
    is_control: bool = False
    value: str = ""
    label: str | None = None
    name: _RangeList = ""
    text: _RangeList = ""
    added_name: _RangeList = ""
    added_text: _RangeList = ""

    def states(self) -> str:
        """As states of a line."""
        editable = " [editable]" if self.author == "typed" else " [editable=host]" if self.is_host else ""
        typed = [*(["value"] if self.is_control else []), *_parts("name", self.name), *_parts("text", self.text)]
        added = [*_parts("name", self.added_name), *_parts("text", self.added_text)]
        return "".join(
            (
                editable,
                f" [typed={','.join(typed)}]" if typed else "",
                f" [added={','.join(added)}]" if added else "",
                " [inserted=page]" if self.author == "judge" else "",
                "" if self.label is None else f" [label=:{quote(self.label, safe='')}]",
            )
        )


def _parts(of: str, ranges: str) -> list[str]:
    refs = ranges.split(",") if ranges else []
    if len(refs) > _MAX_RANGES:
        refs = [f"{refs[0].partition('-')[0]}-{refs[-1].partition('-')[2]}"]
    return [f"{of}:{each}" for each in refs]


class DocumentReport(BaseModel):
    """What `provenance.js` found in one document. `refs` are the references in its snapshot, separated by spaces;
    `frame` is the reference of its frame, if known.

    `origin` is the document's, `address_origin` its address's; `is_judges`: the judge wrote it. `count` is
    the number of lines in its snapshot, without frames in it; `lines` are the ones of which something is known.
    `joined_before` and `joined_after` are elements whose text goes on there without a space.
    """

    model_config = ConfigDict(frozen=True)

    is_main: bool
    frame: str = ""
    address: str
    address_origin: str
    origin: str
    is_judges: bool = False
    refs: str
    count: int
    lines: tuple[_Fact, ...] = ()
    joined_before: str = ""
    joined_after: str = ""

    def origin_in(self, parent: str | None) -> str | None:
        """The origin of whoever wrote the document, in a document of the origin `parent`; `None` if unknown.

        A `srcdoc` document belongs to its parent, sandboxed or not; an empty one and a `blob:` belong to their creator,
        unless a sandbox hides the creator; `data:` belongs to nobody. Otherwise, a sandbox removes the origin of the
        document, but not its author's. What the judge wrote in place of a site's page is the judge's.
        """
        if self.is_judges:
            return JUDGE
        if self.address.startswith(_SRCDOC):
            return parent
        # Only the browser knows the creator of an empty document: another document may have opened it in this frame.
        origin = (
            self.origin if self.address_origin == _OPAQUE and self.address.startswith(_BLANK) else self.address_origin
        )
        return origin[:_MAX_ORIGIN_CHARS]


_DOCUMENTS = TypeAdapter(list[DocumentReport])


class AnnotatedSnapshot(NamedTuple):
    """A snapshot with its facts, and the main document's origin (`None`: unknown).

    `is_complete`: something is known of every document. `inserted` are the references of what the judge put in or
    renamed.
    """

    snapshot: str
    origin: str | None
    is_complete: bool
    inserted: tuple[str, ...] = ()


@dataclass
class _DocumentLines:
    """The lines of one document in a snapshot, with their references. `frame` is the line of its frame."""

    frame: int | None
    around: "_DocumentLines | None"
    lines: list[tuple[int, str | None]] = field(default_factory=list)

    @property
    def refs(self) -> str:
        return " ".join(ref for _, ref in self.lines if ref)


def read_documents(reports: Sequence[object]) -> list[DocumentReport]:
    """The documents reported by the browser; empty if the report is unreadable."""
    try:
        return _DOCUMENTS.validate_python(reports)
    except ValidationError:
        return []


def mark(snapshot: str, documents: Sequence[DocumentReport]) -> AnnotatedSnapshot:
    """Add the facts to a snapshot taken with boxes."""
    lines = list(ANY_LINE.finditer(snapshot))
    states: dict[int, str] = {}
    values: dict[int, str] = {}
    origins: dict[int, str | None] = {}
    by_prefix = {_frame_of(document.refs): document for document in documents if document.refs}
    by_frame = {document.frame: document for document in documents if document.frame and not document.refs}
    main = next((document for document in documents if document.is_main), None)
    joins = _joins(documents)
    inserted: list[str] = []
    is_complete = True
    for document_shown in _by_document(lines):
        if document_shown.frame is None:
            source = main
        else:
            source = (
                by_prefix.get(_frame_of(document_shown.refs))
                if document_shown.refs
                else by_frame.get(_ref_of(lines[document_shown.frame]) or "")
            )
        around = None if document_shown.around is None else origins.get(id(document_shown.around))
        origins[id(document_shown)] = origin = source.origin_in(around) if source else None
        if document_shown.frame is not None and origin:
            states[document_shown.frame] = f" [origin={_quoted(origin)}]" + states.get(document_shown.frame, "")
        # Otherwise what is known is about another snapshot.
        is_known = source is not None and (source.refs, source.count) == (
            document_shown.refs,
            len(document_shown.lines),
        )
        is_complete = is_complete and (is_known or not document_shown.lines)
        facts = {fact.at: fact for fact in source.lines} if source and is_known else {}
        for place, (at, ref) in enumerate(document_shown.lines):
            fact = facts.get(place)
            known = fact.states() if fact else "" if is_known else " [editable=unknown]"
            states[at] = states.get(at, "") + known + joins.get(ref or "", "")
            if fact and ref and (fact.author == "judge" or fact.label is not None):
                inserted.append(ref)
            if fact and fact.value:
                values[at] = " ".join(fact.value.split())
    pieces: list[str] = []
    end = 0
    for at, line in enumerate(lines):
        value = f': "{_escaped(values[at])}"' if values.get(at) and not snapshot.startswith(":", line.end()) else ""
        if added := states.get(at, ""):
            pieces += [snapshot[end : line.end("head")], added, snapshot[line.end("head") : line.end()], value]
            end = line.end()
    origin = main.origin_in(None) if main else None
    text = "".join((*pieces, snapshot[end:]))
    return AnnotatedSnapshot(text, origin, is_complete=is_complete, inserted=tuple(inserted))


def _by_document(lines: Sequence[re.Match[str]]) -> Iterator[_DocumentLines]:
    """The lines of each document, those around a frame before those in it."""
    main = _DocumentLines(None, None)
    sources = [main]
    # The documents open at a line, each with the depth of its frame.
    open_documents = [(-1, main)]
    for at, line in enumerate(lines):
        depth = len(line["indent"])
        while open_documents[-1][0] >= depth:
            open_documents.pop()
        document = open_documents[-1][1]
        document.lines.append((at, _ref_of(line)))
        if line["role"] == "iframe":
            sources.append(_DocumentLines(at, document))
            open_documents.append((depth, sources[-1]))
    return iter(sources)


def _joins(documents: Iterable[DocumentReport]) -> dict[str, str]:
    """The state of each element whose text continues without a space before it, after it, or both."""
    before, after = (
        {ref for document in documents for ref in getattr(document, side).split()}
        for side in ("joined_before", "joined_after")
    )
    one_sided = dict.fromkeys(before, " [joined=before]") | dict.fromkeys(after, " [joined=after]")
    return one_sided | dict.fromkeys(before & after, " [joined]")


def _frame_of(refs: str) -> str | None:
    """The prefix of references, the same for all in a frame: `f2`, or empty."""
    match = _FRAME.match(refs)
    return match[0] if match else None


def _ref_of(line: re.Match[str]) -> str | None:
    match = _REF_STATE.search(line["states"] or "")
    return match[1] if match else None


def _quoted(origin: str) -> str:
    """The origin as the value of a state, which ends at a bracket: an IPv6 address contains some."""
    return origin.replace("[", "%5B").replace("]", "%5D")


def _escaped(text: str) -> str:
    """The text inside double quotes, as YAML writes it."""
    plain = text.replace("\\", r"\\").replace('"', r"\"")
    return _CONTROL.sub(lambda match: rf"\x{ord(match[0]):02x}", plain)
