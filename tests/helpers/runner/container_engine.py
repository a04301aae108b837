"""A container engine whose containers are processes of this machine, for `scripts/run-docker.py` without Docker.

It understands the commands that the script gives. A container sees the variables it was given and no others; paths of
its volumes are translated in its arguments, since all share one file system, as they share one network.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from helpers.paths import ROOT

SCRIPT = ROOT / "scripts" / "run-docker.py"
_ENGINE = r"""#!{python} -I
import json, os, re, signal, subprocess, sys, time
from pathlib import Path

STATE, PLAN = Path({state!r}), json.loads({plan!r})
FLAGS = ("--detach", "--rm", "--interactive", "--tty", "--no-healthcheck", "--force", "--follow")

def parse(words):
    options = []
    while words and words[0].startswith("--"):
        word = words.pop(0)
        options.append((word, None if word in FLAGS else words.pop(0)))
    return options, words

command, (options, words) = sys.argv[1], parse(sys.argv[2:])
with (STATE / "calls").open("a") as stream:
    stream.write(json.dumps(sys.argv[1:]) + "\n")
value = dict(options)
name = value.get("--name") or (words[0] if words else "")
log, code, pid = (STATE / (name + end) for end in (".log", ".code", ".pid"))
if command == "run":
    if words[0] not in PLAN["images"]:
        sys.exit("no such image: " + words[0])
    volumes = [item.split(":")[:2] for key, item in options if key == "--volume"]
    given = [item for key, item in options if key == "--env"]
    environ = {{"PATH": os.environ["PATH"], "HOME": str(STATE), "WABE_OUTPUT_DIR": "/app/.output"}}
    environ |= dict(item.split("=", 1) if "=" in item else (item, os.environ[item]) for item in given)

    def here(text):
        for host, inside in volumes:
            text = re.sub(r"(?<![\w./]){{}}(?=/|$)".format(re.escape(inside)), host, text)
        return text

    environ = {{key: here(item) for key, item in environ.items()}}
    if "--rm" in value:
        argv = [here(word) for word in words[words.index("--") + 1 :]]
        sys.exit(subprocess.run(argv, env=environ).returncode if PLAN["runs"] else 0)
    argv = [*PLAN["images"][words[0]], *(here(word) for word in words[1:])]
    shell = ["sh", "-c", 'log=$1 code=$2; shift 2; "$@" >"$log" 2>&1; echo $? >"$code"', "sh", str(log), str(code)]
    child = subprocess.Popen([*shell, *argv], env=environ, start_new_session=True, stdin=subprocess.DEVNULL)
    pid.write_text(str(child.pid))
elif command == "inspect":
    print("false " + code.read_text().strip() if code.exists() else "true 0")
elif command == "logs":
    sys.stdout.buffer.write(log.read_bytes() if log.exists() else b"")
elif command == "exec":
    if code.exists():
        sys.exit("Error response from daemon: container " + name + " is not running")
    if words[words.index("--agent") + 1] not in PLAN["ready"]:
        os.execvp(words[1], words[1:])
elif command == "rm" and pid.exists():
    try:
        os.killpg(int(pid.read_text()), signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


def real_engine(*images: str) -> str | None:
    """The container engine of this machine, if it answers and has the images; the one that `WABE_ENGINE` names."""
    engine = shutil.which(os.environ.get("WABE_ENGINE", "docker"))
    if engine is None:
        return None
    completed = subprocess.run([engine, "image", "inspect", *images], capture_output=True, check=False)
    return engine if completed.returncode == 0 else None


def play(
    folder: Path, scenario: str, *options: str, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`run-docker.py` on the scenario's text, as a file of `folder`."""
    path = folder / "scenario.toml"
    path.write_text(scenario)
    command = [sys.executable, str(SCRIPT), str(path), "--output-dir", str(folder / "out"), *options]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=240)


class Engine:
    """The engine with its `images` (name to command line). `ready` are addresses whose card need not be asked for;
    without `runs` the assessment itself is left out.
    """

    def __init__(
        self, folder: Path, images: dict[str, list[str]], *, ready: tuple[str, ...] = (), runs: bool = False
    ) -> None:
        self.folder = folder
        self._state = folder / "state"
        self._state.mkdir(parents=True)
        self._program = folder / "engine"
        plan = json.dumps({"images": images, "ready": ready, "runs": runs})
        self._program.write_text(_ENGINE.format(python=sys.executable, state=str(self._state), plan=plan))
        self._program.chmod(0o755)

    def play(
        self, scenario: str, *options: str, keys: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """`run-docker.py` on the scenario's text, with `keys` in its environment."""
        environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(self.folder), **(keys or {})}
        return play(self.folder, scenario, "--engine", str(self._program), *options, environ=environ)

    def calls(self) -> list[list[str]]:
        """Every command the engine was given."""
        path = self._state / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
