"""Copies of our scenarios on ports of their own, so that tests never meet each other or a user's run."""

import re
from pathlib import Path

from helpers.paths import ROOT
from helpers.ports import free_ports


def scenario_on_free_ports(name: str, folder: Path, **config: object) -> Path:
    """`scenarios/<name>/scenario.toml` with its ports moved to free ones and settings added; returns the new file."""
    home = ROOT / "scenarios" / name
    text = on_free_ports((home / "scenario.toml").read_text().replace("{scenario_dir}", str(home)))
    settings = "".join(f"{key} = {value!r}\n".replace("'", '"') for key, value in config.items())
    text = text.replace("[config]\n", f"[config]\n{settings}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def on_free_ports(text: str) -> str:
    """A scenario's text with its ports moved to free ones."""
    used = sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", text)))
    for old, new in zip(used, free_ports(len(used)), strict=True):
        text = re.sub(rf"(127\.0\.0\.1:|--port |http\.server ){old}\b", rf"\g<1>{new}", text)
    return text


def ports_of(scenario: Path) -> list[int]:
    """The ports that a scenario's members listen on."""
    return sorted({int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", scenario.read_text())})
