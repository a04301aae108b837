"""Hosts of addresses."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host, as a name or an address without brackets, is this machine."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # A socket for both IP versions reports IPv4 peers as ::ffff:127.0.0.1.
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
