"""Probable mistakes in a task's checks that are not errors: warnings, contradictions, repeated tasks."""

import itertools
import json
from collections.abc import Iterator, Sequence

from judge.config import RunConfig
from judge.evaluators.addresses import is_reachable
from judge.evaluators.checks import check_kind, describe
from judge.evaluators.kinds.request import RequestCheck
from judge.records.checks import AnyOf, Check, KindCheck, plain_checks
from judge.records.sites import NONE_SHARED, RunSites, Site
from judge.records.tasks import Task
from judge.scenario.guards import open_questions
from shared.seen import as_seen
from shared.text import excerpt


def repeated(tasks: Sequence[Task]) -> list[str]:
    """A line for each task with the same description and website as an earlier one."""
    seen: dict[tuple[str, str], str] = {}
    lines = []
    for task in tasks:
        earlier = seen.setdefault((task.website, " ".join(task.task.split()).lower()), task.task_id)
        if earlier != task.task_id:
            lines.append(f"task {task.task_id} repeats the words of {earlier}")
    return lines


def warnings_of(task: Task, sites: RunSites = NONE_SHARED) -> list[str]:
    """Probable mistakes in a task's checks, one sentence each."""
    of_one = [
        (number, warning)
        for number, check in enumerate(task.checks, 1)
        for each in plain_checks([check])
        for warning in _warnings(each, task, sites.of(task))
    ]
    return [f"check {number}: {warning}" for number, warning in sorted((*of_one, *open_questions(task)))]


def hints_of(task: Task) -> list[str]:
    """What could make the checks of a task stricter, or fail unexpectedly, one sentence each."""
    return [
        f"check {number}: {hint}"
        for number, check in enumerate(task.checks, 1)
        for each in plain_checks([check])
        for hint in check_kind(each).hints(each, task)
    ]


def unrecorded(task: Task, config: RunConfig) -> list[str]:
    """The checks and policies that can never pass or be decided, because of what the settings leave unrecorded."""
    lines = []
    named_checks = [(f"check {number}", check) for number, check in enumerate(task.checks, 1)]
    for name, check in (*named_checks, *((f"policy {policy.name}", policy.check) for policy in task.policies)):
        if (
            any(each.needs_network or each.compares_downloads for each in plain_checks([check]))
            and not config.record_network
        ):
            lines.append(f"{name}: requests are not recorded: remove record_network = false")
        compared = [each for each in plain_checks([check]) if each.is_redacted]
        text = json.dumps([each.model_dump(mode="json") for each in compared], ensure_ascii=False)
        # `[1:-1]`: the secret as written inside a JSON string.
        if any(json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in config.secrets):
            lines.append(f"{name}: a value that it expects is listed in secrets, so it is never recorded")
    return lines


def unlearnt(task: Task) -> list[str]:
    """The checks with `only` of a task that its archive holds once: nothing tells what its pages send by themselves."""
    return [
        f"check {number}: the archive holds one play, which does not tell what pages send by themselves: "
        "remove only, or record the task once more (wabe sites merge)"
        for number, check in enumerate(task.checks, 1)
        for each in plain_checks([check])
        if isinstance(each, RequestCheck) and each.only
    ]


def contradictions_of(task: Task) -> list[str]:
    """Pairs of checks that no attempt can pass together, one sentence each."""
    return [
        f"checks {first} and {second}: {why}"
        for (first, one), (second, other) in itertools.combinations(enumerate(task.checks, 1), 2)
        if (why := _contradicts(one, other))
    ]


def _warnings(check: KindCheck, task: Task, site: Site) -> Iterator[str]:
    for url in check.addresses:
        if not is_reachable(url, site):
            yield f"{url} is not on the task's site: add it to allowed_sites if it belongs there"
    for pattern in _patterns_of(check):
        if as_seen(pattern) != pattern:
            yield (
                f"the pattern {excerpt(pattern)} may never match, because text is compared without invisible "
                "characters, and with letters and accents as one character (NFC): write it in that form"
            )
    yield from check_kind(check).warnings(check)
    yield from check_kind(check).trivial(check, task)
    if getattr(check, "editable", False):
        if check.inverted:
            yield "'editable' has no meaning with not, which counts editors anyway: remove it"
        else:
            yield "the participant writes what is inside an editor: expect only what the task asks it to write there"


def _patterns_of(check: KindCheck) -> Iterator[str]:
    patterns = (getattr(check, key, None) for key in ("pattern", "message"))
    yield from (pattern for pattern in patterns if isinstance(pattern, str))
    yield from (element.pattern.source for element in getattr(check, "elements", ()) if element.pattern)


def _contradicts(one: Check, other: Check) -> str | None:
    if isinstance(one, AnyOf) or isinstance(other, AnyOf) or type(one) is not type(other):
        return None
    left, right = (check.model_copy(update={"description": "", "inverted": False}) for check in (one, other))
    if one.inverted != other.inverted and left == right:
        return f"one requires what the other forbids ({describe(left)})"
    return check_kind(one).contradicts(one, other)
