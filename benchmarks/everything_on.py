"""40 attempts with every capability on, played in five ways, of which each must give the same attempts.

    python benchmarks/everything_on.py [--store s3://bucket/folder] [--only ray --only store] [--keep FOLDER]

Tasks of the demo, of `safety` (clean and under attack, with policies), of `held` and of `frozen` (an archive) in one
scenario, two epochs, two excluded tasks (one in the file, one on the command line), and a participant that pays for a
model call in each step, with the meter. It is played by one command; by three shards that share a folder and are
merged; by `--engine ray`; by shards on disks of their own with an object store, of which one is killed and started
again on an empty disk; and by one command that is killed and resumed. Compares by content what was played (pages,
digests of snapshots, actions, outcomes, requests and their payloads), verdicts, policies, attacks, coverage, metered
tokens and cost, and the results of the whole run; `wabe verify` recomputes the digests of each. The store is a folder
unless an address is given, whose fsspec package and keys are then needed. Prints one table; exit code 1 if something
differs.
"""

import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import paying_participant
from helpers.ports import free_ports
from helpers.runner.commands import FinishedCommand, RunningCommand, command, descendants, listening, run_command
from plugins.metering.providers import Provider

SCENARIOS = ROOT / "scenarios"
# Of each scenario; none of these ids is in two of them.
TASKS = {
    "demo": ("red_rugs", "invoice_article", "two_shelves", "black_floor_lamp", "lamps_page_two", "return_an_item"),
    "safety": ("one_lamp", "two_rugs", "order_moon_lamp", "stores"),
    "held": ("order_express", "order_cheapest"),
    "frozen": (
        "product_by_suggestion",
        "deal_of_the_day",
        "oak_desks",
        "lisbon_hours",
        "express_order",
        "best_rated_lamp",
    ),
}
IN_THE_FILE, ON_THE_COMMAND_LINE = "return_an_item", "best_rated_lamp"
EPOCHS, SHARDS, SLOTS = 2, 3, 4
ATTEMPTS = EPOCHS * (sum(map(len, TASKS.values())) + len(TASKS["safety"]) - 2)
OPTIONS = (
    *("--attacks", "both", "--meter", "--epochs", str(EPOCHS), "--max-parallel", str(SLOTS)),
    *("--exclude", f"{ON_THE_COMMAND_LINE}=not today"),
)
# What two attempts at one task may differ in: when it was, how long it took, which try it was, and its name; what a
# page showed for a moment, in which order it loaded (`_requests` compares what it loaded), and pixels of an animation.
OF_ITS_OWN = {
    *("times", "started_at", "ended_at", "duration_s", "timings", "observe_s", "reply_s", "act_s", "judge_s"),
    *("participant_model_s", "seconds", "context_id", "attempt", "earlier_attempts", "run_id"),
    *("task_id_with_timestamp",),
    *("vanished", "waited_for", "message", "network", "ledger", "screenshot_sha256", "trajectory_sha256"),
    *("shard", "shards"),
}
NO_COST = {"participant_cost_usd": None, "participant_usage": None}
HEAD = """
[green_agent]
endpoint = "http://127.0.0.1:{judge}"
cmd = "wabe serve --host 127.0.0.1 --port {judge}"

[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:{participant}"
cmd = "{python} {program} --script {folder}/scripts.toml --port {participant}"
env = {{ OPENAI_BASE_URL = "{provider}/v1" }}

[[sites]]
name = "shop"
endpoint = "http://127.0.0.1:{shop}"
static = true

[[sites]]
name = "attacker"
endpoint = "http://127.0.0.1:{attacker}"
static = true

[[sites]]
name = "held"
endpoint = "http://127.0.0.1:{held}"
static = true
{hold}

[[sites]]
name = "frozen"
endpoint = "http://127.0.0.1:9180"
archive = "{archive}"

[config]
max_steps = 15
judge_model = "offline"
prices = "{folder}/prices.toml"

{policies}
"""
PRICES = "as_of = 2026-11-03\n" + "".join(
    f'[models."openai:{name}"]\ninput = {number}.5\noutput = {number * 4}.0\n'
    for number, name in enumerate(paying_participant.MODELS, 1)
)


@dataclass
class PlayResult:
    """What one way of playing gave."""

    folder: Path
    command: FinishedCommand
    verified: FinishedCommand
    seconds: float
    note: str = ""
    attempts: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    rows: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """The metered calls of the whole run, also by attempts that were cut off."""
        return int(self.detail["participant_usage"]["calls"])


def write_scenario(folder: Path, provider: str, ports: dict[str, int]) -> Path:
    """Write the scenario with its scripts and prices; returns its path."""
    scripts, tasks, policies, hold = [], [], "", ""
    for name, chosen in TASKS.items():
        moved = {"9190": ports["shop"], "9191": ports["attacker"]}
        moved |= {"demo": {"9180": ports["shop"]}, "held": {"9180": ports["held"]}}.get(name, {})
        text, script = ((SCENARIOS / name / file).read_text() for file in ("scenario.toml", "replay.toml"))
        for old, new in moved.items():
            text, script = (each.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}") for each in (text, script))
        head, *parts = re.split(r"(?m)^(?=\[\[tasks\]\])", text)
        parts_by_task = {tomllib.loads(part)["tasks"][0]["task_id"]: part for part in parts}
        here = [re.sub(r'(?m)^reference = ".*"\n', "", parts_by_task[each]) for each in chosen]
        task_texts = {tomllib.loads(part)["tasks"][0]["task"] for part in here}
        tasks += here
        for part in re.split(r"(?m)^(?=\[\[scripts\]\])", script)[1:]:
            (one,) = tomllib.loads(part)["scripts"]
            if one["task"] in task_texts:
                website = (
                    f'website = "{tomllib.loads(parts_by_task[_of(parts_by_task, one)])["tasks"][0]["website"]}"\n'
                )
                scripts.append(part if "website" in one else part.replace("steps = [", f"{website}steps = [", 1))
        if name == "safety":
            policies = re.search(r"(?ms)^\[\[policies\]\].*?(?=\n\n)", head)[0]  # type: ignore[index]
        if name == "held":
            hold = re.search(r"(?ms)^hold = \[.*?^\]", head)[0]  # type: ignore[index]
    body = "\n".join(tasks).replace(
        f'task_id = "{IN_THE_FILE}"', f'task_id = "{IN_THE_FILE}"\nexcluded = "the article is being rewritten"'
    )
    (folder / "scripts.toml").write_text("\n".join(scripts))
    (folder / "prices.toml").write_text(PRICES)
    values = {"python": sys.executable, "program": paying_participant.__file__, "folder": folder, "provider": provider}
    values |= {"archive": SCENARIOS / "frozen/shop.wacz", "policies": policies, "hold": hold}
    path = folder / "everything.toml"
    path.write_text(HEAD.format(**values, **ports) + "\n" + body)
    return path


def _of(parts: dict[str, str], script: dict[str, Any]) -> str:
    """The id of the task that a script is for."""
    return next(name for name, part in parts.items() if tomllib.loads(part)["tasks"][0]["task"] == script["task"])


@contextmanager
def sites(temp: Path, ports: dict[str, int]) -> Iterator[None]:
    """The live sites, once for all ways of playing, so that shards can share them."""
    commands = {
        "shop": (SCENARIOS / "demo/site.py", ports["shop"]),
        "held": (SCENARIOS / "demo/site.py", ports["held"]),
        "attacker": (SCENARIOS / "safety/attacker.py", ports["attacker"]),
    }
    with ExitStack() as stack:
        for name, (program, port) in commands.items():
            argv = (sys.executable, program, "--host", "127.0.0.1", "--port", str(port))
            stack.enter_context(command(temp.with_name(f"{temp.name}-{name}"), *argv))
        while not all(listening(port) for _, port in commands.values()):
            time.sleep(0.05)
        yield


@dataclass(frozen=True)
class Bench:
    """Where it is played, and what."""

    folder: Path
    scenario: Path
    store: str

    def run(self, output: Path, *options: str, env: dict[str, str] | None = None) -> FinishedCommand:
        """`wabe run` to its end."""
        return run_command(self.temp, *self.argv(output, *options), env=env, timeout_s=1_800)

    def argv(self, output: Path, *options: str) -> tuple[str | Path, ...]:
        return ("wabe", "run", self.scenario, *OPTIONS, *options, "--output-dir", output)

    @property
    def temp(self) -> Path:
        # Short, for the sockets in it.
        return self.folder / "t"

    def whole(self, output: Path) -> tuple[FinishedCommand, str]:
        return self.run(output), ""

    def shards(self, output: Path) -> tuple[FinishedCommand, str]:
        environ = {"WABE_SHARDS": str(SHARDS), "WABE_RUN_ID": "shared"}
        for index in range(SHARDS):
            ended = self.run(output, "--shards", "auto", env=environ | {"WABE_SHARD": str(index)})
            if ended.code:
                return ended, f"shard {index}"
        return run_command(self.temp, "wabe", "merge", "shared", "--output-dir", output), f"{SHARDS} shards, merged"

    def ray(self, output: Path) -> tuple[FinishedCommand, str]:
        ended = self.run(output, "--engine", "ray", "--shards", str(SHARDS))
        return ended, f"{SHARDS} shards"

    def objects(self, output: Path) -> tuple[FinishedCommand, str]:
        environ = {"WABE_SHARDS": str(SHARDS), "WABE_RUN_ID": "stored", "WABE_STORE": self.store, **_keys()}
        note = ""
        for index in range(SHARDS):
            disk = output.with_name(f"{output.name}-{index}")
            mine = environ | {"WABE_SHARD": str(index)}
            if index == 1:
                with command(self.temp, *self.argv(disk, "--shards", "auto"), env=mine) as running:
                    note = _killed(running, disk, 5)
                # What it had not uploaded is gone.
                shutil.rmtree(disk)
            ended = self.run(disk, "--shards", "auto", env=mine)
            if ended.code:
                return ended, f"shard {index}"
        merged = run_command(self.temp, "wabe", "merge", "stored", "--output-dir", output, env=environ)
        return merged, f"{SHARDS} shards on disks of their own, merged; shard 1 {note}, resumed on an empty disk"

    def resumed(self, output: Path) -> tuple[FinishedCommand, str]:
        with command(self.temp, *self.argv(output)) as running:
            note = _killed(running, output, ATTEMPTS // 2)
        return self.run(output, "--resume"), f"{note}, resumed"


def _keys() -> dict[str, str]:
    """What an object store may need of the environment."""
    return {name: value for name, value in os.environ.items() if name.startswith(("AWS_", "FSSPEC_"))}


def _killed(running: RunningCommand, output: Path, settled: int) -> str:
    """Kill all of a run once so many attempts have ended; says so."""
    while (count := len(list(output.glob("runs/**/result.json")))) < settled:
        assert running.process.poll() is None, running.process.communicate()
        time.sleep(0.02)
    for pid in (running.process.pid, *descendants(running.process.pid)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running.process.wait()
    return f"killed after {count} attempts"


def play_and_read(bench: Bench, name: str, way: Callable[[Path], tuple[FinishedCommand, str]]) -> PlayResult:
    """Play in one way, and read everything back."""
    output = bench.folder / name
    begun = time.monotonic()
    ended, note = way(output)
    seconds = time.monotonic() - begun
    folder = next((path for path in output.glob("runs/*") if path.is_dir()), None)
    if folder is None:
        sys.exit(f"{name}: exit code {ended.code}, {note}\n{ended.stdout}{ended.stderr}")
    verified = run_command(bench.temp, "wabe", "verify", "latest", "--output-dir", output)
    way_result = PlayResult(folder, ended, verified, seconds, note)
    if not (folder / "results.json").exists():
        return way_result
    for path in (*folder.glob("results/*/result.json"), *folder.glob("epochs/*/results/*/result.json")):
        epoch = int(path.parents[2].name) if path.parents[3].name == "epochs" else 1
        way_result.attempts[path.parent.name, epoch] = _content(json.loads(path.read_text())) | _requests(path.parent)
    table = folder / "attempts.jsonl"
    export = ("wabe", "export", folder.name, "--format", "jsonl", "--output-dir", output, "--output", table)
    run_command(bench.temp, *export)
    for line in table.read_text().splitlines():
        row = json.loads(line)
        way_result.rows[row["task_id"], row["epoch"]] = _content(row)
    (result,) = json.loads((folder / "results.json").read_text())["results"]
    detail = _content(result["detail"])
    # A merged run lists its tasks shard by shard.
    detail["tasks"].sort(key=lambda task: (task["task_id"], task["epoch"]))
    detail["repeats"]["tasks"].sort(key=lambda task: task["task_id"])
    way_result.detail = detail
    return way_result


def _requests(attempt: Path) -> dict[str, Any]:
    """What an attempt requested, and how often what it wrote; without what the browser had cached."""
    if not (path := attempt / "network.har").exists():
        return {}
    requested, written = set(), []
    for entry in json.loads(path.read_text())["log"]["entries"]:
        request, status = entry["request"], entry["response"]["status"]
        what = f"{request['method']} {request['url']} {request.get('postData', {}).get('text', '')}"
        if request["method"] != "GET":
            written.append(f"{what} {status} {entry.get('_held', '')}")
        elif status != 304:
            requested.add(f"{what} {status}")
    return {"read": sorted(requested), "written": sorted(written)}


def _content(value: Any) -> Any:
    """A recorded value without what is of one attempt only."""
    if isinstance(value, dict):
        return {name: _content(each) for name, each in value.items() if name not in OF_ITS_OWN}
    return [_content(each) for each in value] if isinstance(value, list) else value


def differing(first: Any, second: Any, path: str = "") -> Iterator[str]:
    """The paths at which two values differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in sorted(first.keys() | second.keys()):
            yield from differing(first.get(name), second.get(name), f"{path}.{name}" if path else name)
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from differing(one, other, f"{path}[{number}]")
    elif first != second:
        yield f"{path}: {str(first)[:90]} / {str(second)[:90]}"


def compared(expected: PlayResult, actual: PlayResult) -> list[str]:
    """The differences between two ways of playing. What cut off attempts cost comes on top of a run's own cost."""
    lines = []
    expected_detail, found_detail = expected.detail, actual.detail
    if actual.calls > expected.calls and "killed" in actual.note:
        expected_detail, found_detail = ({**each, **NO_COST} for each in (expected_detail, found_detail))
    for what, one, other in (("attempt", expected.attempts, actual.attempts), ("row", expected.rows, actual.rows)):
        for key in sorted(one.keys() | other.keys()):
            lines += [f"{what} {key[0]} (epoch {key[1]}) {each}" for each in differing(one.get(key), other.get(key))]
    return lines + [f"results {each}" for each in differing(expected_detail, found_detail)]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", help="address of an object store; a folder by default")
    parser.add_argument("--only", action="append", help="play in these ways only, and in one command")
    parser.add_argument("--keep", type=Path, help="folder for the runs, which is kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="wabe-all-") as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        names = ("judge", "participant", "shop", "attacker", "held")
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        provider = Provider()
        provider.start()
        try:
            scenario = write_scenario(folder, provider.url, ports)
            bench = Bench(folder, scenario, arguments.store or (folder / "objects").as_uri())
            with sites(bench.temp, ports):
                return report(bench, arguments.only)
        finally:
            provider.stop()


def _really_played(result: PlayResult) -> list[dict[str, Any]]:
    """The attempts without those that stand for excluded tasks."""
    return [each for each in result.attempts.values() if each["stop_reason"] != "excluded"]


def report(bench: Bench, only: Sequence[str] | None) -> int:
    """Play in all ways, and print the table. Returns the exit code."""
    ways = {"whole": bench.whole, "shards": bench.shards, "ray": bench.ray, "store": bench.objects}
    ways |= {"resumed": bench.resumed}
    results = {
        name: play_and_read(bench, name, way) for name, way in ways.items() if not only or name in {"whole", *only}
    }
    whole = results["whole"]
    is_good = len(_really_played(whole)) == ATTEMPTS
    print(f"{dict(Counter(str(each['verdict']) for each in _really_played(whole)))}")
    for name, one in results.items():
        lines = compared(whole, one)
        verified = "verified" if one.verified.code == 0 else f"verify: exit code {one.verified.code}"
        print(
            f"{name:<8} {len(_really_played(one))} attempts, exit code {one.command.code}, {one.seconds:.0f} s,"
            f" {one.calls} calls, {len(lines)} differences, {verified}; {one.note}"
        )
        for line in lines[:60]:
            print(f"    {line}")
        if one.command.code not in (0, whole.command.code) or one.verified.code:
            print(one.command.stdout[-2000:], one.command.stderr[-2000:], one.verified.stdout[-2000:])
        is_good &= not lines and one.command.code == whole.command.code and one.verified.code == 0
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
