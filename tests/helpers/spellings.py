"""Spellings of a path, and servers that read paths in different ways: the oracle of comparisons of addresses."""

import posixpath
import re
from collections.abc import Callable
from urllib.parse import unquote

from hypothesis import strategies as st

Server = Callable[[str], str]


def _exact(path: str) -> str:
    return path


def _decoding(path: str) -> str:
    """Decodes once, then resolves dot segments and doubled slashes."""
    return _resolved(unquote(path))


def _decoding_late(path: str) -> str:
    """Resolves dot segments before it decodes."""
    return unquote(_resolved(path))


def _ignoring_case(path: str) -> str:
    """Like Windows' file system: case, backslashes, and dots and spaces at the end of a segment do not matter."""
    plain = unquote(path).replace("\\", "/").lower()
    return _resolved("/".join(each if not each.strip(". ") else each.rstrip(". ") for each in plain.split("/")))


def _decoding_twice(path: str) -> str:
    return _resolved(unquote(unquote(path)))


def _with_parameters(path: str) -> str:
    """Like a servlet container: parameters of segments are dropped before anything else."""
    return _resolved(unquote(re.sub(";[^/]*", "", path)))


def _stopping_at_nul(path: str) -> str:
    return unquote(path).partition("\0")[0]


def _stopping_at_query(path: str) -> str:
    return re.split("[?#]", unquote(path), maxsplit=1)[0]


SERVERS: tuple[Server, ...] = (
    _exact,
    _decoding,
    _decoding_late,
    _ignoring_case,
    _decoding_twice,
    _with_parameters,
    _stopping_at_nul,
    _stopping_at_query,
)


def _resolved(path: str) -> str:
    return "/" + posixpath.normpath(path).lstrip("/") if path else "/"


def reached(path: str) -> frozenset[str]:
    """What a path denotes to any of the servers, without a slash at the end."""
    return frozenset("/" + server(path).strip("/") for server in SERVERS)


def _encoded(draw: st.DrawFn, text: str) -> str:
    lines = []
    for sign in text:
        times = draw(st.sampled_from((0, 0, 0, 1, 2)))
        one = sign
        for _ in range(times):
            one = (
                "".join(f"%{byte:02x}" if byte != 0x25 else "%25" for byte in one.encode())
                if len(one) == 1
                else (one.replace("%", "%25"))
            )
        lines.append(one)
    return "".join(lines)


@st.composite
def spelled(draw: st.DrawFn, path: str) -> str:
    """The path as some server may read it: other case, encodings, dot segments, slashes, parameters, an end."""
    segments = []
    for segment in path.strip("/").split("/"):
        segments += draw(st.lists(st.sampled_from(["", ".", "x/..", "%2e", "x/%2e%2e", "x/..;a=b"]), max_size=1))
        one = draw(st.sampled_from([segment, segment, segment.upper(), segment.title()]))
        one = _encoded(draw, one)
        one += draw(st.sampled_from(["", "", "", ";v=1", ".", "%20", "%00", "%3Fa"]))
        segments.append(one)
    separator = st.sampled_from(["/", "/", "/", "/", "%2f", "\\", "%5C", "%252f", "//"])
    return (
        "/"
        + "".join(each + draw(separator) for each in segments[:-1])
        + segments[-1]
        + draw(st.sampled_from(["", "", "/", "/."]))
    )
