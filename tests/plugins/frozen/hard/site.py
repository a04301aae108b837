"""The site of all hard cases, running; and what listens on its ports once it is stopped."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from helpers.network.served_sites import Addresses, Authority, Site, Tripwire, listening
from helpers.ports import free_ports
from plugins.frozen.hard import contents, documents, state, streams, values, workers
from plugins.frozen.hard.case import Case, Walk

CASES: tuple[Case, ...] = tuple(
    case for family in (workers, streams, contents, documents, state, values) for case in family.CASES
)
BEYOND: tuple[Case, ...] = values.BEYOND
CREDENTIALS = (documents.USER, documents.PASSWORD)


def addresses() -> Addresses:
    """Free ports: one for the site, under two names, and one where nothing answers."""
    port, closed = free_ports(2)
    return Addresses(f"https://localhost:{port}", f"https://127.0.0.1:{port}", f"https://localhost:{closed}")


def ports_of(places: Addresses) -> tuple[int, ...]:
    return tuple(int(place.rpartition(":")[2]) for place in (places.own, places.closed))


@contextmanager
def running(
    places: Addresses, authority: Authority | None, cases: Iterable[Case] = (*CASES, *BEYOND)
) -> Iterator[Site]:
    """Serve the cases while the body runs; without an authority, not over TLS."""
    chosen = tuple(cases)
    handlers = {path: handler for case in chosen for path, handler in case.handlers.items()}
    sockets = {path: handler for case in chosen for path, handler in case.sockets.items()}
    site = Site(places, handlers, sockets)
    with listening(site.serve, ports_of(places)[0], authority):
        yield site


@contextmanager
def stopped(places: Iterable[int]) -> Iterator[Tripwire]:
    """Listen on the ports of stopped sites, and count who connects, while the body runs."""
    wire = Tripwire()
    with ExitStack() as stack:
        for port in places:
            stack.enter_context(listening(wire.serve, port))
        yield wire


def recorded(cases: Iterable[Case]) -> list[tuple[Case, Walk]]:
    """The walks that are recorded, each as an attempt of its own."""
    return [(case, walk) for case in cases for walk in (*case.recorded, *_elsewhere(case))]


def _elsewhere(case: Case) -> list[Walk]:
    """Of free steps other orders than the shuffled one, so that each is recorded in two states."""
    (first, *others) = case.recorded
    if others or not case.is_free:
        return []
    middle = len(first) // 2
    if len(first) > 2:
        return [first[middle:] + first[:middle]]
    # A message that is sent twice on a socket has two answers, and a recording does not say which one a look showed.
    # Otherwise, the first step is repeated, and taken again after the other one.
    return [first[1:]] if case.sockets else [first[1:], first[:1] + first + first[:1]]


def shuffled(cases: Iterable[Case]) -> list[tuple[Case, Walk]]:
    """The same cases, each with its steps in another order."""
    return [(case, case.shuffled) for case in cases]
