"""What it costs honest agents that a success rests on the archive's answers, and what it denies those that leave it.

    wabe apps install datasette trac verdaccio
    python benchmarks/frozen unconfirmed [--parts honest overshoots] [--apps NAME…] [--seeds N] [--episodes N]

honest: the right scripts of `hire`, of the bundled shop and Datasette, and of further applications, which are recorded
first. Each is played on its archive as it is, shuffled (its actions in a random order), and with one to three detours
at random places: a search, a page or a filter that is not in the script, and then back. A success that is unscored
(`off_archive`, `uncertain_archive`) is a cost; at most 5 % of the attempts may be one.

overshoots: the tasks of `tests/plugins/frozen/overshoots.py`, each done once too often in five ways, on the live site
and on an archive of the right way; then played at random. No attempt may succeed, or get a reward, that gets less on
the live site.

Exit code 1 if a demand is not met.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("src", "tests", "benchmarks")]

from sites import BUNDLED, in_other_order, recorded_by_command, sources

from helpers.episode.offline_judge import play_scenario
from judge.records.sites import origin_of
from judge.records.tasks import Task
from judge.records.verdicts import is_unconfirmed
from judge.scenario.frozen import on_archives
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario
from judge.trajectory.files import load_trajectory
from participants.base import Observation, Reply, per_attempt
from participants.replay import Script, find_script, load_book
from plugins.frozen import overshoots
from plugins.frozen.hard.playing import Decide, scripted
from shared.models import Action, Page
from shared.settings import Settings
from shared.snapshot import Node, parse_snapshot

# Its archives come with WABE.
FROZEN = "frozen"
MAX_COST = 0.05
MAX_STEPS = 45
# An honest agent does not leave the site, and does nothing that lasts.
LASTING = ("log", "sign", "delete", "remove", "new ", "add", "edit", "download", "create", "save")
# A redirect may have added one page.
_MAX_TRIES = 2
WORDS = ("zebra", "harbour", "blue")


class Ground(NamedTuple):
    """Tasks on an archive, and their right scripts."""

    name: str
    scenario: Scenario
    tasks: Sequence[Task]
    scripts: dict[str, Script]


def grounds(apps: Sequence[str], folder: Path) -> Iterator[Ground]:
    """The bundled archives, and one of each further application."""
    scenarios = Settings.from_environ().scenarios_folder
    if not apps or FROZEN in apps:
        source = scenarios / FROZEN / "scenario.toml"
        yield ground_of(FROZEN, on_archives(load_scenario(source)))
    if not apps or BUNDLED in apps:
        archive = scenarios / FROZEN / f"{BUNDLED}.wacz"
        yield ground_of(BUNDLED, on_archives(load_scenario(scenarios / BUNDLED / "scenario.toml"), archive))
    others = [name for name in apps or ("trac", "verdaccio") if name not in (FROZEN, BUNDLED)]
    for name, source in sources(others).items() if others else ():
        scenario = load_scenario(source)
        (site,) = (site for site in scenario.sites if site.name == name)
        own = tuple(each for each in scenario.tasks if origin_of(each.website) == origin_of(site.endpoint))
        archive = folder / f"{name}.wacz"
        if not archive.is_file():
            recorded_by_command(source, [each.task_id for each in own], archive)
        yield ground_of(name, on_archives(scenario.model_copy(update={"tasks": own}), archive))


def ground_of(name: str, scenario: Scenario) -> Ground:
    book = load_book([scenario.path.parent / "replay.toml"])
    scripts = {each.task_id: find_script(book, each.task, each.website) for each in scenario.tasks}
    known = {task_id: script for task_id, script in scripts.items() if script is not None}
    config = scenario.config.model_copy(update={"max_steps": MAX_STEPS, "max_parallel": 2})
    tasks = [each for each in scenario.tasks if each.task_id in known]
    return Ground(name, scenario.model_copy(update={"config": config}), tasks, known)


# Walks


class Wanderer:
    """Plays a script with detours before some of its steps."""

    def __init__(self, script: Script, count: int, seed: str) -> None:
        self._dice = random.Random(seed)
        self._decide = scripted(script)
        self._named = {(each.role, each.name) for step in script.steps for each in step.elements}
        places = range(len(script.steps))
        self._left = sorted(self._dice.sample(places, min(count, len(places))))
        self._at = 0
        # Where the detour began, and how to come back to it.
        self._returning, self._came_from, self._tries = False, "", 0
        self._undone: Action | None = None
        # What the judge said of the script's last step.
        self._feedback: str | None = None

    async def __call__(self, observation: Observation) -> Reply:
        if not self._returning:
            self._feedback = observation.feedback
            if self._left and self._at >= self._left[0] and (detour := self._detour(observation.page)):
                del self._left[0]
                return detour
        elif reply := self._return(observation.page.url):
            return reply
        self._at += 1
        return await self._decide(observation.model_copy(update={"feedback": self._feedback}))

    def _detour(self, page: Page) -> Action | None:
        nodes = [each for each in parse_snapshot(page.snapshot).nodes if each.ref and "disabled" not in each.states]
        kinds = [self._search, self._page, self._filter]
        self._dice.shuffle(kinds)
        action = next(filter(None, (kind(nodes, page.url) for kind in kinds)), None)
        self._returning = action is not None
        self._came_from = page.url
        return action

    def _return(self, url: str) -> Action | None:
        undone, self._undone = self._undone, None
        if url != self._came_from and self._tries < _MAX_TRIES:
            self._tries += 1
            return Action(tool="browser_navigate_back", params={}, thought="Back.")
        self._tries, self._returning = 0, False
        return undone if url == self._came_from else None

    def _search(self, nodes: Sequence[Node], url: str) -> Action | None:
        fields = [each for each in nodes if each.role == "searchbox" or "search" in each.name.lower()]
        fields = [each for each in fields if each.role in ("searchbox", "textbox", "combobox")]
        if not fields:
            return None
        field = self._dice.choice(fields)
        self._undone = _typed(field, field.text)
        return _typed(field, self._dice.choice(WORDS))

    def _page(self, nodes: Sequence[Node], url: str) -> Action | None:
        links = [each for each in nodes if each.role == "link" and self._is_harmless(each)]
        links = [each for each in links if each.url and not each.url.startswith(("#", "javascript:", "mailto:"))]
        links = [each for each in links if "://" not in (each.url or "") or origin_of(each.url or "") == origin_of(url)]
        self._undone = None
        return _clicked(self._dice.choice(links)) if links else None

    def _filter(self, nodes: Sequence[Node], url: str) -> Action | None:
        boxes = [each for each in nodes if each.role in ("checkbox", "radio") and self._is_harmless(each)]
        boxes = [each for each in boxes if each.role == "checkbox" or "checked" not in each.states]
        if not boxes:
            return None
        box = self._dice.choice(boxes)
        self._undone = _clicked(box)
        return _clicked(box)

    def _is_harmless(self, node: Node) -> bool:
        name = node.name.lower()
        return (node.role, node.name) not in self._named and not any(word in name for word in LASTING)


def _typed(field: Node, words: str) -> Action:
    params = {"element": field.name, "target": field.ref, "text": words, "submit": True}
    return Action(tool="browser_type", params=params, thought="A detour.")


def _clicked(node: Node) -> Action:
    return Action(tool="browser_click", params={"element": node.name, "target": node.ref}, thought="A detour.")


class Outcome(NamedTuple):
    """How an attempt ended, and why a success is unscored."""

    task: str
    verdict: str
    reason: str = ""


async def walked(ground: Ground, name: str, make: Callable[[str], Decide], folder: Path) -> list[Outcome]:
    """Every task of a ground, with a participant of its own each."""
    by_text = {(each.task, each.website): each.task_id for each in ground.tasks}

    def begin(first: Observation) -> Decide:
        return make(by_text[first.instruction, first.website])

    where = folder / f"{ground.name}-{name}"
    await play_scenario(ground.scenario, per_attempt(begin), where, ground.tasks)
    outcomes = []
    for path in sorted(where.glob("runs/*/results/*/result.json")):
        attempt = load_trajectory(path.parent).attempt
        verdict = attempt.verdict
        is_cost = verdict is not None and is_unconfirmed(attempt.outcome, verdict.reason_code)
        reason = verdict.reason if verdict is not None and is_cost else attempt.cause or ""
        outcomes.append(Outcome(attempt.task.task_id, "unconfirmed" if is_cost else attempt.outcome, reason))
    return outcomes


async def honest_part(options: argparse.Namespace, folder: Path) -> list[str]:
    """Print the share of unscored successes of each application and kind of walk."""
    total = Counter[str]()
    print("| application | walk | attempts | successes | failures | unscored | other |\n|---|---|---|---|---|---|---|")
    for ground in grounds(options.apps, folder):

        def wander(count: int, seed: int, ground: Ground = ground) -> Callable[[str], Decide]:
            return lambda task: Wanderer(ground.scripts[task], count, f"{seed} {count} {task}")

        def shuffle(seed: int, ground: Ground = ground) -> Callable[[str], Decide]:
            return lambda task: in_other_order([ground.scripts[task]], seed)

        walks: list[tuple[str, Callable[[str], Decide]]] = [("right", wander(0, 0))]
        for seed in range(options.seeds):
            walks.append((f"shuffled, seed {seed}", shuffle(seed)))
            walks += [(f"{count} detours, seed {seed}", wander(count, seed)) for count in options.detours]
        for name, make in walks:
            outcomes = await walked(ground, name, make, folder)
            counts = Counter(each.verdict for each in outcomes)
            total += counts
            other = counts.total() - counts["success"] - counts["failure"] - counts["unconfirmed"]
            cells = (len(outcomes), counts["success"], counts["failure"], counts["unconfirmed"], other)
            print(f"| {ground.name} | {name} | {' | '.join(map(str, cells))} |", flush=True)
            for each in outcomes:
                if each.verdict not in ("success", "failure"):
                    print(f"{each.verdict}: {each.task}: {each.reason}", file=sys.stderr, flush=True)
    share = total["unconfirmed"] / max(1, total.total())
    print(f"unscored: {total['unconfirmed']} of {total.total()} attempts ({share:.1%})")
    return ["too many unscored successes of honest agents"] if share > MAX_COST else []


async def overshoots_part(options: argparse.Namespace, folder: Path) -> list[str]:
    """Print what overshoots earn live and on the archive, and what random walks do."""
    places, archive = overshoots.addresses(), folder / "over.wacz"
    await overshoots.recorded_site(places, archive, overshoots.TASKS)
    above: list[str] = []
    print(
        "| way | attempts | successes live, frozen | unscored frozen | rewards live, frozen | progress live, frozen |"
    )
    print("|---|---|---|---|---|---|")
    at_random = overshoots.random_walks(places.own, options.episodes, options.seed)
    for way, walks in (overshoots.ways(places.own) | {"at random": at_random}).items():
        live = await overshoots.played(places, folder / f"live {way}", walks)
        frozen = await overshoots.played(places, folder / f"frozen {way}", walks, archive)
        earned = [{name: overshoots.earned(one) for name, one in each.items()} for each in (live, frozen)]
        successes = [sum(one.attempt.outcome == "success" for one in each.values()) for each in (live, frozen)]
        unscored = sum(one.attempt.outcome == "unscored" for one in frozen.values())
        sums = [[sum(each[at] for each in one.values()) for one in earned] for at in (0, 1)]
        cells = [f"{successes[0]}, {successes[1]}", str(unscored), *(f"{one:g}, {other:g}" for one, other in sums)]
        print(f"| {way} | {len(frozen)} | {' | '.join(cells)} |", flush=True)
        for name, trajectory in frozen.items():
            is_more = any(got > due for got, due in zip(earned[1][name], earned[0][name], strict=True))
            if is_more or (trajectory.attempt.outcome == "success") > (live[name].attempt.outcome == "success"):
                steps = ", ".join(step.name or step.tool for step in walks[name])
                above.append(f"{name}, {way} ({steps}): live {live[name].attempt.outcome}, {earned[0][name]}")
    print("\n".join(f"ABOVE LIVE: {each}" for each in above) or "nothing above the live site")
    return ["more than on the live site"] if above else []


PARTS = {"honest": honest_part, "overshoots": overshoots_part}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument(
        "--apps", nargs="*", default=[], help="default: frozen (shop, Datasette), hire, trac, verdaccio"
    )
    parser.add_argument("--seeds", type=int, default=1, help="of each kind of walk")
    parser.add_argument("--episodes", type=int, default=500, help="of overshoots at random")
    parser.add_argument("--seed", type=int, default=0, help="of these")
    parser.add_argument("--detours", type=int, nargs="*", default=[1, 2, 3], help="how many in a walk")
    parser.add_argument("--output", type=Path, help="keep archives and runs here")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wabe-frozen-") as folder:
        output = options.output or Path(folder)
        output.mkdir(parents=True, exist_ok=True)
        missed = [each for part in options.parts for each in asyncio.run(PARTS[part](options, output))]
    print(f"{time.monotonic() - began:.0f} s; {'; '.join(missed) or 'every demand is met'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
