"""Measures how well a recorded website replaces the live one: the figures of docs/benchmarks.md.

    wabe apps install all
    python benchmarks/frozen sites [--parts hard walks verdicts] [--apps NAME…] [--seeds N] [--json FILE]

hard: the site of hard cases over HTTPS (`tests/helpers/frozen`). walks: the applications of `scenarios/apps`, and the
single-page application `hire`. Each is recorded while the reference scripts are played twice, then stopped; listeners
on its ports count further connections. Then the recorded walks are replayed (three times), shuffled ones (the recorded
actions in a random order), and walks that were not recorded (wrong scripts, and random clicks), each of which was
played live before. verdicts: `wabe sites record`, then the right and wrong scripts of the applications with and without
`--archive`. A verdict that differs is a problem unless an answer was graded uncertain.

silent: steps of walks that were not recorded, which differ from the live site although no step so far was uncertain or
had a miss. Steps that also differ between two live visits are not compared, and neither is anything after the first
difference of a walk. false flags: steps of shuffled walks that equal the live site, but are graded uncertain.

Exit code 1 if a demand is not met.
"""

import argparse
import asyncio
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("src", "tests", "benchmarks")]

import httpx
import psutil

from apps import installed, scenario_copy, watched
from apps import play as play_apps
from helpers.browser.sessions import with_flags
from helpers.network.served_sites import Addresses, Authority
from judge.browser.chromium import BrowserSettings
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import BrowserPool, browser_pool
from judge.config import RunConfig
from judge.network.policy import NetworkPolicy
from judge.plugins.frozen.seam import FORMAT, WaczArchive
from judge.records.sites import origin_of
from judge.records.tasks import Task
from judge.scenario.logins import with_logins
from judge.scenario.toml import load_scenario
from participants.base import Observation, Reply
from participants.random import RandomAgent
from participants.replay import Script, find_script, load_book
from plugins.frozen import archives
from plugins.frozen.hard.case import Case, Walk
from plugins.frozen.hard.playing import MASKS, Decide, Look, play, scripted
from plugins.frozen.hard.site import BEYOND, CASES, addresses, ports_of, recorded, running, shuffled, stopped
from plugins.frozen.hard.walks import StepFinding, Walker, policy_for, task_for
from shared.models import Action
from shared.replies import FINISH
from shared.settings import Settings
from shared.snapshot import parse_snapshot

Walks = Sequence[tuple[Case, Walk]]
Opened = AbstractAsyncContextManager[PlaywrightBrowser]
LIMIT = 25
# The application that comes with WABE.
BUNDLED = "hire"
DEMANDS = {
    "connections": 0,
    "repeated": 0.98,
    "as_recorded": 0.95,
    "missed": 0,
    "uncertain": 0,
    "silent": 0,
    "false": 0.05,
}


@dataclass
class Figures:
    """The counts of one site, or of all."""

    connections: int = 0
    steps: int = 0
    repeated: int = 0
    as_recorded: int = 0
    cases: int = 0
    right: int = 0
    shuffled_cases: int = 0
    shuffled_right: int = 0
    requests: int = 0
    missed: int = 0
    uncertain: int = 0
    compared: int = 0
    flagged: int = 0
    unsettled: int = 0
    shuffled_steps: int = 0
    shuffled_compared: int = 0
    false: int = 0
    live_s: list[float] = field(default_factory=list)
    replay_s: list[float] = field(default_factory=list)
    archive_kb: int = 0
    silent: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    false_flags: list[str] = field(default_factory=list)

    def add_replays(self, name: str, first: Sequence[Look], replays: Sequence[Sequence[Look]]) -> None:
        """A recorded walk: the recording and its replays."""
        for place, look in enumerate(first):
            displayed = [each[place].shows if place < len(each) else None for each in replays]
            self.steps += 1
            self.repeated += len(set(displayed)) == 1
            self.as_recorded += displayed[0] == look.shows
            if len(set(displayed)) > 1:
                self.differences.append(f"{name}, step {place}, {look.action}: the replays differ")
            elif displayed[0] != look.shows:
                difference = (
                    _difference(look.shows, replays[0][place]) if place < len(replays[0]) else "the replay had ended"
                )
                self.differences.append(f"{name}, step {place}, {look.action}: not as recorded: {difference}")
        for entry in (entry for each in replays for look in each for entry in look.entries):
            self.requests += 1
            if entry.miss == "decisive":
                self.missed += 1
                self.misses.append(f"{name}: {entry.method} {entry.url} ({entry.kind}; {', '.join(entry.differs)})")
        for look in (look for each in replays for look in each if look.is_uncertain):
            self.uncertain += sum(entry.grade == "uncertain" for entry in look.entries)
            self.false_flags.append(f"{name} as recorded, {look.action}: {_uncertain(look)}")

    def add_cases(
        self, count: int, again: Sequence[Sequence[StepFinding]], mixed: Sequence[Sequence[StepFinding]]
    ) -> None:
        """The hard cases that worked without the site, on recorded and on shuffled walks."""
        # Without a replay nothing was shown.
        self.cases, self.shuffled_cases = count if again else 0, count
        for walks, kind in ((again, "right"), (mixed, "shuffled_right")):
            if not walks:
                continue
            bad = [each for one in walks for each in one if each.why]
            setattr(self, kind, count - len({each.case for each in bad}))
            self.differences += [f"{each.case}, {each.look.action} ({kind}): {each.why}" for each in bad]
        steps = [each for one in mixed for each in one]
        self.shuffled_steps += len(steps)
        self.shuffled_compared += sum(not each.why for each in steps)
        flagged = [each for each in steps if not each.why and each.look.is_uncertain]
        self.false += len(flagged)
        self.false_flags += [f"{each.case}, {each.look.action}: {_uncertain(each.look)}" for each in flagged]

    def add_unrecorded(self, name: str, live: Sequence[Sequence[Look]], frozen: Sequence[Look]) -> None:
        """A walk that was not recorded, live once or twice, and on the archive."""
        is_flagged = False
        for place, look in enumerate(frozen):
            is_flagged |= look.is_flagged
            displayed = [each[place].shows if place < len(each) else None for each in live]
            if len(set(displayed)) > 1:
                self.unsettled += 1
                return
            self.compared += 1
            self.flagged += is_flagged
            if look.shows != displayed[0]:
                if not is_flagged:
                    self.silent.append(f"{name}, step {place}, {look.action}: {_difference(displayed[0], look)}")
                return

    def add_shuffled(self, name: str, live: Sequence[Look], frozen: Sequence[Look]) -> None:
        """A walk of recorded actions in another order."""
        for place, look in enumerate(frozen):
            self.shuffled_steps += 1
            is_equal = place < len(live) and look.shows == live[place].shows
            self.shuffled_compared += is_equal
            self.false += is_equal and look.is_uncertain
            if not is_equal:
                return


def _uncertain(look: Look) -> str:
    """The requests of a step that are graded uncertain."""
    uncertain = [entry for entry in look.entries if entry.grade == "uncertain"]
    return ", ".join(f"{entry.method} {entry.url} ({'; '.join(entry.differs)})" for entry in uncertain)


def _difference(displayed: tuple[str, str] | None, look: Look) -> str:
    if displayed is None:
        return "the live walk had ended"
    if displayed[0] != look.url:
        return f"at {look.url}, live at {displayed[0]}"
    pairs = zip(displayed[1].splitlines(), look.snapshot.splitlines(), strict=False)
    return next((f"{mine.strip()!r}, live {its.strip()!r}" for its, mine in pairs if its != mine), "another length")


# Walks


def at_random(seed: int) -> Decide:
    """Clicks and types at random; the same seed and pages give the same actions."""
    agents: list[RandomAgent] = []

    async def decide(observation: Observation) -> Reply:
        agents[:] = agents or [RandomAgent(seed, observation)]
        return await agents[0](observation)

    return decide


def in_other_order(scripts: Sequence[Script], seed: int) -> Decide:
    """The actions of these scripts that the page offers, in a random order, each once."""
    dice = random.Random(seed)
    left = [step for script in scripts for step in script.steps if step.tool not in (None, FINISH, "browser_wait_for")]

    async def decide(observation: Observation) -> Reply:
        page = parse_snapshot(observation.page.snapshot)
        dice.shuffle(left)
        for place, step in enumerate(left):
            one = Script(task="one step", steps=(step.model_copy(update={"after": None, "repeat": False}),))
            offered = {(node.role, node.name) for node in page.nodes if node.ref}
            if all((each.role, each.name) in offered for each in step.elements) and step.elements:
                del left[place]
                return await scripted(one)(observation)
        return Action(tool=FINISH, params={"answer": "Nothing is left."})

    return decide


# Browsers


@dataclass
class Ground:
    """A site: its address, how it is started, and what is played on it."""

    name: str
    pool: BrowserPool
    policy: NetworkPolicy
    ports: tuple[int, ...]
    started: Callable[[], Any]
    """A context manager that runs the site from its initial state."""
    is_static: bool
    walks: tuple[tuple[Task, Script], ...] = ()
    wrong: tuple[tuple[Task, Script], ...] = ()

    async def live(self, task: Task, decide: Decide, limit: int = LIMIT) -> list[Look]:
        async with self.pool.browser(self.policy) as browser:
            return await play(browser, task, decide, limit=limit)

    async def record(
        self, recorder: archives.Recorder, task: Task, decide: Decide, *, is_again: bool = False
    ) -> list[Look]:
        async with archives.recording(self.pool, self.policy, recorder, task, is_again=is_again) as browser:
            return await play(browser, task, decide, limit=LIMIT)

    async def frozen(self, archive: Any, task: Task, decide: Decide, limit: int = LIMIT) -> list[Look]:
        async with archives.replaying(self.pool, self.policy, archive, task) as (browser, take):
            return await play(browser, task, decide, limit=limit, take=take, clock_ms=archive.clock_ms)


@contextmanager
def fresh(ground: Ground, is_running: list[bool]) -> Iterator[None]:
    """The site in its initial state; a static one is already running."""
    if ground.is_static and is_running:
        yield
        return
    with ground.started():
        yield


@dataclass
class HardSite:
    """The site of hard cases: each walk is an attempt of its own."""

    places: Addresses
    policy: NetworkPolicy

    async def live(self, pool: BrowserPool, walks: Walks) -> list[list[StepFinding]]:
        return [await self._walked(pool.browser(self.policy), one) for one in walks]

    async def recorded(self, pool: BrowserPool, walks: Walks, recorder: archives.Recorder) -> list[list[StepFinding]]:
        seen = []
        for one in walks:
            task = task_for(self.places, one[0].path)
            seen.append(await self._walked(archives.recording(pool, self.policy, recorder, task), one))
            await self._walked(archives.recording(pool, self.policy, recorder, task, is_again=True), one)
        return seen

    async def replayed(self, pool: BrowserPool, walks: Walks, archive: WaczArchive) -> list[list[StepFinding]]:
        seen = []
        for case, steps in walks:
            task = task_for(self.places, case.path)
            async with archives.replaying(pool, self.policy, archive, task) as (browser, take):
                walker = Walker(browser, self.places, take, archive.clock_ms)
                seen.append(await walker.walk([(case, steps)]))
        return seen

    async def _walked(
        self, opened: AbstractAsyncContextManager[PlaywrightBrowser], one: tuple[Case, Walk]
    ) -> list[StepFinding]:
        async with opened as browser:
            return await Walker(browser, self.places).walk([one])


async def hard_part(options: argparse.Namespace, output: Path) -> Figures:
    """The hard cases."""
    path, target = output / "hard.wacz", output / "hard.json"
    if not (options.again and target.is_file()):
        with tempfile.TemporaryDirectory(prefix="wt") as folder:
            (await hard_visited(options, Path(folder), path)).saved(target)
    visits, archive = HardVisits.read(target), FORMAT.open(path)
    figures = Figures(live_s=visits.live_s, archive_kb=round(path.stat().st_size / 1000))
    if options.only_live:
        return figures
    places = Addresses(*visits.places)
    site, cases = HardSite(places, policy_for(places)), chosen_cases(options)
    with stopped(ports_of(places)) as wire:
        async with browser_pool(browser_settings()) as pool:
            replays = [await site.replayed(pool, recorded(cases), archive) for _ in range(options.replays)]
            mixed = [await site.replayed(pool, shuffled(cases), archive) for _ in range(options.shuffles)]
            for case in (*cases, *(() if options.cases else BEYOND)):
                for seed in map(str, range(options.seeds)):
                    task = task_for(places, case.path)
                    async with archives.replaying(pool, site.policy, archive, task) as (browser, take):
                        more = {"limit": options.steps, "take": take, "clock_ms": archive.clock_ms}
                        visit = await play(browser, task, at_random(int(seed)), **more)
                    figures.add_unrecorded(f"{case.name}, seed {seed}", visits.others[case.name][seed], visit)
    for place, first in enumerate(visits.firsts_of(cases) if replays else ()):
        figures.add_replays(recorded(cases)[place][0].name, first, [looks_of(each[place]) for each in replays])
    figures.replay_s = [seen.look.seconds for one in replays[:1] for walk in one for seen in walk]
    if mixed:
        figures.add_cases(
            len(cases), [one for each in replays[:1] for one in each], [one for each in mixed for one in each]
        )
    figures.connections = wire.touched
    return figures


async def hard_visited(options: argparse.Namespace, folder: Path, path: Path) -> "HardVisits":
    """Record the hard cases into an archive, and see what they show on walks that are not recorded."""
    authority, places, cases = Authority.made_in(folder), addresses(), chosen_cases(options)
    plain = browser_settings()
    flag = f"--ignore-certificate-errors-spki-list={authority.spki}"
    trusting = plain.model_copy(update={"found": plain.found.model_copy(update={"path": with_flags(folder, flag)})})
    site, recorder = HardSite(places, policy_for(places)), archives.Recorder()
    os.environ["SSL_CERT_FILE"] = str(authority.ca)
    visits = HardVisits((places.own, places.other, places.closed))
    with running(places, authority):
        async with browser_pool(trusting) as pool:
            plain_walks = await site.live(pool, recorded(cases))
            for case in (*cases, *(() if options.cases else BEYOND)):
                task, seeds = task_for(places, case.path), visits.others.setdefault(case.name, {})
                for seed in [*range(options.seeds)] * 2:
                    async with pool.browser(site.policy) as browser:
                        looks = await play(browser, task, at_random(seed), limit=options.steps)
                    seeds.setdefault(str(seed), []).append(looks)
        async with browser_pool(plain) as pool:
            firsts = await site.recorded(pool, recorded(cases), recorder)
    for (case, _), first in zip(recorded(cases), firsts, strict=True):
        visits.firsts.setdefault(case.name, []).append(looks_of(first))
    visits.live_s = [seen.look.seconds for one in plain_walks for seen in one]
    recorder.saved(path)
    return visits


@dataclass
class HardVisits:
    """What was seen on the hard cases while they ran, kept beside their archive."""

    places: tuple[str, str, str]
    live_s: list[float] = field(default_factory=list)
    firsts: dict[str, list[list[Look]]] = field(default_factory=dict)
    """By case, a list for each recorded walk."""
    others: dict[str, dict[str, list[list[Look]]]] = field(default_factory=dict)
    """By case and seed: two visits."""

    def saved(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "HardVisits":
        document = json.loads(path.read_text(encoding="utf-8"))
        firsts = {case: [_looks(one) for one in each] for case, each in document["firsts"].items()}
        others = {
            case: {seed: [_looks(one) for one in twice] for seed, twice in each.items()}
            for case, each in document["others"].items()
        }
        return cls(tuple(document["places"]), document["live_s"], firsts, others)

    def firsts_of(self, cases: Iterable[Case]) -> list[list[Look]]:
        return [one for case in cases for one in self.firsts[case.name]]


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    return [case for case in CASES if not options.cases or case.name in options.cases]


def looks_of(findings: Iterable[StepFinding]) -> list[Look]:
    return [each.look for each in findings]


def browser_settings() -> BrowserSettings:
    return BrowserSettings.from_config(RunConfig(), Settings.from_environ())


@dataclass
class Visits:
    """What was seen on an application itself. Kept beside its archive, so that the archive can be replayed again."""

    live_s: list[float] = field(default_factory=list)
    firsts: list[list[Look]] = field(default_factory=list)
    others: list[list[list[Look]]] = field(default_factory=list)
    """Twice each walk that is not recorded."""
    mixes: list[list[Look]] = field(default_factory=list)

    def saved(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Visits":
        document = json.loads(path.read_text(encoding="utf-8"))
        walks = {name: [_looks(one) for one in document[name]] for name in ("firsts", "mixes")}
        return cls(document["live_s"], others=[[_looks(one) for one in each] for each in document["others"]], **walks)


def _looks(rows: Iterable[dict[str, Any]]) -> list[Look]:
    return [Look(**{**one, "entries": ()}) for one in rows]


Others = Sequence[tuple[str, Task, Callable[[], Decide]]]
Mixes = Sequence[tuple[Task, Callable[[], Decide]]]


def other_walks(ground: Ground, options: argparse.Namespace) -> tuple[Others, Mixes]:
    """The walks of an application that are not recorded, and recorded actions in another order."""
    others: list[tuple[str, Task, Callable[[], Decide]]] = [
        (f"wrong script of {task.task_id}", task, lambda script=script: scripted(script))
        for task, script in ground.wrong
    ]
    starts = list({task.website: task for task, _ in ground.walks}.values())
    for number in range(options.seeds):
        for task in starts:
            others.append((f"{task.website}, seed {number}", task, lambda number=number: at_random(number)))
    mixes = [
        (task, lambda task=task, seed=seed: in_other_order(scripts_at(ground, task.website), seed))
        for task in starts
        for seed in range(options.mixes)
    ]
    return others, mixes


async def visited(ground: Ground, options: argparse.Namespace, path: Path) -> Visits:
    """Record an application into an archive, and see what it shows on every walk."""
    others, mixes = other_walks(ground, options)
    recorder, visits = archives.Recorder(), Visits()
    with ExitStack() as stack:
        is_running: list[bool] = []
        if ground.is_static:
            stack.enter_context(ground.started())
            is_running.append(True)
        for task, script in ground.walks:
            with fresh(ground, is_running):
                visits.live_s += [look.seconds for look in await ground.live(task, scripted(script))]
            with fresh(ground, is_running):
                visits.firsts.append(await ground.record(recorder, task, scripted(script)))
            with fresh(ground, is_running):
                await ground.record(recorder, task, scripted(script), is_again=True)
        for _, task, make in others:
            twice = []
            for _ in range(2):
                with fresh(ground, is_running):
                    twice.append(await ground.live(task, make(), options.steps))
            visits.others.append(twice)
        for task, make in mixes:
            with fresh(ground, is_running):
                visits.mixes.append(await ground.live(task, make(), options.steps))
    recorder.saved(path)
    return visits


async def app_part(ground: Ground, options: argparse.Namespace, output: Path) -> Figures:
    """One application."""
    path, target = output / f"{ground.name}.wacz", output / f"{ground.name}.json"
    if not (options.again and target.is_file()):
        (await visited(ground, options, path)).saved(target)
    visits, archive = Visits.read(target), FORMAT.open(path)
    others, mixes = other_walks(ground, options)
    figures = Figures(live_s=visits.live_s, archive_kb=round(path.stat().st_size / 1000))
    if options.only_live:
        return figures
    with stopped(ground.ports) as wire:
        for (task, script), first in zip(ground.walks, visits.firsts, strict=True):
            replays = [await ground.frozen(archive, task, scripted(script)) for _ in range(options.replays)]
            figures.add_replays(task.task_id, first, replays)
            figures.replay_s += [look.seconds for look in replays[0]]
        for (name, task, make), twice in zip(others, visits.others, strict=True):
            figures.add_unrecorded(name, twice, await ground.frozen(archive, task, make(), options.steps))
        for (task, make), once in zip(mixes, visits.mixes, strict=True):
            visit = await ground.frozen(archive, task, make(), options.steps)
            figures.add_shuffled(task.website, once, visit)
    figures.connections = wire.touched
    return figures


def scripts_at(ground: Ground, website: str) -> list[Script]:
    return [script for task, script in ground.walks if task.website == website]


def sources(names: Sequence[str]) -> dict[str, Path]:
    """The scenario of each of these applications; without names, of all. Raises `WabeError` for one that is missing."""
    folder = Settings.from_environ().scenarios_folder
    others = [name for name in names if name != BUNDLED]
    scenarios = dict.fromkeys(installed(others) if others or not names else (), folder / "apps" / "scenario.toml")
    return scenarios | ({BUNDLED: folder / BUNDLED / "scenario.toml"} if BUNDLED in names or not names else {})


@asynccontextmanager
async def grounds(scenarios: Mapping[str, Path]) -> AsyncIterator[Iterator[Ground]]:
    """These applications, with one pool of browsers."""

    def of(pool: BrowserPool) -> Iterator[Ground]:
        for name, source in scenarios.items():
            yield ground_of(name, source, pool)

    async with browser_pool(browser_settings()) as pool:
        yield of(pool)


def ground_of(name: str, source: Path, pool: BrowserPool) -> Ground:
    """An application of a scenario that has a right and a wrong script for each task."""
    scenario = load_scenario(source)
    right, wrong = (load_book([source.parent / name]) for name in ("replay.toml", "wrong.toml"))
    (site,) = (site for site in scenario.sites if site.name == name)
    tasks = with_logins(scenario, scenario.tasks, Settings.from_environ().environ)
    own = [task for task in tasks if origin_of(task.website) == origin_of(site.endpoint)]
    cmd = (site.cmd or "").replace("{scenario_dir}", str(source.parent))
    return Ground(
        name,
        pool,
        NetworkPolicy.for_websites([site.endpoint]),
        (int(site.endpoint.rpartition(":")[2]),),
        lambda: served(cmd, site.endpoint),
        site.static,
        tuple((task, script) for task in own if (script := find_script(right, task.task, task.website))),
        tuple((task, script) for task in own if (script := find_script(wrong, task.task, task.website))),
    )


@contextmanager
def served(cmd: str, address: str) -> Iterator[None]:
    """An application from its initial state."""
    with tempfile.TemporaryDirectory() as data_dir:
        cmd = cmd.replace("{port}", address.rpartition(":")[2]).replace("{data_dir}", data_dir)
        command = [sys.executable, *shlex.split(cmd.removeprefix("python "))]
        process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    httpx.get(address, timeout=5, trust_env=False)
                    break
                except httpx.HTTPError:
                    if time.monotonic() > until or process.poll() is not None:
                        raise SystemExit(f"does not start: {cmd}") from None
                    time.sleep(0.05)
            yield
        finally:
            with suppress(psutil.NoSuchProcess):
                for one in [*process.children(recursive=True), process]:
                    one.kill()
            process.wait()


# Verdicts


class Verdict(NamedTuple):
    """How an attempt was judged. `coverage` is `None` on a live site."""

    verdict: str
    coverage: str | None

    @classmethod
    def read(cls, path: Path) -> "Verdict":
        result = json.loads(path.read_text(encoding="utf-8"))
        return cls(result["verdict"], result.get("coverage"))


@dataclass
class Verdicts:
    """Verdicts that are equal live and frozen, of how many, those that are not, and addresses abroad."""

    equal: int = 0
    total: int = 0
    flagged: list[str] = field(default_factory=list)
    """They differ, and the frozen attempt had an uncertain answer."""
    silent: list[str] = field(default_factory=list)
    abroad: set[str] = field(default_factory=set)

    def add(self, name: str, live: Verdict | None, frozen: Verdict | None) -> None:
        self.total += 1
        if live is not None and frozen is not None and live.verdict == frozen.verdict:
            self.equal += 1
            return
        is_flagged = frozen is not None and frozen.coverage == "uncertain"
        (self.flagged if is_flagged else self.silent).append(f"{name}: live {live}, frozen {frozen}")

    def lines(self) -> list[str]:
        return [
            f"verdicts: {self.equal} of {self.total} equal",
            *(f"differs, uncertain: {each}" for each in self.flagged),
            *(f"DIFFERS: {each}" for each in self.silent),
        ]


def verdicts_part(scenarios: Mapping[str, Path], output: Path, *, is_again: bool) -> Verdicts:
    """The right and wrong scripts of each application, live and on an archive of the right ones."""
    collected = Verdicts()
    for name, source in scenarios.items():
        scenario = load_scenario(source)
        (site,) = (site for site in scenario.sites if site.name == name)
        tasks = [each.task_id for each in scenario.tasks if origin_of(each.website) == origin_of(site.endpoint)]
        archive = output / f"{name}-verdicts.wacz"
        if not (is_again and archive.is_file()):
            recorded_by_command(source, tasks, archive)
        for script in ("right", "wrong"):
            judged = []
            for more in ((), ("--archive", str(archive))):
                folder = output / f"{name}-{script}-{'frozen' if more else 'live'}"
                run, gone = play_apps(source, tasks, script, "page-time", folder, more)
                collected.abroad |= gone
                judged.append({path.parent.name: Verdict.read(path) for path in run.glob("results/*/result.json")})
            for task in tasks:
                live, frozen = (each.get(task) for each in judged)
                collected.add(f"{task} ({script})", live, frozen)
            print(f"{name}, {script}: {collected.lines()[0]} so far", file=sys.stderr, flush=True)
    return collected


def recorded_by_command(source: Path, tasks: Sequence[str], archive: Path) -> Path:
    """An archive of these tasks, played by their right scripts, also if the scenario names none as their references."""
    with tempfile.TemporaryDirectory(prefix="wabe-frozen-") as folder:
        copy = scenario_copy(source, Path(folder), "right", "page-time")
        shutil.copyfile(source.parent / "replay.toml", copy.parent / "replay.toml")
        text = copy.read_text(encoding="utf-8")
        if "\nreference = " not in text:
            copy.write_text(text.replace("[[tasks]]\n", '[[tasks]]\nreference = "replay.toml"\n'), encoding="utf-8")
        chosen = [word for task in tasks for word in ("--task", task)]
        subprocess.run(["wabe", "sites", "record", str(copy), "-o", str(archive), *chosen], check=True)
    return archive


# The table


def summed(each: Iterable[Figures]) -> Figures:
    """The sum of several."""
    total = Figures()
    for one in each:
        for name, value in vars(one).items():
            setattr(total, name, getattr(total, name) + value)
    return total


def share(part: int, whole: int) -> str:
    return f"{part}/{whole}" + (f" ({part / whole:.1%})" if whole else "")


def table(sites: dict[str, Figures]) -> str:
    """The figures as a Markdown table, one line per site."""
    heads = (
        "site|archive kB|connections|replays equal|as recorded|cases|cases shuffled|decisive misses|uncertain"
        "|not recorded: compared, flagged, unsettled|silent|false flags|time per step, replay ÷ live"
    )
    lines = [f"| {' | '.join(heads.split('|'))} |", f"|{'---|' * len(heads.split('|'))}"]
    for name, one in {**sites, "all": summed(sites.values())}.items():
        live, replay = (statistics.median(times) if times else 0.0 for times in (one.live_s, one.replay_s))
        means = [statistics.mean(times) if times else 0.0 for times in (one.live_s, one.replay_s)]
        cells = [
            *(name, str(one.archive_kb), str(one.connections)),
            *(share(one.repeated, one.steps), share(one.as_recorded, one.steps)),
            *(f"{one.right}/{one.cases}", f"{one.shuffled_right}/{one.shuffled_cases}"),
            share(one.missed, one.requests),
            share(one.uncertain, one.requests),
            f"{one.compared}, {one.flagged}, {one.unsettled}",
            str(len(one.silent)),
            share(one.false, one.shuffled_steps),
            f"{replay / live:.2f} (mean {means[1] / means[0]:.2f}; {replay:.2f} s, {live:.2f} s)" if live else "-",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def problems(total: Figures) -> list[str]:
    """The demands that are not met."""
    checks = {
        "connections to stopped sites": total.connections > DEMANDS["connections"],
        "replays differ": total.repeated < DEMANDS["repeated"] * total.steps,
        "not as recorded": total.as_recorded < DEMANDS["as_recorded"] * total.steps,
        "hard cases failed": total.right < total.cases or total.shuffled_right < total.shuffled_cases,
        "decisive misses on recorded walks": total.missed > DEMANDS["missed"] * total.requests,
        "uncertain on recorded walks": total.uncertain > DEMANDS["uncertain"],
        "silent differences": len(total.silent) > DEMANDS["silent"],
        "false flags": total.false > DEMANDS["false"] * max(total.shuffled_steps, 1),
    }
    return [name for name, is_missed in checks.items() if is_missed]


async def measure(options: argparse.Namespace, output: Path) -> dict[str, Figures]:
    """The figures by site."""
    sites: dict[str, Figures] = {}
    if "hard" in options.parts:
        sites["hard cases"] = await hard_part(options, output)
        print(table(sites).splitlines()[2], file=sys.stderr, flush=True)
    if "walks" in options.parts:
        async with grounds(sources(options.apps)) as all_grounds:
            for ground in all_grounds:
                sites[ground.name] = await app_part(ground, options, output)
                print(table({ground.name: sites[ground.name]}).splitlines()[2], file=sys.stderr, flush=True)
    return sites


def report(sites: dict[str, Figures], abroad: set[str]) -> list[str]:
    """Print the table and every difference; the demands that are not met."""
    print(table(sites))
    for name, one in sites.items():
        for kind, lines in (
            ("differs", one.differences),
            ("decisive miss", one.misses),
            ("SILENT", one.silent),
            ("false flag", one.false_flags),
        ):
            for line in lines:
                print(f"{kind}: {name}: {line}")
    total = summed(sites.values())
    if total.compared and not total.silent:
        print(f"silent: at most {3 / total.compared:.2%} of steps, at 95 % (none of {total.compared})")
    print(f"masked: {', '.join(name for name, _ in MASKS)}")
    print(f"abroad: {', '.join(sorted(abroad)) or 'none'}")
    return problems(total) + (["connections abroad"] if abroad else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--parts", nargs="*", choices=["hard", "walks", "verdicts"], default=["hard", "walks", "verdicts"]
    )
    parser.add_argument("--apps", nargs="*", default=[], help="default: hire, and all that are installed")
    parser.add_argument("--cases", nargs="*", default=[], help="hard cases; default: all")
    parser.add_argument("--seeds", type=int, default=3, help="random walks from each first page")
    parser.add_argument("--mixes", type=int, default=2, help="shuffled walks from each first page of an application")
    parser.add_argument("--replays", type=int, default=3, help="how often each recorded walk is replayed")
    parser.add_argument("--shuffles", type=int, default=3, help="how often the shuffled hard cases are replayed")
    parser.add_argument("--steps", type=int, default=8, help="of a walk that was not recorded")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--output", type=Path, help="keep archives and runs here")
    parser.add_argument("--only-live", action="store_true", help="record and visit sites, without replays")
    parser.add_argument("--again", action="store_true", help="use the recordings and visits that --output has")
    options = parser.parse_args()
    began = time.monotonic()
    with ExitStack() as stack:
        output = options.output or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wabe-frozen-")))
        output.mkdir(parents=True, exist_ok=True)
        abroad = stack.enter_context(watched(psutil.Process()))
        sites = asyncio.run(measure(options, output))
        missed = report(sites, abroad) if sites else []
        if "verdicts" in options.parts:
            verdicts = verdicts_part(sources(options.apps), output, is_again=options.again)
            print("\n".join(verdicts.lines()))
            missed += ["verdicts differ"] if verdicts.silent else []
            missed += ["connections abroad of runs"] if verdicts.abroad else []
    if options.json:
        options.json.write_text(json.dumps({name: asdict(one) for name, one in sites.items()}, indent=2))
    print(f"{time.monotonic() - began:.0f} s; {'; '.join(missed) or 'every demand is met'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
