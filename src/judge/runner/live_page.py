"""Finds out where a judge's live page is and who can open it."""

from http import HTTPStatus

import httpx
from pydantic import SecretStr

from shared.models import Record

_TIMEOUT_S = 5.0
_NOTES = {
    HTTPStatus.OK: "",
    HTTPStatus.UNAUTHORIZED: "its password is the judge's WABE_AUTH_TOKEN",
    HTTPStatus.FORBIDDEN: "only on the judge's own machine, at a loopback address",
}


class LivePage(Record):
    """The page's address, `None` if there is none, and what a user should know about it."""

    url: str | None
    note: str = ""


async def live_page_of(endpoint: str, auth_token: SecretStr | None = None) -> LivePage:
    """Ask the judge, which may have been started elsewhere. Never fails, because a run does not need the page."""
    headers = {"Authorization": f"Bearer {auth_token.get_secret_value()}"} if auth_token else {}
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT_S) as client:
            answer = await client.head(endpoint, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL):
        return LivePage(url=None, note="the judge does not answer")
    # The page opened with the token, which a user will have to enter as well.
    status = HTTPStatus.UNAUTHORIZED if auth_token and answer.is_success else answer.status_code
    is_page = "text/html" in answer.headers.get("content-type", "")
    if status not in _NOTES or (answer.is_success and not is_page):
        return LivePage(url=None, note="the judge was started with --no-ui, or has none")
    return LivePage(url=endpoint, note=_NOTES[HTTPStatus(status)])
