"""Trials of attacks: whether one changes what checks say, or whether a walk that does not obey reaches its goals."""

from typing import Any

from shared.plugins import Plugin, Trial


def try_attacks(scenario: Any, settings: Any, *, write: bool) -> tuple[list[str], list[str]]:
    """Problems and notes of playing the reference scripts under attack."""
    from judge.plugins.attack_trials.trying import try_attacks

    return try_attacks(scenario, settings, write=write)


PLUGIN = Plugin(tries={"attacks": Trial("Play reference scripts with and without each attack.", try_attacks)})
