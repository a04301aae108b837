"""Addresses as checks write and compare them. Pure.

Relative ones belong to the website's origin. A trailing slash, encoding, default ports and the order of parameters do
not matter; a fragment does only if it is written. `*` stands for anything.
"""

from urllib.parse import parse_qsl, unquote

from judge.evaluators.evidence import Look
from judge.sites import Site, origin_of
from shared.patterns import glob


def is_at(look: Look, written: str, *, extra_query: bool = False) -> bool:
    """Whether a look was at the address that a check writes; never on another site than the task's."""
    if not look.is_own:
        return False
    url = look.step.url
    if written.startswith(("http://", "https://")):
        head, rest = _split(written)
        if not _same_origin(head, url):
            return False
    elif written.startswith("*"):
        return glob(_plain(written)).fullmatch(_plain(url))
    else:
        if not look.is_home:
            return False
        rest = written
    return _same_rest(rest, _split(url)[1], extra_query=extra_query)


def is_reachable(written: str, site: Site) -> bool:
    """Whether a page of the task's site can have the address, as far as the site is known before the task is played."""
    if not written.startswith(("http://", "https://")) or "*" in _split(written)[0]:
        return True
    return site.holds(written)


def _split(url: str) -> tuple[str, str]:
    """The origin as written, and the rest."""
    scheme, _, tail = url.partition("://")
    ends = [place for mark in "/?#" if (place := tail.find(mark)) >= 0]
    end = min(ends, default=len(tail))
    return f"{scheme}://{tail[:end]}", tail[end:]


def _same_origin(head: str, url: str) -> bool:
    if "*" not in head:
        return origin_of(head) == origin_of(url)
    return glob(head.lower()).fullmatch(_split(url)[0].lower())


def _same_rest(written: str, actual: str, *, extra_query: bool) -> bool:
    path, query, fragment = _parts(written)
    seen_path, seen_query, seen_fragment = _parts(actual)
    if fragment is not None and not glob(unquote(fragment)).fullmatch(unquote(seen_fragment or "")):
        return False
    if not glob(_path(path)).fullmatch(_path(seen_path)):
        return False
    # Without a query of its own, a star at the end stands for the parameters too.
    is_open = extra_query or (query is None and path.endswith("*"))
    return _same_query(query or "", seen_query or "", is_open=is_open)


def _parts(rest: str) -> tuple[str, str | None, str | None]:
    rest, hash_mark, fragment = rest.partition("#")
    path, question, query = rest.partition("?")
    return path, query if question else None, fragment if hash_mark else None


def _path(path: str) -> str:
    return "/" + unquote(path).strip("/")


def _same_query(written: str, actual: str, *, is_open: bool) -> bool:
    try:
        wanted = parse_qsl(written, keep_blank_values=True, max_num_fields=1_000)
        left = parse_qsl(actual, keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        return False
    if ("*", "") in wanted:
        wanted.remove(("*", ""))
        is_open = True
    # Exact ones first, so that a star does not take what another parameter needs.
    for name, value in sorted(wanted, key=lambda pair: "*" in pair[0] + pair[1]):
        key, content = glob(name), glob(value)
        found = next((pair for pair in left if key.fullmatch(pair[0]) and content.fullmatch(pair[1])), None)
        if found is None:
            return False
        left.remove(found)
    return is_open or not left


def _plain(url: str) -> str:
    return unquote(url.partition("#")[0] if "#" in url else url).rstrip("/")
