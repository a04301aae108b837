"""The checks of a task table: pydantic's errors as "file, key, remedy", and what `wabe tasks validate` warns of."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from judge.evaluators.addresses import is_reachable
from judge.evaluators.checks import describe
from judge.sites import Site, is_site, origin_of
from shared.checks import (
    MAX_CHECKS,
    ActionCheck,
    AnswerCheck,
    AnyOf,
    Check,
    CheckError,
    ElementCheck,
    PageCheck,
    PlainCheck,
    TextCheck,
    as_tuple,
)
from shared.elements import parse_element
from shared.errors import ConfigError
from shared.models import Task

_MODELS: Mapping[str, type[BaseModel]] = {
    "page": PageCheck,
    "element": ElementCheck,
    "text": TextCheck,
    "action": ActionCheck,
    "answer": AnswerCheck,
}
_LATER = ("request", "probe")
# Roles in whose name or text pages often repeat what was typed: results for "…", you searched for …
_REFLECTING = ("heading", "paragraph", "status", "alert", "generic", "text", "listitem", "cell", "link")
_MAX_SHOWN = 60


def read_checks(value: object, source: str, where: str) -> tuple[Check, ...]:
    """The `checks` of a task; absent means none. Raises `ConfigError` for the first mistake."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) > MAX_CHECKS:
        raise _mistake(
            source, where, "checks", f"not a list of at most {MAX_CHECKS} checks", "write checks = [{…}, {…}]"
        )
    return tuple(_check(item, source, f"{where}, checks #{number}") for number, item in enumerate(value, 1))


def read_allowed_sites(value: object, source: str, where: str) -> tuple[str, ...]:
    """The `allowed_sites` of a task: hosts or origins. Raises `ConfigError` for the first mistake."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) > MAX_CHECKS:
        raise _mistake(source, where, "allowed_sites", "not a list", 'write allowed_sites = ["pay.example.com"]')
    for entry in value:
        if not isinstance(entry, str) or not is_site(entry):
            raise _mistake(
                source,
                where,
                "allowed_sites",
                f"{_shown(entry)} is not a site",
                'write "example.com" or "https://pay.example"',
            )
    return tuple(value)


def _check(item: object, source: str, where: str) -> Check:
    if not isinstance(item, Mapping):
        raise ConfigError(
            f"{source}: {where} is {_shown(item)}, not a table", remedy='write { kind = "page", url = "/" }'
        )
    for table in _tables(item):
        kind = table.get("kind")
        if kind in _LATER:
            raise _mistake(source, where, "kind", f"'{kind}' is not supported by this version", _known(_MODELS))
        if "any_of" not in table and kind not in _MODELS:
            problem = "missing" if kind is None else f"{_shown(kind)} is not a kind of check"
            raise _mistake(source, where, "kind", problem, _known(_MODELS, kind))
    try:
        return _adapter().validate_python(dict(item))
    except ValidationError as error:
        raise _translated(error, item, source, where) from None


def _adapter() -> TypeAdapter[Check]:
    return TypeAdapter(Check)


def _tables(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield item
    inner = item.get("any_of")
    yield from (each for each in (inner if isinstance(inner, list | tuple) else ()) if isinstance(each, Mapping))


def _translated(error: ValidationError, item: Mapping[str, Any], source: str, where: str) -> ConfigError:
    """One error of pydantic's many: the one that says most, at its key."""
    details = error.errors(include_url=False)
    detail = next((one for one in details if isinstance((one.get("ctx") or {}).get("error"), CheckError)), details[0])
    path = [part for part in detail["loc"] if not str(part).startswith("function-")]
    table: Any = item
    if path and path.pop(0) == "any_of" and len(path) > 2 and isinstance(path[1], int):
        where += f", any_of #{path[1] + 1}"
        table, path = item["any_of"][path[1]], path[2:]
    if path and path[0] in _MODELS and (len(path) == 1 or path[0] == table.get("kind")):
        path = path[1:]
    key = str(path[0]).rstrip("_") if path else ""
    if len(path) > 1 and isinstance(path[1], int):
        where += f", {key} #{path[1] + 1}"
    cause = (detail.get("ctx") or {}).get("error")
    if isinstance(cause, CheckError):
        key = key or cause.key or ""
        return _mistake(source, where, key, cause.problem, cause.remedy)
    if detail["type"] == "extra_forbidden":
        known = [_alias(name, field.alias) for name, field in _model_of(table).model_fields.items()]
        return _mistake(source, where, key, "unknown key", _known(known, key))
    remedy = "correct it or remove the key" if detail["type"] != "missing" else f"add {key} = …"
    return _mistake(source, where, key, f"{_shown(detail['input'])}: {detail['msg'][:200]}", remedy)


def _alias(name: str, alias: str | None) -> str:
    return alias or name


def _model_of(table: Any) -> type[BaseModel]:
    return AnyOf if "any_of" in table else _MODELS[table["kind"]]


def _known(names: Iterable[str], word: object = None) -> str:
    listed = list(names)
    close = difflib.get_close_matches(str(word)[:100], listed, n=1, cutoff=0.6) if word is not None else []
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(listed)


def _shown(value: object) -> str:
    if isinstance(value, Mapping | list | tuple):
        return f"a {'table' if isinstance(value, Mapping) else 'list'} of {len(value)} entries"
    text = ascii(value[: _MAX_SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def _mistake(source: str, where: str, key: str, problem: str, remedy: str) -> ConfigError:
    named = f", key {_shown(key)}" if key else ""
    return ConfigError(f"{source}: {where}{named}: {problem}", remedy=remedy)


def warnings_of(task: Task, allowed_sites: Sequence[str] = ()) -> list[str]:
    """What is allowed and probably wrong with a task's checks, a sentence each."""
    return [
        f"check {number}: {warning}"
        for number, check in enumerate(task.checks, 1)
        for each in (check.any_of if isinstance(check, AnyOf) else (check,))
        for warning in _warnings(each, task, allowed_sites)
    ]


def contradictions_of(task: Task) -> list[str]:
    """Pairs of a task's checks that no attempt can pass both, a sentence each."""
    return [f"checks {first} and {second}: {why}" for first, second, why in _contradictions(task.checks)]


def _warnings(check: PlainCheck, task: Task, allowed_sites: Sequence[str]) -> Iterator[str]:
    is_bound = check.on is not None or getattr(check, "within", None) is not None
    if isinstance(check, TextCheck) and not check.inverted and not is_bound:
        yield "any page that repeats typed text could pass it (a search for it, say): add within or on"
    if isinstance(check, ElementCheck) and not check.inverted and not is_bound:
        for element in map(parse_element, as_tuple(check.element)):
            if element.role in (None, *_REFLECTING) and element.pattern is not None:
                yield f"a page that repeats typed text could show {element.written}: add within or on"
    if isinstance(check, PageCheck):
        if check.title is not None and check.url is None and not check.inverted:
            yield "a page that repeats typed text in its title could pass it: add url"
        home = frozenset(origin for origin in (origin_of(task.website),) if origin)
        site = Site(home, (*allowed_sites, *task.allowed_sites))
        for url in as_tuple(check.url):
            if not is_reachable(url, site):
                yield f"{url} is not on the task's site: add it to allowed_sites if it belongs there"
    if isinstance(check, ActionCheck) and check.pattern is not None and not check.pattern.lstrip("^").startswith("<"):
        yield "typed text could match the pattern: begin it with ^<"
    if isinstance(check, ActionCheck | AnswerCheck):
        if "at" in check.model_fields_set:
            yield f"'at' has no meaning for {check.kind}: remove it"
        if isinstance(check, AnswerCheck) and check.on is not None:
            yield "'on' has no meaning for answer: remove it"


def _contradictions(checks: Sequence[Check]) -> Iterator[tuple[int, int, str]]:
    for second, later in enumerate(checks):
        for first, earlier in enumerate(checks[:second]):
            why = _contradicts(earlier, later)
            if why:
                yield first + 1, second + 1, why


def _contradicts(one: Check, other: Check) -> str | None:
    if isinstance(one, AnyOf) or isinstance(other, AnyOf) or type(one) is not type(other):
        return None
    left, right = (check.model_copy(update={"description": "", "inverted": False}) for check in (one, other))
    if one.inverted != other.inverted and left == right:
        return f"one asks for what the other forbids ({describe(left)})"
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
