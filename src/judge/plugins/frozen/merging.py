"""Combines archives: all walks of all of them, each once. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from judge.plugins.frozen.exchanges import RecordedExchange, SiteRecording, Walk


def merged(recordings: Sequence[SiteRecording]) -> SiteRecording:
    """One recording with all walks. Duplicates are dropped; different walks of the same name get numbers."""
    walks: list[Walk] = []
    exchanges: list[RecordedExchange] = []
    merged_exchanges: dict[str, list[tuple[RecordedExchange, ...]]] = {}
    names: set[str] = set()
    for recording in recordings:
        renamed: dict[str, str] = {}
        for walk in recording.walks:
            own = tuple(exchange for exchange in recording.exchanges if exchange.walk == walk.name)
            if own in merged_exchanges.setdefault(walk.name, []):
                continue
            merged_exchanges[walk.name].append(own)
            name = _free(walk.name, names)
            names.add(name)
            renamed[walk.name] = name
            walks.append(replace(walk, name=name, repeats=renamed.get(walk.repeats or "")))
            exchanges += [replace(exchange, walk=name) for exchange in own]
    return SiteRecording(tuple(walks), tuple(exchanges))


def _free(name: str, used: set[str]) -> str:
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}~{number}"
    return free
