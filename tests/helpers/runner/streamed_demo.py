"""The demo, played by a participant that streams its replies in chunks of one character."""

import re
from pathlib import Path

from helpers.paths import ROOT
from helpers.ports import free_ports

_DEMO = ROOT / "scenarios" / "demo" / "scenario.toml"
_PORTS = ("9009", "9019", "9180")


def write_streamed_demo(folder: Path, *, only_streams: bool) -> Path:
    """The demo's scenario on free ports, with the participant of `helpers.a2a.streaming`."""
    text = _DEMO.read_text().replace("{scenario_dir}", "{scenarios}/demo")
    option = " --only-streams" if only_streams else ""
    cmd = f"python -m helpers.a2a.streaming {{scenarios}}/demo/replay.toml 9019{option}"
    text = re.sub(
        r'^cmd = "wabe participant .*"$', f'cmd = "{cmd}"\nenv = {{ PYTHONPATH = "{ROOT}/tests" }}', text, flags=re.M
    )
    for port, free in zip(_PORTS, free_ports(len(_PORTS)), strict=True):
        text = re.sub(rf"\b{port}\b", str(free), text)
    path = folder / "scenario.toml"
    path.write_text(text)
    return path
