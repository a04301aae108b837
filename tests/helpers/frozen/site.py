"""The site of all hard cases, running; and what listens on its ports once it is stopped."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from helpers.frozen import contents, documents, state, streams, values, workers
from helpers.frozen.case import Case, Walk
from helpers.frozen.wire import Addresses, Authority, Site, Tripwire, listening
from helpers.ports import free_ports

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
def running(places: Addresses, authority: Authority, cases: Iterable[Case] = (*CASES, *BEYOND)) -> Iterator[Site]:
    """Serve the cases while the body runs."""
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


def recorded(cases: Iterable[Case], turn: int = 0) -> list[tuple[Case, Walk]]:
    """The walk through the cases that is recorded; the second one (`turn` 1) the other way round, from other states."""
    chosen = [(case, case.recorded[turn % len(case.recorded)]) for case in cases]
    return chosen[::-1] if turn else chosen


def shuffled(cases: Iterable[Case]) -> list[tuple[Case, Walk]]:
    """The same cases in another order, each with its steps in another order."""
    return [(case, case.shuffled) for case in sorted(cases, key=lambda case: case.name[::-1])]
