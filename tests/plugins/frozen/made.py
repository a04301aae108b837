"""Recordings made up for tests."""

from collections.abc import Callable, Iterable, Sequence

from judge.network.interception import HeaderPairs, WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedResponse, SiteRecording, Walk

START_MS = 1_790_000_000_000
MINUTE_MS = 60_000
SITE = "http://shop.test"


def request(
    path: str = "/", method: str = "GET", body: bytes = b"", headers: HeaderPairs = (), step: int = 0
) -> WireRequest:
    url = path if "://" in path else SITE + path
    return WireRequest(method, url, headers, body, step)


def answer(
    body: bytes = b"", status: int = 200, mime: str = "text/html", headers: HeaderPairs = ()
) -> RecordedResponse:
    return RecordedResponse(status, "OK", (("Content-Type", mime), *headers), body)


def walk(name: str, *pairs: tuple[WireRequest, RecordedResponse | None]) -> tuple[RecordedExchange, ...]:
    """Exchanges that follow one another without overlapping."""
    return tuple(
        RecordedExchange(
            walk=name,
            number=number,
            request=each_request,
            at_ms=START_MS + 100 * number,
            began=2 * number + 1,
            ended=2 * number + 2,
            answer=answered,
            failure="" if answered else "unreachable",
        )
        for number, (each_request, answered) in enumerate(pairs)
    )


AGAIN = " again"


def recording(*walks: Sequence[RecordedExchange]) -> SiteRecording:
    """A walk named like another one and `AGAIN` repeats it a minute later."""
    return SiteRecording(
        tuple(_walk(each[0].walk) for each in walks), tuple(exchange for each in walks for exchange in each)
    )


def _walk(name: str) -> Walk:
    repeats = name.removesuffix(AGAIN)
    return Walk(name, START_MS) if repeats == name else Walk(name, START_MS + MINUTE_MS, repeats=repeats)


def played_twice(
    pairs: Callable[[int], Iterable[tuple[WireRequest, RecordedResponse | None]]], name: str = "w"
) -> SiteRecording:
    """A walk and its repetition, in which `pairs` returns the requests and answers of play 0 and of play 1."""
    return recording(walk(name, *pairs(0)), walk(name + AGAIN, *pairs(1)))
