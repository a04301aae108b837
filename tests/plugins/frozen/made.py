"""Recordings made up for tests."""

from collections.abc import Sequence

from judge.network.interception import Headers, WireRequest
from judge.plugins.frozen.exchanges import Answer, Exchange, Recording, Walk

START_MS = 1_790_000_000_000
SITE = "http://shop.test"


def request(
    path: str = "/", method: str = "GET", body: bytes = b"", headers: Headers = (), step: int = 0
) -> WireRequest:
    url = path if "://" in path else SITE + path
    return WireRequest(method, url, headers, body, step)


def answer(body: bytes = b"", status: int = 200, mime: str = "text/html", headers: Headers = ()) -> Answer:
    return Answer(status, "OK", (("Content-Type", mime), *headers), body)


def walk(name: str, *pairs: tuple[WireRequest, Answer | None]) -> tuple[Exchange, ...]:
    """Exchanges that follow one another without overlapping."""
    return tuple(
        Exchange(
            walk=name,
            number=number,
            request=asked,
            at_ms=START_MS + 100 * number,
            began=2 * number + 1,
            ended=2 * number + 2,
            answer=answered,
            failure="" if answered else "unreachable",
        )
        for number, (asked, answered) in enumerate(pairs)
    )


def recording(*walks: Sequence[Exchange]) -> Recording:
    return Recording(
        tuple(Walk(each[0].walk, START_MS) for each in walks), tuple(exchange for each in walks for exchange in each)
    )
