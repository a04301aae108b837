"""`run.json` as tables for people: who played and judged, in which browser, and what else decided. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from judge.config import RunConfig
from judge.records.verdicts import NO_PROMPTS, OFFLINE
from judge.results.run_record import NO_RESULT
from shared.fields import as_mapping

# The configuration has a separate table; the request repeats it; counts and costs are at the top of the page.
_LEFT_OUT = frozenset({"config", "request", "task_ids", "schema_version", "outcomes", "judge_usage"})
_GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "participants": "Participant",
        "identity": "Participant",
        "judge": "Judge",
        "judge_model": "Judge",
        # The judge is named by its method and model; its id tells apart prompts and settings.
        "judge_id": "Checksums",
        "judge_ids": "Checksums",
        "decided_by": "Judge",
        "environment": "Browser",
        "packages": "Packages",
    }
)
_DECIDED = ("Participant", "Judge", "Browser", "Settings")
_MORE = ("Run", "Configuration", "Packages", "Checksums")
# Keys whose parts are clear without them.
_UNNAMED = frozenset({"participants", "identity", "environment", "packages", "judge"})
# Of a judge that asks no model: it has no prompts, and nothing compares scores with a threshold.
_OF_MODELS = frozenset({"model", "prompt_set", "threshold"})
_DIGEST = re.compile(r"[0-9a-f]{64}")

SetupRows = list[tuple[str, str]]


class Setup(NamedTuple):
    """Names and values by group, without unset ones: what decided the results, and what else was recorded."""

    decided: dict[str, SetupRows]
    more: dict[str, SetupRows]


def setup_of(record: Mapping[str, Any]) -> Setup:
    """What a `run.json` says about how the run was set up."""
    groups: defaultdict[str, SetupRows] = defaultdict(list)
    for key, value in _listed_parts(record).items():
        for path, leaf in _leaves(value):
            name = " ".join(path if key in _UNNAMED and path else (key, *path)).replace("_", " ")
            text = (moment(leaf) if key.endswith("_at") else "") or _words(leaf)
            is_digest = isinstance(leaf, str) and _DIGEST.fullmatch(leaf)
            # In a group, `model` may be the judge's or the participant's; a checksum needs its key.
            if is_digest:
                groups["Checksums"].append((" ".join((key, *path)).replace("_", " "), text))
            elif text:
                groups[_GROUPS.get(key, "Run")].append((name, text))
    config = as_mapping(record.get("config"))
    groups["Settings"] = [(name.replace("_", " "), _words(value)) for name, value in _deciding(config)]
    groups["Configuration"] = [(str(name), str(value)) for name, value in config.items()]
    return Setup(*({name: groups[name] for name in names if groups[name]} for names in (_DECIDED, _MORE)))


def _listed_parts(record: Mapping[str, Any]) -> dict[str, Any]:
    """The listed parts of the record, without judges that had no part in a verdict."""
    listed_parts = {key: value for key, value in record.items() if key not in _LEFT_OUT}
    judge = as_mapping(record.get("judge"))
    if judge:
        # It names the model as well.
        listed_parts.pop("judge_model", None)
    if judge.get("prompt_set") == NO_PROMPTS:
        listed_parts["judge"] = {key: value for key, value in judge.items() if key not in _OF_MODELS}
        # Without prompts, it is the version of the checks' rules.
        listed_parts["judge"] = {
            "rules" if key == "prompt_version" else key: value for key, value in listed_parts["judge"].items()
        }
    return listed_parts


def _deciding(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The settings that can affect a result and have other values than the defaults.

    Judge models' are left out where none was asked.
    """
    is_offline = config.get("judge_model") == OFFLINE
    for name, value in config.items():
        field = RunConfig.model_fields.get(name)
        default = field.get_default(call_default_factory=True) if field else None
        is_judges = name == "judge_model" or (is_offline and name.startswith("judge_"))
        is_default = value == (list(default) if isinstance(default, tuple) else default)
        if name not in NO_RESULT and not is_judges and not is_default:
            yield name, value


def _leaves(value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            for path, leaf in _leaves(inner):
                yield (str(name), *path), leaf
    elif value not in (None, "", [], ()):
        yield (), value


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def moment(value: Any) -> str:
    """Seconds since 1970 or an ISO time as `2026-02-03 04:05 UTC`; empty for anything else."""
    try:
        time = datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
