"""Images that are not ours, and output folders of another user: they work, or one line names what is wrong."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

from helpers.paths import ROOT
from helpers.ports import free_port, free_ports
from judge.commands.doctor import check_agent

# A container engine whose containers are processes of this machine, for `scripts/run-docker.py` without Docker.
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


pytestmark = pytest.mark.slow

JUDGE = "http://127.0.0.1:9009"


def a_scenario(port: int, env: str = "") -> str:
    return (
        f'[green_agent]\nendpoint = "{JUDGE}"\nimage = "judge"\n'
        f'[[participants]]\nrole = "guest"\nendpoint = "http://127.0.0.1:{port}"\nimage = "foreign"\n{env}\n'
    )


def an_engine(folder: Path, program: str, judge: str = "import time; time.sleep(600)") -> Engine:
    """An engine whose foreign image is a Python program, and whose judge is said to be up."""
    python = [sys.executable, "-I", "-S", "-c"]
    return Engine(folder, {"judge": [*python, judge], "foreign": [*python, program]}, ready=(JUDGE,))


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of complaint."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


JUDGE_IMAGE = "ghcr.io/hjerpe/wabe:ci"
GUEST_IMAGE = "example.test/purple-node:latest"
EXAMPLE = ROOT / "examples" / "purple-node"


@pytest.mark.nightly
@pytest.mark.e2e
def test_an_image_without_any_of_this_project_is_started_and_plays(tmp_path: Path) -> None:
    """The guide's Node example: no health check, no `wabe`, no Python. In containers where there is an engine with the
    judge's image (`scripts/build-green-image.sh --tag ci`), otherwise the same script starts processes.
    """
    folder, ports = tmp_path / "demo", free_ports(3)
    shutil.copytree(ROOT / "scenarios" / "demo", folder)
    scenario = (
        a_scenario(ports[1]).replace(JUDGE, f"http://127.0.0.1:{ports[0]}")
        + f'[[sites]]\nname = "shop"\nendpoint = "http://127.0.0.1:{ports[2]}"\n'
        + f'cmd = "python {{scenario_dir}}/site.py --host 127.0.0.1 --port {ports[2]}"\n'
        + '[config]\nmax_steps = 2\njudge_model = "offline"\n'
        + f'[[tasks]]\ntask_id = "help"\nwebsite = "http://127.0.0.1:{ports[2]}/"\ntask = "Open the help page."\n'
        + 'checks = [{ kind = "page", url = "/help" }]\n'
    )
    engine = real_engine(JUDGE_IMAGE)
    if engine:
        subprocess.run([engine, "build", "--tag", GUEST_IMAGE, str(EXAMPLE)], check=True)
        scenario = scenario.replace('"judge"', f'"{JUDGE_IMAGE}"').replace('"foreign"', f'"{GUEST_IMAGE}"')
        done = play(folder, scenario, "--engine", engine, "--output", str(tmp_path / "results.json"))
    else:
        node, _ = compute_driver_executable()
        images = {"judge": ["wabe", "serve"], "foreign": [node, str(EXAMPLE / "agent.mjs")]}
        done = Engine(folder, images, runs=True).play(scenario, "--output", str(tmp_path / "results.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    [task] = json.loads((tmp_path / "results.json").read_text())["results"][0]["detail"]["tasks"]
    assert task["error"] is None
    assert task["steps_taken"] > 0


def test_an_image_that_ends_at_once_is_named_with_the_last_lines_of_its_log(tmp_path: Path) -> None:
    program = "import sys; print('starting', flush=True); sys.exit('no \\x1b[31mMODEL_KEY')"
    port = free_port()
    done = an_engine(tmp_path, program).play(a_scenario(port))
    assert error_of(done).startswith(
        "error: participant guest (image foreign) ended with exit code 1 before the run began"
    )
    assert done.stderr.splitlines()[-4:-1] == [
        "--- end of the log of participant guest (image foreign) ---",
        "starting",
        "no  [31mMODEL_KEY",
    ]


SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status})
        self.end_headers()
        self.wfile.write({body!r})
HTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""


def test_an_image_that_ignores_its_address_options_is_reported_as_unreachable(tmp_path: Path) -> None:
    port, other = free_ports(2)
    program = SERVER.format(status=200, body=b"{}", port=other)
    line = error_of(an_engine(tmp_path, program).play(a_scenario(port), "--ready-timeout", "0"))
    assert line.startswith(
        "error: participant guest (image foreign) serves no agent card that can be used: "
        f"http://127.0.0.1:{port}: the connection to the agent failed"
    )


def test_a_judge_that_ends_meanwhile_is_blamed_in_the_place_of_the_participant(tmp_path: Path) -> None:
    engine = an_engine(tmp_path, "import time; time.sleep(600)", "import sys; sys.exit('no space left')")
    line = error_of(engine.play(a_scenario(free_port())))
    assert line.startswith("error: the judge (image judge) ended with exit code 1 before the run began")


async def test_an_agent_that_comes_up_late_is_waited_for() -> None:
    port = free_port()
    is_requested = threading.Event()
    card = {"name": "x", "description": "d", "version": "1", "url": "http://x.test/", "protocolVersion": "0.3.0"}
    body = json.dumps(card | {"preferredTransport": "JSONRPC"}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if is_requested.is_set() else 503)
            is_requested.set()
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        finding = await check_agent(f"http://127.0.0.1:{port}", 30)
        server.shutdown()
    assert finding.state == "ok"


SHOW = (
    "import json, os, sys; sys.exit(json.dumps({key: os.environ.get(key) for key in ('MODEL_KEY', 'OTHER', 'MODE')}))"
)


def test_variables_reach_a_foreign_image_under_the_names_it_asks_for(tmp_path: Path) -> None:
    engine = an_engine(tmp_path, SHOW)
    (tmp_path / ".env").write_text("# keys\nFILE_KEY=secret-1\nUNASKED=secret-2\n")
    env = 'env = { MODEL_KEY = "${MY_KEY}", OTHER = "Bearer ${FILE_KEY}", MODE = "fast" }'
    done = engine.play(a_scenario(free_port(), env), keys={"MY_KEY": "secret-3"})
    seen = next(json.loads(line) for line in done.stderr.splitlines() if line.startswith("{"))
    assert seen == {"MODEL_KEY": "secret-3", "OTHER": "Bearer secret-1", "MODE": "fast"}
    assert "secret" not in str(engine.calls())


@pytest.mark.parametrize("keys", [{}, {"MY_KEY": ""}], ids=["not set", "empty"])
def test_a_missing_variable_is_named_before_anything_starts(tmp_path: Path, keys: dict[str, str]) -> None:
    engine = an_engine(tmp_path, SHOW)
    line = error_of(engine.play(a_scenario(free_port(), 'env = { MODEL_KEY = "${MY_KEY}" }'), keys=keys))
    assert "env MODEL_KEY: MY_KEY is not set" in line
    assert engine.calls() == []


IMAGE_USER = 10001
WRITES = """
set -e
mkdir "$1/runs/new"
ln -sfn runs/new "$1/results"
echo more >>"$1/runs/old/steps.jsonl"
echo {} >"$1/runs/old/result.json"
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make folders of other users")
@pytest.mark.parametrize(("owner", "then"), [(1000, 1000), (0, 2000), (IMAGE_USER, IMAGE_USER)])
def test_containers_write_to_an_output_folder_of_any_owner(open_folder: Path, owner: int, then: int) -> None:
    """2000 owns the project: a folder that the engine made for the mount belongs to root and goes to them."""
    folder, script = open_folder / "output", open_folder / "share-output.sh"
    shutil.copy(ROOT / "docker" / "share-output.sh", script)
    os.chown(script, 2000, 2000)
    (folder / "runs" / "old").mkdir(parents=True)
    (folder / "runs" / "old" / "steps.jsonl").touch(mode=0o600)
    (folder / "secret").symlink_to(open_folder / "elsewhere")
    (open_folder / "elsewhere").touch(mode=0o600)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)

    def write() -> int:
        """A run's writing, as the containers' user."""
        command = ["sh", "-c", WRITES, "sh", str(folder)]
        done = subprocess.run(command, user=IMAGE_USER, group=IMAGE_USER, extra_groups=[], cwd="/", check=False)
        return done.returncode

    before = write()
    subprocess.run(["sh", str(script), str(folder), f"{IMAGE_USER}:{IMAGE_USER}"], check=True)
    shutil.rmtree(folder / "runs" / "new", ignore_errors=True)
    after = write()
    result = folder.stat()
    assert (before == 0) is (owner == IMAGE_USER)
    assert after == 0
    assert (result.st_uid, result.st_mode & 0o7777) == (then, 0o2775)
    assert (open_folder / "elsewhere").stat().st_gid == 0
