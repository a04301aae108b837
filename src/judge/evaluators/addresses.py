"""Compares addresses as written in checks. Pure.

Relative addresses belong to the website's origin. A trailing slash, encoding, default ports and the order of parameters
do not matter; a fragment matters only if it is written. `*` matches anything.
"""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from judge.evaluators.evidence import Look
from judge.records.patterns import glob
from judge.sites import Site, origin_of

_WITHOUT_QUERY = re.compile(r"\?[^#]*")


def is_at(look: Look, written: str, *, extra_query: bool = False) -> bool:
    """Whether a look was at the address in a check; always false outside the task's site."""
    return look.is_own and is_address(look.step.url, written, is_home=look.is_home, extra_query=extra_query)


def is_address(url: str, written: str, *, is_home: bool, extra_query: bool = False) -> bool:
    """Whether `url` is the address in a check; `is_home`: it is on the website's own origin."""
    if written.startswith("*"):
        return _ends_like(_plain(url), _plain(written))
    wanted, seen = _split(written), _split(url)
    if wanted is None or seen is None:
        return False
    if not _is_absolute(written):
        is_same_origin = is_home
    elif "*" in wanted.netloc:
        is_same_origin = glob(f"{wanted.scheme}://{wanted.netloc}".lower()).fullmatch(
            f"{seen.scheme}://{seen.netloc}".lower()
        )
    else:
        is_same_origin = origin_of(written) == origin_of(url)
    if not is_same_origin or not glob(_path(wanted.path)).fullmatch(_path(seen.path)):
        return False
    if "#" in written and not glob(unquote(wanted.fragment)).fullmatch(unquote(seen.fragment)):
        return False
    # Without a query, a star at the end matches the parameters too.
    is_open = extra_query or ("?" not in written and wanted.path.endswith("*"))
    return _has_query(wanted.query, seen.query, is_open=is_open)


class QueryDifference(NamedTuple):
    """How the parameters of an address differ from the expected ones, as pairs of name and value.

    `missing` are expected, `instead` have the name of a missing one and another value, `extra` are not expected.
    """

    missing: tuple[tuple[str, str], ...]
    instead: tuple[tuple[str, str], ...]
    extra: tuple[tuple[str, str], ...]


def query_difference(look: Look, written: str, *, extra_query: bool = False) -> QueryDifference | None:
    """How a look's address differs from the one in a check if only the parameters do, otherwise `None`."""
    bare, query = _WITHOUT_QUERY.sub("", written, count=1), written.partition("#")[0].partition("?")[2]
    seen, wanted = _split(look.step.url), _split(bare)
    if seen is None or wanted is None or written.startswith("*"):
        return None
    if not (look.is_own and is_address(seen._replace(query="").geturl(), bare, is_home=look.is_home)):
        return None
    is_open = extra_query or ("?" not in written and wanted.path.endswith("*"))
    return _compared(query, seen.query, is_open=is_open)


def is_reachable(written: str, site: Site) -> bool:
    """Whether a page of the task's site can have the address, as far as is known before the task runs."""
    if not _is_absolute(written):
        return True
    parts = _split(written)
    return parts is not None and ("*" in parts.netloc or site.holds(written))


def _is_absolute(written: str) -> bool:
    return written.startswith(("http://", "https://"))


def _split(written: str) -> SplitResult | None:
    try:
        return urlsplit(written if _is_absolute(written) else f"http://site{written}")
    except ValueError:
        return None


def _path(path: str) -> str:
    return "/" + unquote(path).strip("/")


def _has_query(written: str, actual: str, *, is_open: bool) -> bool:
    found = _compared(written, actual, is_open=is_open)
    return found is not None and not found.missing and not found.extra


def _compared(written: str, actual: str, *, is_open: bool) -> "QueryDifference | None":
    """How two queries differ; `None` if one of them has too many parameters to be compared."""
    try:
        wanted = parse_qsl(written, keep_blank_values=True, max_num_fields=1_000)
        left = parse_qsl(actual, keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        return None
    if ("*", "") in wanted:
        wanted.remove(("*", ""))
        is_open = True
    missing = []
    # Exact parameters first, so that a star does not use up the match of another one.
    for name, value in sorted(wanted, key=lambda pair: "*" in pair[0] + pair[1]):
        key, content = glob(name), glob(value)
        found = next((pair for pair in left if key.fullmatch(pair[0]) and content.fullmatch(pair[1])), None)
        if found is None:
            missing.append((name, value))
        else:
            left.remove(found)
    names = {name for name, _ in missing}
    instead = tuple(pair for pair in left if pair[0] in names)
    return QueryDifference(tuple(missing), instead, () if is_open else tuple(p for p in left if p[0] not in names))


def _ends_like(url: str, written: str) -> bool:
    rest = written.lstrip("*")
    if not rest.startswith("/"):
        return glob(written).fullmatch(url)
    # What follows `*/` is a path: `/?next=/done` does not match `*/done`.
    pattern, path = glob(rest), url.partition("?")[0]
    return any(pattern.fullmatch(url[at:]) for at, sign in enumerate(path) if sign == "/")


def _plain(url: str) -> str:
    return unquote(url.partition("#")[0]).rstrip("/")
