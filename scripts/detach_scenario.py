#!/usr/bin/env python3
"""Rewrites a scenario for agents that run in containers: the agents' commands go, the sites' commands stay.

scripts/detach_scenario.py SCENARIO.toml OUTPUT.toml [--folder FOLDER_IN_THE_CONTAINER]
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any


def detach(scenario: dict[str, Any], folder: str) -> dict[str, Any]:
    """The scenario without the agents' `cmd` and `env`; `{scenario_dir}` in what is left becomes `folder`."""
    kept = {**scenario, "green_agent": _without_commands(scenario.get("green_agent", {}))}
    if "participants" in scenario:
        kept["participants"] = [_without_commands(agent) for agent in scenario["participants"]]
    if "sites" in scenario:
        kept["sites"] = [
            {**site, "cmd": site["cmd"].replace("{scenario_dir}", folder)} if "cmd" in site else site
            for site in scenario["sites"]
        ]
    return kept


def to_toml(document: dict[str, Any]) -> str:
    """The document as TOML: tables, lists of tables, and values of one line."""
    lines: list[str] = []
    for key, value in document.items():
        if isinstance(value, dict):
            lines += ["", f"[{_key(key)}]", *_pairs(value)]
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            for item in value:
                lines += ["", f"[[{_key(key)}]]", *_pairs(item)]
        else:
            lines.insert(0, f"{_key(key)} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _without_commands(agent: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in agent.items() if key not in ("cmd", "env")}


def _pairs(table: dict[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)
    # JSON's strings, numbers and booleans are TOML's; only the delete character must be escaped there.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007F")


def main() -> int:
    """Rewrite one file; exit code 2 for a file that cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--folder", help="the scenario's folder as the containers see it; default: as it is here")
    arguments = parser.parse_args()
    try:
        scenario = tomllib.loads(arguments.scenario.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        print(f"error: {arguments.scenario}: {error}", file=sys.stderr)
        return 2
    folder = arguments.folder or str(arguments.scenario.resolve().parent)
    arguments.output.write_text(to_toml(detach(scenario, folder)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
