"""Programs over MCP that fail, in a run: each attempt has its end and its cause, and nothing of them goes on."""

import json
import re
import shlex
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from helpers.ports import free_ports
from helpers.runner.commands import FinishedCommand, run_command
from plugins.mcp_agents.playing import AGENT

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]
EPOCHS = 3
FINISH, LOOK = "call('finish', answer='done')", "call('current_page')"
ENDED, FINISHED, FAILED = ("success", "finished"), ("failure", "finished"), ("failure", "participant_error")
# What a program does, how its attempt ends, and what the error says.
FAULTS = {
    "ends at once": ("", FAILED, "never used a tool: it ended with status 0: it printed nothing"),
    "stops after a call": (LOOK, FINISHED, None),
    "ends with status 3": ("print('no key'); sys.exit(3)", FAILED, "never used a tool: it ended with status 3: no key"),
    "is killed at once": ("os.kill(os.getpid(), 9)", FAILED, "never used a tool: it ended by SIGKILL"),
    "crashes": (f"{LOOK}; 1 / 0", FAILED, "ended with status 1: .*ZeroDivisionError"),
    "is killed": (f"{LOOK}; os.kill(os.getpid(), 9)", FAILED, "ended by SIGKILL"),
    "aborts": (f"{LOOK}; os.abort()", FAILED, "ended by SIGABRT"),
    "never connects": ("time.sleep(900)", FAILED, "did not connect to the MCP server within 60 s"),
    "hangs": (f"{LOOK}; time.sleep(900)", FAILED, "no reply within"),
    "ignores SIGTERM": (f"signal.signal(15, signal.SIG_IGN); {LOOK}; time.sleep(900)", FAILED, "no reply within"),
    "is stopped": (f"{LOOK}; os.kill(os.getpid(), signal.SIGSTOP)", FAILED, "no reply within"),
    "kills its supervisor": (f"{LOOK}; os.kill(os.getppid(), 9); time.sleep(900)", FAILED, "ended by SIGKILL"),
    "leaves a child": (f"os.fork() or (os.setsid(), time.sleep(900)); {FINISH}", ENDED, None),
    "leaves 30 children": (
        f"all(os.fork() for _ in range(30)) or (os.setsid(), time.sleep(900)); {FINISH}",
        ENDED,
        None,
    ),
    "prints 50 MB": (f"[print('y' * 9_999) for _ in range(5_000)]; {FINISH}", ENDED, None),
    "prints no lines": (f"os.write(1, bytes(range(128, 256)) * 40_000); {FINISH}", ENDED, None),
    "never finishes": ("[call('browser_press_key', key='Tab') for _ in range(900)]", ("failure", "max_steps"), None),
    "goes on after the end": (f"{FINISH}; [call('browser_press_key', key='Tab') for _ in range(900)]", ENDED, None),
    "guesses a token": ("os.environ['WABE_MCP_TOKEN'] = 'x'; tools()", FAILED, "never used a tool: .*HTTP Error 401"),
    "speaks something else": ("tell(b'GIVE PAGE')", FAILED, "never used a tool: .*HTTP Error 400"),
    "says nonsense before": (
        f"[tried(tell, b) for b in (b'[', b'{{}}', b'null', b'1' * 9_999)]; {FINISH}",
        ENDED,
        None,
    ),
    "sends 30 MB": (f"tried(call, 'browser_type', text='x' * 30_000_000); {FINISH}", ENDED, None),
    "calls 40 at once": (
        "p = futures.ThreadPoolExecutor(40); [p.submit(call, 'browser_press_key', key='Tab') for _ in range(40)]",
        ("failure", "max_steps"),
        None,
    ),
    "gives up waiting": (
        "socket.setdefaulttimeout(0.1); [tried(call, 'browser_press_key', key='Tab') for _ in range(3)];"
        f" socket.setdefaulttimeout(60); {FINISH}",
        ENDED,
        None,
    ),
    "calls no known tool": (f"call('fly'); call('browser_click', ref=[]); {FINISH}", ENDED, None),
    "finishes wrongly first": (f"call('finish', result='done'); {FINISH}", ENDED, None),
    "deletes its folder": (f"__import__('shutil').rmtree(os.getcwd()); {FINISH}", ENDED, None),
}
# The parent of the supervisor, which is the program's parent.
KILLS_PARTICIPANT = (
    "call('browser_press_key', key='Tab'); os.fork() or (os.setsid(), time.sleep(900));"
    " os.kill(int(Path(f'/proc/{os.getppid()}/stat').read_text().rpartition(')')[2].split()[1]), 9); time.sleep(900)"
)
# Plays last, and sees whether a program of an attempt that ended before goes on.
LAST = "looks for others"
PROGRAM = """
import os, signal, socket, sys, time, urllib.request
from concurrent import futures
from pathlib import Path
sys.path.insert(0, {helpers!r})
from program import *

def tell(body):
    head = {{"Authorization": "Bearer " + os.environ["WABE_MCP_TOKEN"], "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream"}}
    return urllib.request.urlopen(urllib.request.Request(os.environ["WABE_MCP_URL"], body, head)).read()

def tried(work, *given, **more):
    try:
        work(*given, **more)
    except OSError:
        pass

def others():
    found = {{}}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        tried(lambda: found.update({{path.parent.name: path.read_bytes().decode()}}))
    return {{(pid, line) for pid, line in found.items() if f"\\0{{__file__}}\\0" in line and {last!r} not in line}}

code = {programs!r}[sys.argv[1].partition("\\n")[0]]
exec(code)
"""
WAITS = "[time.sleep(1) for _ in range(40) if old & others()]; call('browser_press_key', key='Tab')"
LOOKS = f"{LOOK}; old = others(); {'; '.join([WAITS] * 3)}; call('finish', answer=str(old & others()))"
SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:{judge}"
cmd = "wabe serve --port {judge}"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9"
[[sites]]
name = "shop"
endpoint = "http://127.0.0.1:{site}"
static = true
cmd = "python -m http.server {site} --bind 127.0.0.1 --directory {{scenario_dir}}/site"
[config]
judge_model = "offline"
max_steps = 5
reply_timeout_s = 65
max_parallel = 6
"""
TASK = r"""
[[tasks]]
task_id = "{task_id}"
website = "http://127.0.0.1:{site}/"
task = "{task}"
checks = [{{ kind = "answer", pattern = '^(done|set\(\))$' }}]
"""


End = tuple[str, str, str | None]


def play(folder: Path, programs: dict[str, str], epochs: int) -> tuple[FinishedCommand, dict[str, list[End]]]:
    """One run with a task for each program. Returns the ends of their attempts as well."""
    judge, site = free_ports(2)
    (folder / "site").mkdir()
    (folder / "site" / "index.html").write_text("<title>Shop</title><h1>Shop</h1>")
    program = folder / "faulty.py"
    program.write_text(PROGRAM.format(helpers=str(AGENT.parent), programs=programs, last=LAST))
    tasks = [TASK.format(task_id=name.replace(" ", "_"), task=name, site=site) for name in programs]
    scenario = folder / "scenario.toml"
    scenario.write_text("".join([SCENARIO.format(judge=judge, site=site), *tasks]))
    agent = f"mcp:{shlex.join([sys.executable, str(program)])} {{instruction}}"
    words = ("--agent", agent, "--epochs", str(epochs), "--output-dir", folder / "out")
    completed = run_command(folder / "tmp", "wabe", "run", scenario, *words, timeout_s=1_500)
    ends = defaultdict(list)
    for path in (folder / "out").glob("runs/*/**/result.json"):
        result = json.loads(path.read_text())
        ends[result["task"]].append((result["verdict"], result["stop_reason"], result["error"]))
    return completed, ends


@pytest.mark.timeout(1_800)
def test_a_program_that_fails_ends_with_its_cause_and_leaves_nothing(tmp_path: Path) -> None:
    programs = {name: code for name, (code, *_) in FAULTS.items()} | {LAST: LOOKS}
    completed, ends = play(tmp_path, programs, EPOCHS)
    print(*(f"{name}: {ends[name]}" for name in programs), sep="\n")
    wrong = {
        name: end
        for name, (_, kind, said) in (FAULTS | {LAST: ("", ENDED, None)}).items()
        for end in ends[name]
        if end[:2] != kind or not re.search(said or "^$", end[2] or "")
    }
    assert wrong == {}
    assert {name: len(found) for name, found in ends.items()} == dict.fromkeys(programs, EPOCHS)
    assert (completed.code, completed.left_processes, completed.left_files) == (0, {}, [])


def test_a_participant_that_is_killed_takes_its_programs_with_it(tmp_path: Path) -> None:
    completed, ends = play(tmp_path, {"kills": KILLS_PARTICIPANT}, 1)
    assert [end[:2] for end in ends["kills"]] == [FAILED]
    assert (completed.code, completed.left_processes) == (0, {})
