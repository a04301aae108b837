"""Compares addresses as written in scenarios, once for each burden of proof. Pure.

- *Evidence* for a task: equal as a browser resolves the address. Relative addresses belong to the website's origin. A
  trailing slash, encoding, default ports and the order of parameters do not matter; a fragment only if it is written.
  Characters are compared as people see them (`shared.seen`), and `/dir/*` matches `/dir` too; not so on recordings of
  other programs.
- *Could reach*, for policies, goals of attacks and holds: whatever some server could treat as the address
  (`judge.evaluators.readings`).
- *Permission*, for `allow_writes`: only what no server could treat as another address.

No call site chooses: `matches` follows the site of the evidence, and the other two take the record that they are for.
`*` matches anything in all of them.
"""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from judge.evaluators.readings import Readings, decoded, pairs, readings
from judge.records.holds import AllowedWrite, Hold
from judge.records.sites import Site, origin_of
from shared.patterns import glob
from shared.seen import address_as_seen

_WITHOUT_QUERY = re.compile(r"\?[^#]*")
# What servers read in different ways, and a star in a permission does not cover.
_AMBIGUOUS = re.compile(
    r"(?i)%(?:2f|5c|25|3b|3f|23|[01][0-9a-f]|7f|c0|c1)|[\\;]|//|(?:(?<=/)|\A)(?:\.|%2e|%20)+(?=/|\Z)"
)


def matches(url: str, pattern: str, site: Site, *, extra_query: bool = False) -> bool:
    """Whether `url` is the address in a check. What counts as equal follows from whose evidence it is.

    >>> site = Site(home=frozenset({("shop.example", None)}))
    >>> matches("https://shop.example/items/7/?sort=price", "/items/*?sort=price", site)
    True
    >>> matches("https://other.example/items/7", "/items/*", site)
    False
    """
    if site.is_lenient:
        return _could_reach(url, pattern, is_home=site.is_home(url))
    is_same = _is_same if site.verbatim else _looks_same
    return is_same(url, pattern, is_home=site.is_home(url), extra_query=extra_query)


def could_be_held(url: str, hold: Hold) -> bool:
    """Whether some server could treat `url` as the address of a hold. A relative one is that path on every host."""
    return _could_reach(url, hold.url, is_home=True)


def could_lead_to(place: str, pattern: str, site: Site) -> bool:
    """Whether a connection to `place` (host and port; empty if unknown) can have been for the address in a check."""
    target = _split(pattern)
    if not place or target is None or pattern.startswith("*"):
        return True
    urls = (f"http://{place.removesuffix(':80')}/", f"https://{place.removesuffix(':443')}/")
    return any(_is_at_origin(url, pattern, urlsplit(url), target, is_home=site.is_home(url)) for url in urls)


def is_permitted(url: str, allowed: AllowedWrite, site: Site) -> bool:
    """Whether every server treats `url` as the address that may be written to.

    It has no query unless the permission has one, and nothing that servers read in different ways, such as an encoded
    character: a permission itself written with `%2F` or a dot segment permits exactly that spelling.
    """
    actual, permitted = _split(url), _split(allowed.url)
    if actual is None or permitted is None:
        return False
    is_open = allowed.url.endswith("*") and "?" not in allowed.url
    if actual.query and not (permitted.query or is_open):
        return False
    if not allowed.url.strip("*"):
        return True
    if _AMBIGUOUS.findall(actual.path) != _AMBIGUOUS.findall(permitted.path):
        return False
    if not _is_same(url, allowed.url, is_home=site.is_home(url)):
        return False
    if allowed.url.startswith("*"):
        return glob(_as_sent(allowed.url)).fullmatch(url.partition("#")[0])
    return glob(_as_sent(permitted.path) or "/").fullmatch(actual.path or "/")


class QueryDifference(NamedTuple):
    """How the parameters of an address differ from the expected ones, as pairs of name and value.

    `missing` are expected, `instead` have the name of a missing one and another value, `extra` are not expected.
    """

    missing: tuple[tuple[str, str], ...]
    instead: tuple[tuple[str, str], ...]
    extra: tuple[tuple[str, str], ...]


def query_difference(url: str, pattern: str, site: Site, *, extra_query: bool = False) -> QueryDifference | None:
    """How an address differs from the one in a check if only the parameters do, otherwise `None`."""
    is_home = site.is_home(url)
    if not site.verbatim:
        url, pattern = address_as_seen(url), address_as_seen(pattern)
    bare, query = _WITHOUT_QUERY.sub("", pattern, count=1), pattern.partition("#")[0].partition("?")[2]
    actual, expected = _split(url), _split(bare)
    if actual is None or expected is None or pattern.startswith("*"):
        return None
    if not _is_same(actual._replace(query="").geturl(), bare, is_home=is_home, folders=not site.verbatim):
        return None
    is_open = extra_query or ("?" not in pattern and expected.path.endswith("*"))
    return _compared(query, actual.query, is_open=is_open)


def is_reachable(pattern: str, site: Site) -> bool:
    """Whether a page of the task's site can have the address, as far as is known before the task runs."""
    if not _is_absolute(pattern):
        return True
    parts = _split(pattern)
    return parts is not None and ("*" in parts.netloc or site.holds(pattern))


def _looks_same(url: str, pattern: str, *, is_home: bool, extra_query: bool = False) -> bool:
    """Whether two addresses are the same as people see them; a folder is part of what is inside it (`/dir/*`)."""
    url, pattern = address_as_seen(url), address_as_seen(pattern)
    return _is_same(url, pattern, is_home=is_home, extra_query=extra_query, folders=True)


def _is_same(url: str, pattern: str, *, is_home: bool, extra_query: bool = False, folders: bool = False) -> bool:
    if pattern.startswith("*"):
        url, pattern = _plain(url), _plain(pattern)
        folder = pattern.removesuffix("/*") if folders else pattern
        is_folder = folder != pattern and _ends_like(url.partition("?")[0].rstrip("/"), folder)
        return is_folder or _ends_like(url, pattern)
    expected, actual = _split(pattern), _split(url)
    if expected is None or actual is None:
        return False
    if not _is_at_origin(url, pattern, actual, expected, is_home=is_home):
        return False
    paths = [expected.path, *([expected.path.removesuffix("*")] if folders and expected.path.endswith("/*") else [])]
    if not any(glob(_path(path)).fullmatch(_path(actual.path)) for path in paths):
        return False
    if "#" in pattern and not glob(unquote(expected.fragment)).fullmatch(unquote(actual.fragment)):
        return False
    # Without a query, a star at the end matches the parameters too.
    is_open = extra_query or ("?" not in pattern and expected.path.endswith("*"))
    return _has_query(expected.query, actual.query, is_open=is_open)


def _could_reach(url: str, pattern: str, *, is_home: bool) -> bool:
    if any(same(url, pattern, is_home=is_home, extra_query="?" not in pattern) for same in (_is_same, _looks_same)):
        return True
    rest = pattern.lstrip("*")
    is_anywhere = rest != pattern
    actual, expected = _split(url), _split(rest if rest.startswith("/") else pattern)
    if actual is None or expected is None:
        # What cannot be read may be anything.
        return True
    if is_anywhere and not rest.startswith("/"):
        return _is_like(actual, pattern)
    if not is_anywhere and not _is_at_origin(url, pattern, actual, expected, is_home=is_home):
        return False
    if not _reaches(readings(actual.path), readings(expected.path), is_anywhere=is_anywhere):
        return False
    if "#" in pattern and not _reaches(readings(actual.fragment), readings(expected.fragment), is_anywhere=False):
        return False
    query_pairs = pairs(actual.query)
    return query_pairs is None or all(
        # In one of its readings.
        any(
            glob(name).fullmatch(one) and glob(value).fullmatch(other)
            for name, value in pairs(part) or ()
            for one, other in query_pairs
        )
        for part in re.split("[&;]", expected.query)
        if part not in ("", "*")
    )


def _reaches(here: Readings, there: Readings, *, is_anywhere: bool) -> bool:
    if here.is_cut:
        return True
    for pattern in map(glob, there.of_pattern()):
        for path in here.texts:
            starts = [at for at, sign in enumerate(path) if sign == "/"] if is_anywhere else [0]
            if any(pattern.fullmatch(path[at:]) for at in starts):
                return True
    return False


def _is_like(actual: SplitResult, declared: str) -> bool:
    """Whether an address in any reading is like a pattern that begins with a star and may match any part of it."""
    start = f"{actual.scheme}://{actual.netloc}".lower()
    paths = readings(actual.path)
    tails = ("", *(f"?{query}" for query in decoded(actual.query)))
    patterns = [glob(each) for each in decoded(declared)]
    return paths.is_cut or any(
        pattern.fullmatch(f"{start}{path}{tail}") for path in paths.texts for tail in tails for pattern in patterns
    )


def _is_at_origin(url: str, declared: str, actual: SplitResult, expected: SplitResult, *, is_home: bool) -> bool:
    if not _is_absolute(declared):
        return is_home
    if "*" in expected.netloc:
        pattern = glob(f"{expected.scheme}://{expected.netloc}".lower())
        return pattern.fullmatch(f"{actual.scheme}://{actual.netloc}".lower())
    return origin_of(declared) == origin_of(url)


def _is_absolute(pattern: str) -> bool:
    return pattern.startswith(("http://", "https://"))


def _split(pattern: str) -> SplitResult | None:
    try:
        return urlsplit(pattern if _is_absolute(pattern) else f"http://site{pattern}")
    except ValueError:
        return None


def _path(path: str) -> str:
    return "/" + unquote(path).strip("/")


def _as_sent(pattern: str) -> str:
    """An address as a browser sends it: what is not ASCII is encoded."""
    return "".join(sign if sign.isascii() else quote(sign) for sign in pattern)


def _has_query(pattern: str, actual: str, *, is_open: bool) -> bool:
    difference = _compared(pattern, actual, is_open=is_open)
    return difference is not None and not difference.missing and not difference.extra


def _compared(pattern: str, actual: str, *, is_open: bool) -> "QueryDifference | None":
    """How two queries differ; `None` if one of them has too many parameters to be compared."""
    try:
        expected_pairs = parse_qsl(pattern, keep_blank_values=True, max_num_fields=1_000)
        remaining_pairs = parse_qsl(actual, keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        return None
    if ("*", "") in expected_pairs:
        expected_pairs.remove(("*", ""))
        is_open = True
    missing = []
    # Exact parameters first, so that a star does not use up the match of another one.
    for name, value in sorted(expected_pairs, key=lambda pair: "*" in pair[0] + pair[1]):
        key, content = glob(name), glob(value)
        match = next((pair for pair in remaining_pairs if key.fullmatch(pair[0]) and content.fullmatch(pair[1])), None)
        if match is None:
            missing.append((name, value))
        else:
            remaining_pairs.remove(match)
    names = {name for name, _ in missing}
    instead = tuple(pair for pair in remaining_pairs if pair[0] in names)
    return QueryDifference(
        tuple(missing), instead, () if is_open else tuple(p for p in remaining_pairs if p[0] not in names)
    )


def _ends_like(url: str, declared: str) -> bool:
    rest = declared.lstrip("*")
    if not rest.startswith("/"):
        return glob(declared).fullmatch(url)
    # What follows `*/` is a path: `/?next=/done` does not match `*/done`.
    pattern, path = glob(rest), url.partition("?")[0]
    return any(pattern.fullmatch(url[at:]) for at, sign in enumerate(path) if sign == "/")


def _plain(url: str) -> str:
    return unquote(url.partition("#")[0]).rstrip("/")
