"""The identity of a run's participant and scenario, for `run.json`, submissions, titles, comparisons and lists."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shared.fields import as_mapping
from shared.text import clip, one_line

if TYPE_CHECKING:
    from judge.scenario.models import Launch
    from judge.store.layout import RunStore

_MAX_CHARS = 200
# What the program behind the participant could reach.
_ISOLATION = "isolation"
_KEYS = ("name", "card_name", "card_version", "model", "agentbeats_id", "revision")


def identity_of_launch(
    launch: "Launch | None", role: str, agentbeats_id: str, name: str | None = None
) -> dict[str, Any]:
    """What is known about the participant before it is called; `name` is the user's name for the run.

    `record_card` adds the data of its agent card.
    """
    process = launch.participants.get(role) if launch else None
    return {
        "name": name,
        "card_name": None,
        "card_version": None,
        "model": process.model if process else None,
        "agentbeats_id": agentbeats_id,
        "revision": launch.revision if launch else None,
        **({_ISOLATION: "container"} if process and process.image else {}),
    }


def resumed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The identity of a resumed run: earlier values are kept where none is known now, and all revisions are listed."""
    identity = {key: before.get(key) if value is None else value for key, value in now.items()}
    return identity | {"revision": _all_of(before.get("revision"), now.get("revision")) or None}


def record_card(store: "RunStore", name: str, version: str, isolation: str | None = None) -> None:
    """Add the participant's agent card (untrusted text) to `run.json`, with all its versions. Raises `OSError`."""
    record = store.read_run()
    if record is not None:
        known = as_mapping(record.get("identity"))
        versions = _all_of(known.get("card_version"), clip(version, _MAX_CHARS))
        card = {"card_name": clip(name, _MAX_CHARS), "card_version": clip(versions, _MAX_CHARS)}
        # What this machine knows of its own container counts, not what the agent says.
        said = {_ISOLATION: isolation} if isolation and not known.get(_ISOLATION) else {}
        store.write_run({**record, "identity": {**known, **card, **said}})


def _all_of(*values: object) -> str:
    """The parts of lists with commas, each once: a run resumed with another version has both."""
    texts = [text for text in values if isinstance(text, str) and text]
    return ", ".join(dict.fromkeys(", ".join(texts).split(", ")))


def identity_in(record: Mapping[str, Any]) -> dict[str, Any]:
    """The identity in a `run.json`, including its scenario: one-line strings, `None` if not known."""
    known, scenario = (as_mapping(record.get(key)) for key in ("identity", "scenario"))
    # Left out where nothing says it.
    identity = {key: known.get(key) for key in (*_KEYS, *(each for each in (_ISOLATION,) if each in known))}
    identity |= {"scenario": scenario.get("name"), "scenario_sha256": scenario.get("sha256")}
    return {key: one_line(value, _MAX_CHARS) if isinstance(value, str) else None for key, value in identity.items()}


def player(identity: Mapping[str, Any], role: str) -> str:
    """The participant in one line: `night run: my agent 1.2 (gemini-3)`; the role if nothing else is known."""
    card = " ".join(filter(None, (identity.get("card_name"), identity.get("card_version"))))
    model = f" ({identity['model']})" if identity.get("model") else ""
    return ": ".join(filter(None, (identity.get("name"), f"{card or role}{model}")))
