"""Bodies and messages with named values: JSON, and forms in both encodings. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence

# For writing and reading. A body with more is left out.
MAX_FIELDS = 20_000
_JSON = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?json\b", re.IGNORECASE)
# The numbers of packet types, a namespace and the number of an acknowledgement, as in `42/shop,7["saved",…]`.
_PACKET = re.compile(r"[0-9]{1,2}(?:/[^,\[{]{0,200},)?[0-9]{0,10}(?=[\[{])")
_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,200})', re.IGNORECASE)
_NAME = re.compile(r'\bname="([^"]*)"', re.IGNORECASE)
_FILE_NAME = re.compile(r'\bfilename="([^"]*)"', re.IGNORECASE)
_TYPE = re.compile(r"^content-type:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)
# Browsers escape these characters in names, and no others (WHATWG HTML, multipart/form-data encoding).
_ESCAPES = (("%22", '"'), ("%0D", "\r"), ("%0A", "\n"))


def is_json(mime_type: str, text: str) -> bool:
    """Whether a body is JSON; pages also send it as plain text."""
    if _JSON.match(mime_type):
        return True
    return mime_type.lower().startswith("text/plain") and text.lstrip()[:1] in ("{", "[")


def inner_json(text: str) -> tuple[str, str]:
    """A message of a web socket in two parts: the prefix that Engine.IO and Socket.IO put before JSON, and the rest."""
    match = _PACKET.match(text)
    return (match[0], text[match.end() :]) if match else ("", text)


def is_form(mime_type: str) -> bool:
    """Whether a body is a form like `a=1&b=2`."""
    return mime_type.lower().startswith("application/x-www-form-urlencoded")


def is_multipart(mime_type: str) -> bool:
    """Whether a body is a form that can contain files."""
    return mime_type.lower().startswith("multipart/form-data")


def multipart_fields(data: bytes, mime_type: str) -> Iterator[dict[str, str]]:
    """The fields as `params` of HAR 1.2. A file has a `fileName` but no content."""
    mark = mark_of(mime_type)
    if mark is None:
        return
    # The text before the first boundary is not a field (RFC 2046, 5.1.1).
    for part in (b"\r\n" + data).split(mark)[1:]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        field = part_head(head)
        if field is not None:
            yield field | {"value": "" if "fileName" in field else content.decode("utf-8", "replace")}


def mark_of(mime_type: str) -> bytes | None:
    """What separates the parts of a form; `None` if its type does not say."""
    boundary = _BOUNDARY.search(mime_type)
    return None if boundary is None else b"\r\n--" + boundary[1].encode()


def part_head(head: bytes) -> dict[str, str] | None:
    """What the head of a part says, as a field of `params` of HAR 1.2 without its value; `None` without a name."""
    head_text = head.decode("utf-8", "replace")
    name, file_name, kind = (pattern.search(head_text) for pattern in (_NAME, _FILE_NAME, _TYPE))
    if name is None:
        return None
    field = {"name": _unescaped(name[1])}
    if file_name is None:
        return field
    return field | {"fileName": _unescaped(file_name[1]), "contentType": kind[1] if kind else ""}


def multipart_text(fields: Sequence[Mapping[str, str]], mime_type: str) -> str:
    """The body as text, without the contents of files."""
    boundary = _BOUNDARY.search(mime_type)
    if boundary is None:
        return ""
    lines = []
    for field in fields:
        is_file = "fileName" in field
        file_name = f'; filename="{_escaped(field["fileName"])}"' if is_file else ""
        head = f'Content-Disposition: form-data; name="{_escaped(field["name"])}"{file_name}'
        kind = f"\r\nContent-Type: {field['contentType']}" if is_file else ""
        lines.append(f"--{boundary[1]}\r\n{head}{kind}\r\n\r\n{field['value']}\r\n")
    return "".join(lines) + f"--{boundary[1]}--\r\n"


def _unescaped(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return text


def _escaped(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(character, escape)
    return text
