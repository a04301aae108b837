"""Ports on loopback that nobody listens on."""

import random
import socket
from contextlib import suppress

# Below those that the kernel, or `--shards`, gives to whoever asks for any: nobody takes one before it is used.
# Above 10080, the last one that browsers refuse (Fetch, "bad port").
_LOWEST, _HIGHEST = 10_100, 16_000
# A port is reserved while this much above it is taken for UDP, which nothing here speaks: until this process ends. The
# UDP port of the same number is what a run takes that starts a site there.
_MARK = 40_000
_reserved: list[socket.socket] = []


def free_ports(count: int) -> list[int]:
    """Different ports that are free and that no other test is given."""
    return [free_port() for _ in range(count)]


def free_port() -> int:
    """A port that is free and that no other test is given."""
    while True:
        port = random.SystemRandom().randrange(_LOWEST, _HIGHEST)
        mark = socket.socket(type=socket.SOCK_DGRAM)
        with suppress(OSError), socket.socket() as probe, socket.socket(type=socket.SOCK_DGRAM) as turn:
            mark.bind(("127.0.0.1", port + _MARK))
            probe.bind(("127.0.0.1", port))
            turn.bind(("127.0.0.1", port))
            _reserved.append(mark)
            return port
        mark.close()
