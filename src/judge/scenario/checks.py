"""Probable mistakes in a task's checks that are not errors: warnings, contradictions, repeated tasks."""

import itertools
import json
from collections.abc import Iterator, Sequence

from judge.config import RunConfig
from judge.evaluators.addresses import is_reachable
from judge.evaluators.checks import describe
from judge.records.checks import (
    ActionCheck,
    AnswerCheck,
    AnyOf,
    Check,
    ElementCheck,
    FetchCheck,
    PageCheck,
    PlainCheck,
    RequestCheck,
    SocketCheck,
    TextCheck,
    as_tuple,
    plain_checks,
)
from judge.records.tasks import Task
from judge.scenario.unmatchable import unmatchable
from judge.sites import own_site

# Roles in whose name or text pages often repeat typed text: results for "…", you searched for …
_REFLECTING = ("heading", "paragraph", "status", "alert", "generic", "text", "listitem", "cell", "link")


def repeated(tasks: Sequence[Task]) -> list[str]:
    """A line for each task with the same description and website as an earlier one."""
    seen: dict[tuple[str, str], str] = {}
    lines = []
    for task in tasks:
        earlier = seen.setdefault((task.website, " ".join(task.task.split()).lower()), task.task_id)
        if earlier != task.task_id:
            lines.append(f"task {task.task_id} repeats the words of {earlier}")
    return lines


def warnings_of(task: Task, allowed_sites: Sequence[str] = ()) -> list[str]:
    """Probable mistakes in a task's checks, one sentence each."""
    return [
        f"check {number}: {warning}"
        for number, check in enumerate(task.checks, 1)
        for each in plain_checks([check])
        for warning in _warnings(each, task, allowed_sites)
    ]


def unrecorded(task: Task, config: RunConfig) -> list[str]:
    """The checks that can never pass, or never be decided, because of what the settings exclude from recordings."""
    lines = []
    for number, check in enumerate(task.checks, 1):
        requests = [each for each in plain_checks([check]) if each.kind == "request"]
        if requests and not config.record_network:
            lines.append(f"check {number}: requests are not recorded: remove record_network = false")
        compared = [each for each in plain_checks([check]) if each.kind in ("request", "fetch")]
        text = json.dumps([each.model_dump(mode="json") for each in compared], ensure_ascii=False)
        # `[1:-1]`: as the secret is written inside a JSON string.
        if any(json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in config.secrets):
            lines.append(f"check {number}: a value that it expects is listed in secrets, so it is never recorded")
    return lines


def contradictions_of(task: Task) -> list[str]:
    """Pairs of checks that no attempt can pass together, one sentence each."""
    return [
        f"checks {first} and {second}: {why}"
        for (first, one), (second, other) in itertools.combinations(enumerate(task.checks, 1), 2)
        if (why := _contradicts(one, other))
    ]


def _warnings(check: PlainCheck, task: Task, allowed_sites: Sequence[str]) -> Iterator[str]:
    if isinstance(check, PageCheck | RequestCheck | FetchCheck | SocketCheck):
        site = own_site(task, allowed_sites)
        for url in as_tuple(check.url):
            if not is_reachable(url, site):
                yield f"{url} is not on the task's site: add it to allowed_sites if it belongs there"
    if isinstance(check, RequestCheck) and check.method is None and not check.inverted:
        yield "whoever opens the address could pass it: add method"
    if isinstance(check, ActionCheck):
        yield from _action_warnings(check)
    if isinstance(check, ActionCheck | AnswerCheck) and "at" in check.model_fields_set:
        yield f"'at' has no meaning for {check.kind}: remove it"
    if isinstance(check, SocketCheck):
        yield from _socket_warnings(check)
    if isinstance(check, AnswerCheck) and check.on is not None:
        yield "'on' has no meaning for answer: remove it"
    if getattr(check, "editable", False):
        if check.inverted:
            yield "'editable' has no meaning with not, which counts editors anyway: remove it"
        else:
            yield "the participant writes what is inside an editor: expect only what the task asks it to write there"
    yield from unmatchable(check)
    if not check.inverted:
        yield from _reflections(check)


def _action_warnings(check: ActionCheck) -> Iterator[str]:
    if check.pattern is not None and not check.pattern.lstrip("^").startswith("<"):
        yield "typed text could match the pattern: begin it with ^<"
    if unlike := [line for line in as_tuple(check.line) if " -> " not in line]:
        yield f"no action is recorded like {unlike[0]!r}: write it like <Save button> -> CLICK"


def _socket_warnings(check: SocketCheck) -> Iterator[str]:
    if "at" in check.model_fields_set:
        yield "'at' has no meaning for messages, of which any may match: remove it"
    if check.direction == "sent" and not check.inverted:
        yield "what is sent at each keystroke holds what the participant typed: prefer what is received"


def _reflections(check: PlainCheck) -> Iterator[str]:
    """Warnings about checks that a page could pass merely by repeating typed text."""
    if isinstance(check, PageCheck) and check.title is not None and check.url is None:
        yield "a page that repeats typed text in its title could pass it: add url"
    if getattr(check, "on", None) is not None or getattr(check, "within", None) is not None:
        return
    if isinstance(check, TextCheck):
        yield "any page that repeats typed text could pass it (a search for it, say): add within or on"
    for element in check.elements if isinstance(check, ElementCheck) else ():
        if element.role in (None, *_REFLECTING) and element.pattern is not None:
            yield f"a page that repeats typed text could show {element.written}: add within or on"


def _contradicts(one: Check, other: Check) -> str | None:
    if isinstance(one, AnyOf) or isinstance(other, AnyOf) or type(one) is not type(other):
        return None
    left, right = (check.model_copy(update={"description": "", "inverted": False}) for check in (one, other))
    if one.inverted != other.inverted and left == right:
        return f"one requires what the other forbids ({describe(left)})"
    if isinstance(one, PageCheck) and isinstance(other, PageCheck) and not (one.inverted or other.inverted):
        last = [as_tuple(check.url)[-1:] for check in (one, other)]
        ends = all(check.at == "end" and check.on is None and not check.extra_query for check in (one, other))
        if ends and all(last) and last[0] != last[1] and not any("*" in url for urls in last for url in urls):
            return f"the end cannot be both {last[0][0]} and {last[1][0]}"
    if isinstance(one, AnswerCheck) and isinstance(other, AnswerCheck) and one.type and one.type == other.type:
        both = not (one.inverted or other.inverted) and one.schema_ is None and other.schema_ is None
        if both and one.expected != other.expected:
            return "the only value of one type cannot be two"
    return None
