"""Finds out where a judge's live page is and who can open it."""

import re
from http import HTTPStatus
from urllib.parse import urljoin

import httpx
from pydantic import SecretStr

from shared.a2a.page_links import PATH
from shared.fields import as_mapping
from shared.models import Record

_TIMEOUT_S = 5.0
_LINK = re.compile(rf"{PATH}/[A-Za-z0-9_-]{{20,100}}")
_NOTES = {
    HTTPStatus.OK: "",
    HTTPStatus.UNAUTHORIZED: "its password is the judge's WABE_AUTH_TOKEN",
    HTTPStatus.FORBIDDEN: "only on the judge's own machine, at a loopback address",
}


class LivePage(Record):
    """The page's address, `None` if there is none, and what a user should know about it."""

    url: str | None
    note: str = ""


async def live_page_of(endpoint: str, auth_token: SecretStr | None = None, *, wants_link: bool = False) -> LivePage:
    """Ask the judge, which may have been started elsewhere. Never fails, because a run does not need the page.

    `wants_link`: with a one-time link to a page behind a token, for a terminal, because others may read a log.
    """
    headers = {"Authorization": f"Bearer {auth_token.get_secret_value()}"} if auth_token else {}
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT_S) as client:
            answer = await client.head(endpoint, headers=headers)
            if wants_link and answer.is_success and auth_token and (link := await _link(client, endpoint, headers)):
                return LivePage(url=link, note=f"opens once; later {_NOTES[HTTPStatus.UNAUTHORIZED]}")
    except (httpx.HTTPError, httpx.InvalidURL):
        return LivePage(url=None, note="the judge does not answer")
    # The page opened with the token, which a user will have to enter as well.
    status = HTTPStatus.UNAUTHORIZED if auth_token and answer.is_success else answer.status_code
    is_page = "text/html" in answer.headers.get("content-type", "")
    if status not in _NOTES or (answer.is_success and not is_page):
        return LivePage(url=None, note="the judge was started with --no-ui, or has none")
    return LivePage(url=endpoint, note=_NOTES[HTTPStatus(status)])


async def _link(client: httpx.AsyncClient, endpoint: str, headers: dict[str, str]) -> str | None:
    """A link that opens the page without the token; `None` if the judge has none."""
    answer = await client.post(urljoin(endpoint, PATH), headers=headers)
    try:
        path = as_mapping(answer.json()).get("path") if answer.is_success else None
    except ValueError:
        return None
    # It comes from a judge that may not be ours, and becomes part of a printed address.
    return urljoin(endpoint, path) if isinstance(path, str) and _LINK.fullmatch(path) else None
