"""Ports on loopback that nobody listens on."""

import socket


def free_ports(count: int) -> list[int]:
    """Different ports that were free a moment ago."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def free_port() -> int:
    """A port that was free a moment ago."""
    (port,) = free_ports(1)
    return port
