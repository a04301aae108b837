"""The judge's answers for `fetch` checks after the last look: read without a page, stored without secrets."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from judge.trajectory.json_bodies import is_json
from shared.models import Address, Record, RecordedLimit, omit_default

MAX_BODY_BYTES = 65_536
_MAX_TYPE_CHARS = 200
_PLAIN = "text/plain"

Redacted = Callable[[Mapping[str, Any]], dict[str, Any]]


class FetchResponse(Record):
    """The answer to one request of the judge, as the browser's request client gave it.

    `location` is the complete address of a redirect, which was not followed; `error` says why there is no answer.
    """

    status: int = 0
    type: str = ""
    body: str | None = None
    location: str | None = None
    error: str | None = None


class Fetched(Record):
    """What a `fetch` check with this `url` and `bearer` compares: `body`, or the `error` that fails it."""

    url: Address
    bearer: str | None = omit_default(None)
    status: int = 0
    type: str = ""
    # Limited so that the complete answer is compared: a character takes up to six bytes as written.
    body: Annotated[str | None, RecordedLimit(6 * MAX_BODY_BYTES)] = None
    error: Annotated[str | None, RecordedLimit(12_000)] = None


def stored(url: str, bearer: str | None, answer: FetchResponse, redacted: Redacted) -> Fetched:
    """The answer as it is stored, without secrets (`redacted`: as for a HAR entry)."""
    fetched = Fetched(url=url, bearer=bearer, status=answer.status, type=answer.type[:_MAX_TYPE_CHARS])
    if problem := _problem_of(answer):
        # The message may repeat an address.
        return fetched.model_copy(update={"error": _without_secrets(problem, _PLAIN, redacted)})
    text = answer.body or ""
    # In any kind of text: names cannot be recognised, but listed secrets can.
    mime_type = answer.type if is_json(answer.type, text) else _PLAIN
    body = _without_secrets(text, mime_type, redacted)
    if body is None:
        return fetched.model_copy(update={"error": "the answer is not readable as JSON"})
    return fetched.model_copy(update={"body": body})


def _problem_of(answer: FetchResponse) -> str | None:
    if answer.error is not None:
        return answer.error
    if not 200 <= answer.status < 300:
        return f"status {answer.status}"
    if len((answer.body or "").encode("utf-8", "surrogatepass")) > MAX_BODY_BYTES:
        return f"the answer has more than {MAX_BODY_BYTES} bytes"
    if answer.body and not (is_json(answer.type, answer.body) or _is_text(answer.type)):
        return f"the answer is neither JSON nor text nor XML, but {answer.type[:100] or 'of no type'}"
    return None


def _is_text(content_type: str) -> bool:
    mime_type = content_type.partition(";")[0].strip().lower()
    return mime_type.startswith("text/") or mime_type == "application/xml" or mime_type.endswith("+xml")


def _without_secrets(text: str, mime_type: str, redacted: Redacted) -> str | None:
    """The text as a recorded answer would have it; `None` if such an answer would be left out."""
    empty: dict[str, Any] = {"url": "", "headers": [], "cookies": [], "queryString": []}
    response = {"redirectURL": "", "headers": [], "cookies": [], "content": {"mimeType": mime_type, "text": text}}
    content = redacted({"request": empty, "response": response})["response"]["content"]
    content_text: str | None = content.get("text")
    return content_text
