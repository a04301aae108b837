"""Operators: how a near miss is made of a right walk. Each is a record in `OPERATORS`.

They yield what teaches something first; a walk that cannot be played breaks off, and is never counted.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from judge.plugins.nearmiss.walks import (
    BACK,
    NAVIGATE,
    Moment,
    RightWalk,
    ScriptedWalk,
    ScriptSteps,
    named,
    reference_digest,
)
from judge.records.checks import plain_checks
from judge.records.tasks import Task
from shared.elements import ElementQuery, find_element
from shared.fields import as_mapping
from shared.files import sha256_json
from shared.snapshot import Node, Snapshot
from shared.text import excerpt, plain

# What a walk by an operator is about: something besides the task; another answer; not all of the task; the task by
# another way, which must not fail; a way that the task may prescribe; or something else in the task's place.
Purpose = Literal["besides", "answer", "early", "strict", "way", "instead"]
_OBJECTS = frozenset(
    {"link", "listitem", "option", "row", "cell", "checkbox", "radio", "treeitem", "article", "button"}
)
_TICKED = frozenset({"checkbox", "switch"})
_TEXTS = frozenset({"textbox", "searchbox", "spinbutton"})
# Parts of a page that are about the site and not about the task's objects.
_AROUND = frozenset({"navigation", "banner", "contentinfo", "menubar", "tablist", "search"})
_FILLED = (_TEXTS | _TICKED | {"combobox", "radio"}) - {"searchbox"}
_SEARCH = re.compile(r"\bsearch\b", re.IGNORECASE)
_ADDED = "Zz"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ASKS = re.compile(r"\?|\b(?:answer|reply|tell|report)\b", re.IGNORECASE)
# A way that a task may prescribe.
_WAY = re.compile(r"\b(?:search|using|use|follow|through|via|filter|sort|scroll|drag|click|from)\b", re.IGNORECASE)


class Variant(NamedTuple):
    """The steps of a near miss, the place of the first one that is not the right walk's, and what it is about.

    `is_elsewhere`: it chooses something in a group that the right walk does not touch.
    """

    steps: ScriptSteps
    faulty: int
    about: str
    is_elsewhere: bool = False


@dataclass(frozen=True)
class Operator:
    """One way to make near misses. Without `by_default`, only `--operator` makes them."""

    purpose: Purpose
    makes: Callable[[RightWalk], Iterator[Variant]]
    by_default: bool = True


def asks(task: Task) -> bool:
    """Whether a task asks for an answer."""
    return bool(_ASKS.search(task.task)) or any(check.kind == "answer" for check in plain_checks(task.checks))


def prescribes_way(task: Task) -> bool:
    """Whether the text of a task says how it is to be done."""
    return bool(_WAY.search(task.task))


def near_misses(
    right: RightWalk, reference: ScriptSteps, names: Sequence[str], limit: int, seed: int
) -> list[ScriptedWalk]:
    """Up to `limit` near misses of a right walk by these operators, in turn; which ones, the seed decides."""
    by_operator, known = [], {sha256_json(list(reference))}
    for name in names:
        made = {sha256_json(list(each.steps)): each for each in OPERATORS[name].makes(right)}
        new = [(name, key, each) for key, each in made.items() if key not in known]
        known |= made.keys()
        if seed:
            Random(f"{seed} {right.task.task_id} {name}").shuffle(new)
        by_operator.append(new)
    in_turn = (each for row in itertools.zip_longest(*by_operator) for each in row if each is not None)
    task_id, digest = right.task.task_id, reference_digest(right.task, reference)
    return [
        ScriptedWalk(walk_id=f"{name}-{key[:8]}", task_id=task_id, operator=name, reference=digest, **variant._asdict())
        for name, key, variant in itertools.islice(in_turn, limit)
    ]


# --- Something besides the task ---


def _also(right: RightWalk) -> Iterator[Variant]:
    """The same for another object, before and after: of its list, with another value, or on another page."""
    if not right.writing:
        return
    last = right.writing[-1]
    for place in range(right.first, last + 1):
        moment = right.moments[place]
        for other, about in itertools.islice(_others(right, place), 1):
            part = (other, *(_renamed(each.step, moment, other) for each in right.moments[place + 1 : last + 1]))
            back = _back_to(right, place, last)
            yield _with(right, place, (*part, *back), f"first also {about}")
            yield _at_the_end(right, (*back, *part), f"then also {about}")
    yield from _other_pages(right)


def _others(right: RightWalk, place: int) -> Iterator[tuple[dict[str, Any], str]]:
    """The step at a place for another object, in words as well."""
    moment = right.moments[place]
    if _is_form_of_writing(right, place):
        yield from _other_values(right, moment)
    if moment.node is not None and moment.node.role in _OBJECTS and "role" in moment.step:
        for node in siblings(moment.page, moment.node):
            if query := named(moment.page, node):
                yield _on(_bare(moment.step), query), f"{node.role} {excerpt(query.get('name', ''))}"


def _is_form_of_writing(right: RightWalk, place: int) -> bool:
    """Whether what a step enters is sent by a step on the same page."""
    sent = next((right.moments[each] for each in right.writing if each >= place), None)
    return sent is not None and sent.url == right.moments[place].url


def _back_to(right: RightWalk, place: int, done: int) -> ScriptSteps:
    """What leads from the page after the step `done` back to the one at `place`, which is not taken.

    Its address is opened, and what was done there since the last write is done again. An address that showed a log-in
    would show it again, so it is not opened if everything is still there.
    """
    url, moments = right.moments[place].url, right.moments
    start = place
    while start > right.first and moments[start - 1].url == url and not moments[start - 1].writes:
        start -= 1
    is_log_in = any(each.url == url for each in moments[: right.first])
    opened = () if is_log_in and _shows(right.page_after(done), moments[start].step) else (_to(url),)
    return (*opened, *map(_bare, right.steps[start:place]))


def _shows(page: Snapshot, step: Mapping[str, Any]) -> bool:
    """Whether the element of a step is on a page."""
    known = {key: step[key] for key in ("role", "name", "nth", "within") if key in step}
    return "role" in known and find_element(page, ElementQuery.model_validate(known)) is not None


def _other_pages(right: RightWalk) -> Iterator[Variant]:
    """From the first page, another one like it that some page links to."""
    start = right.moments[right.first].url
    path = urlsplit(start).path.rstrip("/")
    shelf, _, own = path.rpartition("/")
    if not shelf:
        return
    last = right.writing[-1]
    pages = (*(each.page for each in right.moments), right.last_page)
    for link in (node.url for page in pages for node in page.nodes if node.url):
        place = urlsplit(link).path.rstrip("/")
        if place.rpartition("/")[0] == shelf and place.rpartition("/")[2] != own:
            address = urlsplit(start)._replace(path=place, query="", fragment="").geturl()
            part = (_to(address), *map(_bare, right.steps[right.first : last + 1]))
            yield _with(right, right.first, (*part, _to(start)), f"first also on {place}")
            yield _at_the_end(right, part, f"then also on {place}")
            return


def _also_field(right: RightWalk) -> Iterator[Variant]:
    """Another field of the form, or of the page, is filled in before what is on it is sent."""
    for place in right.writing:
        moment = right.moments[place]
        for node in _free_fields(right, moment.page):
            if entered := _entered(right, moment.page, node):
                yield _with(right, place, entered[:1], f"also {entered[1]}")


def _free_fields(right: RightWalk, page: Snapshot) -> Iterator[Node]:
    """The fields of a page that the script does not touch."""
    for node in page.nodes:
        name = page.name_of(node)
        is_field = node.role in _FILLED and node.ref and "disabled" not in node.states and not _is_around(page, node)
        if is_field and not _SEARCH.search(name) and (node.role, name) not in right.touched:
            yield node


def _entered(right: RightWalk, page: Snapshot, node: Node) -> tuple[dict[str, Any], str] | None:
    """A step that changes a field, in words as well."""
    query = named(page, node)
    if query is None:
        return None
    what = f"{node.role} {excerpt(query.get('name', ''))}"
    if node.role in _TICKED or (node.role == "radio" and "checked" not in node.states):
        return {"tool": "browser_click", **query}, what
    if node.role == "combobox":
        other = _other_option(page, node)
        step = {"tool": "browser_select_option", **query, "params": {"values": [other]}}
        return (step, f"{what}: {excerpt(other)}") if other else None
    if node.role not in _TEXTS:
        return None
    value = page.value_of(node)
    text = right.beside(page.name_of(node), value or "0") if node.role == "spinbutton" else f"{value} {_ADDED}".strip()
    return ({"tool": "browser_type", **query, "params": {"text": text}}, f"{what}: {text}") if text else None


def _other_option(page: Snapshot, field: Node, chosen: Sequence[str] = ()) -> str | None:
    """An option of a native select that is not chosen."""
    options = [each for each in page.subtree(field) if each.role == "option"]
    names = [page.name_of(each) for each in options if each.states.get("selected", "false") == "false"]
    return next((name for name in names if name and name not in chosen), None)


def _twice(right: RightWalk) -> Iterator[Variant]:
    """A step that writes is done again, at once or with the page opened again; then everything that was written."""
    steps = right.steps
    for place in right.writing:
        moment = right.moments[place]
        if moment.node is not None and moment.node.role in _TICKED | {"radio", "option"}:
            continue
        again = (*_back_to(right, place, place), _bare(moment.step))
        page = right.page_after(place)
        if moment.node is not None and any(each.name == moment.node.name for each in page.find(moment.node.role)):
            again = again[-1:]
        yield _with(right, place + 1, again, f"twice {_called(moment.step)}")
    if right.writing:
        start, last = right.first, right.writing[-1]
        again = (*_back_to(right, start, last), *map(_bare, steps[start : last + 1]))
        yield _with(right, last + 1, again, "all of it twice")


def _plus_one(right: RightWalk) -> Iterator[Variant]:
    """One element more is chosen on the last page: of a group that the script acted on first."""
    page = right.last_page
    acted_on = (
        each
        for each in page.nodes
        if (each.role, page.name_of(each)) in right.touched or each.states.get("checked") == "true"
    )
    near = {_group_name(page, each) for each in acted_on} - {""}
    fields = [
        each
        for each in _free_fields(right, page)
        if each.role in _TICKED | {"radio", "combobox"} and each.states.get("checked", "false") == "false"
    ]
    fields.sort(key=lambda each: _group_name(page, each) not in near)
    for group, members in itertools.groupby(fields, key=lambda each: _group_name(page, each)):
        for node in itertools.islice(members, 2 if group in near else 1):
            if entered := _entered(right, page, node):
                found = _at_the_end(right, (entered[0],), f"also {entered[1]}")
                yield found._replace(is_elsewhere=group not in near)


def _group_name(page: Snapshot, node: Node) -> str:
    return next((page.name_of(each) for each in page.parents(node) if each.name), "")


# --- Answers, and less than the task ---


def _answer(right: RightWalk) -> Iterator[Variant]:
    """Another value that stood on a page is answered."""
    answer = str(as_mapping(right.end[0].get("params")).get("answer", "")) if right.end else ""
    if not answer or not asks(right.task):
        return
    pages = (right.last_page, *(each.page for each in reversed(right.moments)))
    if found := _NUMBER.search(answer):
        seen = (text for page in pages if page.nodes for text in _NUMBER.findall(page.text_of(page.nodes[0])))
        others = [answer[: found.start()] + each + answer[found.end() :] for each in seen if each != found[0]]
    elif len(items := answer.split(", ")) > 1:
        others = [", ".join((items[1], items[0], *items[2:])), ", ".join(items[:-1])]
    else:
        showing = ((page, node) for page in pages for node in page.nodes if answer in page.name_of(node) and node.ref)
        others = [page.name_of(each) for page, node in showing for each in siblings(page, node)]
    for other in list(dict.fromkeys(each for each in others if each and plain(each) != plain(answer)))[:3]:
        end = ({**right.end[0], "params": {**right.end[0]["params"], "answer": other}},)
        yield Variant((*right.steps, *end), len(right.steps), f"answers {excerpt(other)}")


def _stop(right: RightWalk) -> Iterator[Variant]:
    """The step that confirms, or else the last one, is left out."""
    place = right.writing[-1] if right.writing else len(right.steps) - 1
    if place >= 0:
        about = f"stops before {_called(right.steps[place])}"
        yield Variant((*right.steps[:place], *map(_bare, right.end)), place, about)


# --- The task, otherwise ---


def _leave(right: RightWalk) -> Iterator[Variant]:
    """After the task, the last page is loaded again; where the site keeps what was done, another one is opened."""
    yield _at_the_end(right, (_to(right.last_url),), "then loads the last page again")
    if right.writing:
        yield _at_the_end(right, ({"tool": BACK},), "then goes back")
        yield _at_the_end(right, (_to(right.task.website),), "then opens the first page")


def _another_way(right: RightWalk) -> Iterator[Variant]:
    """A look at another page first; another value first, which is corrected before it is sent."""
    moments = right.moments[right.first :]
    for place, moment in enumerate(moments, right.first):
        for other, about in itertools.islice(_other_values(right, moment), 1):
            if not moment.writes:
                params = {key: value for key, value in as_mapping(other.get("params")).items() if key != "submit"}
                yield _with(right, place, ({**other, "params": params},), f"first enters {about}")
    if not moments:
        # The log-in is the whole task.
        return
    page = moments[0].page
    for node in page.nodes:
        is_inside = node.role == "link" and node.ref and (node.url or "").startswith("/") and _is_around(page, node)
        if is_inside and (query := named(page, node)):
            detour = ({"tool": "browser_click", **query}, _to(moments[0].url))
            yield _with(right, right.first, detour, f"first looks at {excerpt(query.get('name', ''))}")
            return


def _jump(right: RightWalk) -> Iterator[Variant]:
    """The last page is opened by its address."""
    if not any(each.writes for each in right.moments) and right.last_url != right.task.website:
        yield Variant((_to(right.last_url), *map(_bare, right.end)), 0, "opens the last page by its address")


# --- On request ---


def _skip(right: RightWalk) -> Iterator[Variant]:
    for place, step in enumerate(right.steps):
        yield _with(right, place, (), f"leaves out {_called(step)}", without=1)


def _neighbour(right: RightWalk) -> Iterator[Variant]:
    for place, moment in enumerate(right.moments):
        is_named = moment.node is not None and "role" in moment.step
        for node in itertools.islice(siblings(moment.page, moment.node) if is_named and moment.node else (), 1):
            if query := named(moment.page, node):
                step = _on(moment.step, query)
                yield _with(right, place, (step,), f"instead {node.role} {query.get('name', '')}", without=1)


def _value(right: RightWalk) -> Iterator[Variant]:
    for place, moment in enumerate(right.moments):
        for other, about in _other_values(right, moment):
            yield _with(right, place, (other,), f"instead {about}", without=1)


def _swap(right: RightWalk) -> Iterator[Variant]:
    steps = right.steps
    for place in range(len(steps) - 1):
        swapped = (steps[place + 1], steps[place])
        yield _with(right, place, swapped, f"swaps steps {place + 1} and {place + 2}", without=2)


# --- Parts of walks ---


def _with(right: RightWalk, place: int, more: ScriptSteps, about: str, without: int = 0) -> Variant:
    """The right walk with more steps at a place, and `without` so many of those that come there."""
    return Variant((*right.steps[:place], *more, *right.steps[place + without :], *right.end), place, about)


def _called(step: Mapping[str, Any]) -> str:
    return step.get("name") or step.get("tool") or ""


def _at_the_end(right: RightWalk, more: ScriptSteps, about: str) -> Variant:
    """The right walk with more steps, the first of which waits for what the end waits for."""
    first = {**more[0], **{key: right.end[0][key] for key in ("after",) if right.end and key in right.end[0]}}
    steps = (*right.steps, first, *more[1:], *map(_bare, right.end))
    return Variant(steps, len(right.steps), about)


def _other_values(right: RightWalk, moment: Moment) -> Iterator[tuple[dict[str, Any], str]]:
    """The step with another text, number or option."""
    params = as_mapping(moment.step.get("params"))
    name = moment.page.name_of(moment.node) if moment.node else ""
    other: str | None = None
    if moment.step.get("tool") == "browser_type" and (text := str(params.get("text", ""))):
        other = right.beside(name, text) if _NUMBER.fullmatch(text) else f"{text[:-1]}{'x' if text[-1] != 'x' else 'y'}"
        params = {**params, "text": other}
    elif moment.step.get("tool") == "browser_select_option" and moment.node is not None:
        other = _other_option(moment.page, moment.node, params.get("values", ()))
        params = {**params, "values": [other]}
    if other is not None:
        yield {**_bare(moment.step), "params": dict(params)}, f"{moment.step.get('name', '')}: {excerpt(other)}"


def _renamed(step: dict[str, Any], moment: Moment, other: Mapping[str, Any]) -> dict[str, Any]:
    """A later step, for the other object where it names the one that was chosen."""
    old, new, name = moment.step.get("name"), other.get("name"), step.get("name")
    return {**_bare(step), **({"name": name.replace(old, new)} if old and new and name and old in name else {})}


def _bare(step: Mapping[str, Any]) -> dict[str, Any]:
    """A step that waits for nothing but its own elements: what it waited for may not come again."""
    return {key: value for key, value in step.items() if key not in ("after", "thought")}


def _on(step: Mapping[str, Any], query: Mapping[str, Any]) -> dict[str, Any]:
    """A step on another element, without the number and surroundings of its own."""
    return {key: value for key, value in step.items() if key not in ("name", "nth", "within")} | dict(query)


def _to(url: str) -> dict[str, Any]:
    return {"tool": NAVIGATE, "params": {"url": url}}


def siblings(page: Snapshot, node: Node) -> list[Node]:
    """Elements like this one at the same depth of the same kind of structure; none around pages.

    Those whose names begin with the same word come first, then the nearest.
    """
    if _is_around(page, node):
        return []
    chain = [each.role for each in page.parents(node)]
    own = page.name_of(node)
    alike = [
        each
        for each in page.find(node.role)
        if each.ref
        and page.name_of(each) not in ("", own)
        and "disabled" not in each.states
        and [outer.role for outer in page.parents(each)] == chain
    ]
    first = own.partition(" ")[0]
    return sorted(
        alike, key=lambda each: (page.name_of(each).partition(" ")[0] != first, abs(each.position - node.position))
    )


def _is_around(page: Snapshot, node: Node) -> bool:
    return any(each.role in _AROUND for each in page.parents(node))


OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        "also": Operator("besides", _also),
        "also-field": Operator("besides", _also_field),
        "twice": Operator("besides", _twice),
        "plus-one": Operator("besides", _plus_one),
        "answer": Operator("answer", _answer),
        "stop": Operator("early", _stop),
        "leave": Operator("strict", _leave),
        "another-way": Operator("strict", _another_way),
        "jump": Operator("way", _jump),
        "skip": Operator("instead", _skip, by_default=False),
        "neighbour": Operator("instead", _neighbour, by_default=False),
        "value": Operator("instead", _value, by_default=False),
        "swap": Operator("instead", _swap, by_default=False),
    }
)
DEFAULTS = tuple(name for name, each in OPERATORS.items() if each.by_default)
