"""What is asked of a site while it is recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network.interception import SiteSocket, WireAnswer, WireRequest
from judge.plugins.frozen.recording import RecordingInterceptor

KNOWN_ENCODINGS = {"gzip", "x-gzip", "deflate", "identity", "*"}


class Site:
    """Answers every request, and keeps it."""

    def __init__(self) -> None:
        self.requests: list[WireRequest] = []

    async def fetch(self, request: WireRequest) -> WireAnswer:
        self.requests.append(request)
        return WireAnswer(200, "OK", (), b"page")

    async def socket(self, request: WireRequest) -> SiteSocket:
        raise NotImplementedError


async def asked_for(accepted: str) -> str:
    """What a site is asked for when a browser accepts these encodings."""
    site, interceptor = Site(), RecordingInterceptor("w")
    request = WireRequest("GET", "https://shop.test/", (("Host", "shop.test"), ("Accept-Encoding", accepted)))
    await interceptor.answer(request, site)
    (exchange,) = interceptor.exchanges
    assert exchange.request.headers == request.headers
    return dict(site.requests[0].headers)["Accept-Encoding"]


@pytest.mark.parametrize(
    ("accepted", "requested"),
    [
        ("gzip, deflate, br, zstd", "gzip, deflate"),
        ("gzip;q=1.0, br;q=0.9, *;q=0.1", "gzip;q=1.0, *;q=0.1"),
        ("identity;q=1, *;q=0", "identity;q=1, *;q=0"),
        ("BR", "identity"),
        ("", "identity"),
    ],
)
async def test_a_recorded_site_is_asked_only_for_encodings_that_can_be_decoded(accepted: str, requested: str) -> None:
    assert await asked_for(accepted) == requested


@given(st.text(alphabet="gzipbrdeflatxs-*;=, 019", max_size=60))
async def test_no_other_encoding_is_ever_asked_for(accepted: str) -> None:
    names = {each.partition(";")[0].strip() for each in (await asked_for(accepted)).split(",")}
    assert names <= KNOWN_ENCODINGS
