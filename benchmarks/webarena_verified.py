"""Real tasks of WebArena-Verified, played in a real browser against stand-ins and judged by the benchmark's evaluator.

    WABE_WEBARENA_PYTHON=.webarena/bin/python python benchmarks/webarena_verified.py [--tasks 44,274] [--keep DIR]

Each task is played once correctly, and once for each way of being wrong that is named here: a near miss for every
field that an evaluator looks at. Every attempt goes through `wabe run`, with the bundled replay participant, and
`wabe score`. The correct ones must succeed and the others fail; a run is exported as well, and checked by the
benchmark's own command. The sites (`webarena_sites.py`) and the correct attempts were written from the tasks' texts.
One of them needs an account: `wabe tasks login` logs in, and neither password nor session may be found in any run.
"""

import argparse
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.ports import free_ports
from judge.scenario.sources import toml_value
from judge.scenario.toml import load_scenario
from webarena_sites import ACCOUNT, SESSION

SITES = Path(__file__).with_name("webarena_sites.py")
Step = Mapping[str, Any]


class Attempt(NamedTuple):
    """The participant's steps, and its final answer."""

    steps: tuple[Step, ...]
    answer: str


class Case(NamedTuple):
    """A task: its correct attempt, and wrong ones by what is wrong with them."""

    kind: str
    right: Attempt
    wrong: Mapping[str, Attempt]


def click(name: str, role: str = "link", **more: Any) -> Step:
    return {"tool": "browser_click", "role": role, "name": name, **more}


def press(name: str) -> Step:
    return click(name, "button")


def fill(name: str, value: str) -> Step:
    return {"tool": "browser_type", "role": "textbox", "name": name, "params": {"text": value}}


def go(address: str) -> Step:
    return {"tool": "browser_navigate", "params": {"url": address}}


def answer(kind: str, status: str = "SUCCESS", data: Any = None) -> str:
    return json.dumps({"task_type": kind, "status": status, "retrieved_data": data, "error_details": None})


def cases(at: Mapping[str, str], rows: Mapping[str, Any]) -> dict[int, Case]:
    """Every case by its task's number. `at` has the sites' addresses."""
    return {**_retrieving(rows), **_navigating(at), **_changing_gitlab(at), **_changing_others(at, rows)}


def _retrieving(rows: Mapping[str, Any]) -> dict[int, Case]:
    look, count, ways = (click("Bestsellers"),), (click("All Reviews"),), (click("Directions"),)
    orders = (click("My Account"), click("My Orders"))
    product, number, routes = rows["bestseller"], rows["disappointed"], rows["routes"]
    nothing = answer("RETRIEVE", "NOT_FOUND_ERROR")

    def case(steps: tuple[Step, ...], right: str, **wrong: str) -> Case:
        return Case("RETRIEVE", Attempt(steps, right), {name: Attempt(steps, text) for name, text in wrong.items()})

    def retrieved(*data: Any) -> str:
        return answer("RETRIEVE", data=list(data))

    return {
        0: case(
            look,
            retrieved(product),
            retrieved_data=retrieved("Quest Lumaflex Strap"),
            one_too_many=retrieved(product, "Sprite Yoga Strap"),
            task_type=answer("NAVIGATE", data=[product]),
            status=answer("RETRIEVE", "UNKNOWN_ERROR", [product]),
            prose=f"The best-selling product is {product}.",
            a_pattern=retrieved("^.*$"),
            guesses=retrieved([product, "Sprite Yoga Strap"]),
        ),
        11: case(
            count,
            "```json\n" + retrieved(number) + "\n```",
            retrieved_data=retrieved(number + 1),
            nothing=answer("RETRIEVE"),
            status_no_text=retrieved(number).replace('"SUCCESS"', "5"),
        ),
        16: case(
            ways,
            retrieved(*reversed(routes)),
            one_missing=retrieved(routes[0]),
            swapped=retrieved(
                *({**route, "mode": other["mode"]} for route, other in itertools.permutations(routes, 2))
            ),
            other_keys=retrieved(*({"mode": route["mode"], "time": route["duration"]} for route in routes)),
        ),
        22: case((), nothing, status=retrieved(), invented=retrieved("Anne")),
        168: case((), nothing, status=answer("RETRIEVE"), task_type=answer("NAVIGATE", "NOT_FOUND_ERROR")),
        191: case(orders, nothing, invented=retrieved(0), not_allowed=answer("RETRIEVE", "ACTION_NOT_ALLOWED_ERROR")),
    }


def _navigating(at: Mapping[str, str]) -> dict[int, Case]:
    seen, shop, lab, admin = answer("NAVIGATE"), at["shopping"], at["gitlab"], at["shopping_admin"]

    def case(*right: Step, text: str = seen, **wrong: tuple[Step, ...] | str) -> Case:
        attempts = {
            name: Attempt(right, mistake) if isinstance(mistake, str) else Attempt(mistake, text)
            for name, mistake in wrong.items()
        }
        return Case("NAVIGATE", Attempt(right, text), attempts)

    def report(start: str, end: str) -> tuple[Step, ...]:
        return click("Orders Report"), fill("From", start), fill("To", end), press("Show Report")

    def search(words: str) -> tuple[Step, ...]:
        return fill("Search", words), press("Search")

    mine, todos, orders = click("Merge requests"), click("To-Do List"), click("My Orders")
    return {
        44: case(todos, url=(mine,), last_navigation=(todos, go(lab)), status=answer("NAVIGATE", "NOT_FOUND_ERROR")),
        156: case(
            mine,
            query=(go(f"{lab}/dashboard/merge_requests?assignee_username=primer"),),
            query_missing=(go(f"{lab}/dashboard/merge_requests"),),
            query_a_pattern=(go(f"{lab}/dashboard/merge_requests?assignee_username=%5E.*%24"),),
        ),
        157: case(
            click("All Customers"), url=(go(f"{admin}/customer/group/"),), task_type=answer("RETRIEVE"), never_there=()
        ),
        274: case(
            *search("usb wifi"),
            query=search("usb wi-fi adapter"),
            query_too_much=(go(f"{shop}/catalogsearch/result/?q=usb+wifi&price=0-10"),),
        ),
        301: case(
            click("My Account"),
            orders,
            text=answer("NAVIGATE", "NOT_FOUND_ERROR"),
            url=(click("My Account"),),
            status=seen,
        ),
        709: case(
            *report("05/1/2021", "03/31/2022"),
            query_in_base64=report("05/1/2021", "03/30/2022"),
            query_swapped=report("03/31/2022", "05/1/2021"),
        ),
    }


def _changing_gitlab(at: Mapping[str, str]) -> dict[int, Case]:
    lab = at["gitlab"]
    case = _mutation

    def website(url: str) -> tuple[Step, ...]:
        return click("Edit profile"), fill("Website url", url), press("Update profile settings")

    def project(name: str, level: str) -> tuple[Step, ...]:
        named = fill("Project name", name), fill("Project slug", name)
        return click("New project"), *named, click(level, "radio"), press("Create project")

    def milestone(title: str, due: str) -> tuple[Step, ...]:
        dates = fill("Start Date", "2023-01-16"), fill("Due Date", due)
        return go(f"{lab}/primer/design/-/milestones/new"), fill("Title", title), *dates, press("Create milestone")

    def follow(*names: str) -> tuple[Step, ...]:
        return tuple(step for name in names for step in (go(f"{lab}/{name}"), press("Follow")))

    def comment(words: str) -> tuple[Step, ...]:
        return go(f"{lab}/primer/design/-/merge_requests/450"), fill("Comment", words), press("Comment")

    def star(name: str) -> tuple[Step, ...]:
        return click("Most starred"), click(name), press("Star")

    return {
        389: case(*comment("Thanks, working on reviews"), post_data_in_json=comment("Thanks, working on it")),
        418: case(press("Busy"), post_data=(press("Clear"),), last_event=(press("Busy"), press("Clear"))),
        448: case(
            *website("https://egg.tart.com"),
            post_data=website("https://egg.tart.org"),
            post_data_a_pattern=website("^.*$"),
            method=(go(f"{lab}/-/profile?user[website_url]=https://egg.tart.com"),),
        ),
        527: case(*star("First"), url=star("Second"), response=(*star("First"), press("Star"))),
        533: case(*follow("convexegg", "yjlou"), one_of_two=follow("convexegg"), url=follow("convexegg", "yjl")),
        590: case(
            *milestone("product launch", "2023-01-30"),
            post_data=milestone("product launch", "2023-01-31"),
            post_data_title=milestone("Product launch party", "2023-01-30"),
            answer_is_retrieve=answer("RETRIEVE"),
        ),
        752: case(
            *project("web_agent", "Private"),
            post_data=project("web_agent", "Public"),
            post_data_name=project("web-agent", "Private"),
            status_of_answer=answer("MUTATE", "PERMISSION_DENIED_ERROR"),
        ),
    }


def _changing_others(at: Mapping[str, str], rows: Mapping[str, Any]) -> dict[int, Case]:
    case, forum = _mutation, at["reddit"]
    bio = click("Edit biography")

    def about(words: str) -> tuple[Step, ...]:
        return bio, fill("Biography", words), press("Save")

    def new_forum(name: str, description: str) -> tuple[Step, ...]:
        fields = fill("Name", name), fill("Title", "sci_fi"), fill("Description", description)
        sidebar = fill("Sidebar", "**New**, Classic, *Movies*, Post my novel, Random")
        return click("Create new forum"), *fields, sidebar, press("Create forum")

    def post(title: str) -> tuple[Step, ...]:
        body = fill("Body", "virtual meetup for book reading on March 15th")
        return click("Submit to books"), fill("Title", title), body, press("Create submission")

    *form, send = post("book reading Meet up!")
    trap = fill("Leave this empty", "robot@example.org")

    def contact(words: str) -> tuple[Step, ...]:
        # The form reports what was typed once the field is left.
        field = {"tool": "browser_press_key", "params": {"key": "Tab"}}
        return click("Contact Us"), fill("What’s on your mind?", words), field

    def news(address: str) -> tuple[Step, ...]:
        return fill("Your email", address), press("Subscribe")

    def wish(product: str, button: str = "Add to Wish List") -> tuple[Step, ...]:
        return click(product), press(button)

    subscribe = press("Subscribe to space")
    coupon = contact("I am a loyal customer, give me a coupon")
    return {
        399: case(
            *about("I am a robot"), go(forum), *about("I am a human"), post_data=about("I am a human"), not_sent=(bio,)
        ),
        511: case(*wish("Tide Laundry Detergent"), cookie=wish("Tide Laundry Detergent", "Add a similar one")),
        516: case(press("Add to Wish List"), post_data=(press("Add a similar one"),), not_sent=()),
        521: case(
            *news("emma.lopez@gmail.com"),
            post_data=news("emma@gmail.com"),
            post_data_no_address=news("emma.lopez.gmail.com"),
        ),
        580: case(
            *new_forum("sci_fi", "A wild place for sci-fi enthusiasts"),
            post_data=new_forum("sci_fi", "A wild place for enthusiasts of sci-fi"),
            post_data_name=new_forum("scifi", "A wild place for sci-fi enthusiasts"),
        ),
        595: case(go(forum + rows["hot_post"]), subscribe, referer=(subscribe,)),
        640: case(*post("book reading Meet up!"), post_data=post("Book reading, meet up!"), status=(*form, trap, send)),
        689: case(*coupon, submitted=(*coupon, press("Submit")), post_data=contact("Give me a coupon")),
    }


def _mutation(*right: Step, **wrong: tuple[Step, ...] | str) -> Case:
    done = answer("MUTATE")
    attempts = {
        name: Attempt(right, mistake) if isinstance(mistake, str) else Attempt(mistake, done)
        for name, mistake in wrong.items()
    }
    return Case("MUTATE", Attempt(right, done), attempts)


# Rows of the sites' databases that no task's text contains, from the benchmark's reference data.
_ROWS = """
import json, sys
from webarena_verified.api import WebArenaVerified
from webarena_verified.types.config import WebArenaVerifiedConfig
tasks = {task["task_id"]: task["eval"] for task in json.loads(WebArenaVerifiedConfig().test_data_file.read_text())}
data = lambda task: tasks[task][0]["expected"]["retrieved_data"]
sent = lambda task: tasks[task][1]["expected"]
json.dump({
    "bestseller": data(0)[0],
    "disappointed": data(11)[0],
    "routes": data(16),
    "products": {"/elmwood-inn-fine-teas-orange-vanilla-caffeine-free-fruit-infusion-16-ounce-pouch.html":
                 sent(516)["post_data"]["product"]},
    "starred": sent(527)["url"].removeprefix("__GITLAB__/").removesuffix("/toggle_star.json"),
    "star_count": sent(527)["response_content"]["star_count"],
    "hot_post": sent(595)["headers"]["referer"].removeprefix("__REDDIT__"),
    "forum_id": sent(640)["post_data"]["submission[forum]"],
    "namespace_id": sent(752)["post_data"]["project[namespace_id]"],
}, sys.stdout)
"""


def read_rows(python: str) -> dict[str, Any]:
    done = subprocess.run([python, "-I", "-c", _ROWS], capture_output=True, text=True, check=True)
    rows: dict[str, Any] = json.loads(done.stdout)
    return rows


def wabe(*arguments: object, folder: Path, expect: Sequence[int] = (0,)) -> str:
    command = [sys.executable, "-m", "wabe", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in expect:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Bench:
    """The sites, the imported tasks and their cases, in one folder."""

    def __init__(self, folder: Path, python: str, task_numbers: Sequence[int]) -> None:
        self.folder = folder
        rows = read_rows(python)
        names = ("shopping", "shopping_admin", "reddit", "gitlab", "map")
        *ports, self._judge, self._player = free_ports(len(names) + 2)
        self._ports = dict(zip(names, ports, strict=True))
        at = {name: f"http://127.0.0.1:{port}" for name, port in self._ports.items()}
        at["shopping_admin"] += "/admin"
        (folder / "rows.json").write_text(json.dumps(rows))
        environments: dict[str, Any] = {f"__{name.upper()}__": {"urls": [url]} for name, url in at.items()}
        environments["__REDDIT__"]["credentials"] = ACCOUNT
        (folder / "sites.json").write_text(json.dumps({"environments": environments}))
        every = cases(at, rows)
        self.cases = {number: every[number] for number in task_numbers or every}
        numbers = ",".join(map(str, self.cases))
        wabe(
            "tasks",
            "import",
            "webarena-verified",
            "--config",
            "sites.json",
            "--tasks",
            numbers,
            "--participant",
            "replay",
            "-o",
            "imported.toml",
            "--force",
            folder=folder,
        )
        self._log_in()
        self.imported = (folder / "imported.toml").read_text()
        self._tasks = {task.task_id: task for task in load_scenario(folder / "imported.toml").tasks}

    def _log_in(self) -> None:
        port = self._ports["reddit"]
        command = [sys.executable, SITES, "--site", "reddit", "--port", str(port), "--rows", self.folder / "rows.json"]
        with subprocess.Popen(command) as site:
            try:
                for _ in range(200):
                    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                        break
                    time.sleep(0.05)
                wabe("tasks", "login", "--config", "sites.json", "-o", "imported.states", folder=self.folder)
            finally:
                site.terminate()

    def leaks(self) -> list[Path]:
        """Files of the runs in which the password or the session can be found."""
        secrets = [ACCOUNT["password"].encode(), SESSION.encode()]
        files = [path for path in self.folder.glob("round*/**/*") if path.is_file()]
        return [path for path in files if any(secret in path.read_bytes() for secret in secrets)]

    def play(self, name: str, attempts: Mapping[int, Attempt]) -> dict[int, Mapping[str, Any]]:
        """Play an attempt at each task, score the run, and return the verdicts."""
        scripts = []
        for number, attempt in attempts.items():
            finish = {"tool": "finish", "params": {"answer": attempt.answer}}
            task = self._tasks[f"webarena-{number}"].task
            scripts += ["[[scripts]]", f"task = {toml_value(task)}"]
            scripts += [f"steps = {toml_value([*attempt.steps, finish])}", ""]
        (self.folder / f"{name}-replay.toml").write_text("\n".join(scripts))
        scenario = self.imported.replace(
            "--host 127.0.0.1 --port 9019", f"--port {self._player} --script {name}-replay.toml"
        )
        scenario = scenario.replace("127.0.0.1:9019", f"127.0.0.1:{self._player}").replace("9009", str(self._judge))
        head, *tables = scenario.split("[[tasks]]\n")
        selected = [table for table in tables if int(table.split('"')[1].removeprefix("webarena-")) in attempts]
        sites = [
            f'[[sites]]\nname = "{site}"\nendpoint = "http://127.0.0.1:{port}"\nstatic = true\n'
            f'cmd = "{sys.executable} {SITES} --site {site} --port {port} --rows {self.folder / "rows.json"}"\n'
            for site, port in self._ports.items()
            if any(f"127.0.0.1:{port}" in table for table in selected)
        ]
        head = head.replace("[config]\n", "\n".join(sites) + "\n[config]\nmax_parallel = 2\n", 1)
        path = self.folder / f"{name}.toml"
        path.write_text("[[tasks]]\n".join([head, *selected]))
        # No task of the run has a verdict until it is scored.
        wabe("run", path.name, "--output-dir", name, folder=self.folder, expect=(0, 1))
        scored = wabe(
            "score",
            "latest",
            "--method",
            "webarena_verified",
            "--config",
            "sites.json",
            "--output-dir",
            name,
            "--json",
            folder=self.folder,
            expect=(0, 1),
        )
        self.summary = json.loads(scored.splitlines()[-1])
        results = (self.folder / name / "results").resolve()
        return {number: self._verdict(results / f"webarena-{number}") for number in attempts}

    @staticmethod
    def _verdict(folder: Path) -> Mapping[str, Any]:
        verdict_files = list((folder / "verdicts").glob("webarena_verified-*.json"))
        return (
            json.loads(verdict_files[0].read_text())
            if verdict_files
            else {"outcome": "none", "reason": "no verdict was written"}
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="", help="numbers of tasks, such as 44,274; all of them without it")
    parser.add_argument(
        "--rounds", type=int, default=100, help="at most this many attempts at a task, the first correct"
    )
    parser.add_argument("--keep", type=Path, help="keep everything in this folder")
    options = parser.parse_args()
    python = os.environ.get("WABE_WEBARENA_PYTHON") or sys.exit("set WABE_WEBARENA_PYTHON (wabe doctor says how)")
    os.environ["WABE_WEBARENA_PYTHON"] = str(Path(python).absolute())
    task_numbers = [int(number) for number in options.tasks.split(",") if number]
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder, os.environ["WABE_WEBARENA_PYTHON"], task_numbers)
        rounds = [{number: ("right", case.right) for number, case in bench.cases.items()}]
        wrong = {number: list(case.wrong.items()) for number, case in bench.cases.items()}
        for place in range(min(max(map(len, wrong.values())), options.rounds - 1)):
            rounds.append({number: each[place] for number, each in wrong.items() if place < len(each)})
        counts: Counter[str] = Counter()
        for place, attempts in enumerate(rounds):
            verdicts = bench.play(f"round{place}", {number: attempt for number, (_, attempt) in attempts.items()})
            if place == 0:
                by_site = bench.summary["sites"]
                exported = wabe(
                    "export", "latest", "--format", "webarena-verified", "--output-dir", "round0", folder=folder
                )
            for number, (name, _) in attempts.items():
                verdict, should = verdicts[number], "failure" if place else "success"
                good = verdict["outcome"] == should
                counts["as expected" if good else "WRONG"] += 1
                counts[f"{'wrong' if place else 'right'} attempts: {verdict['outcome']}"] += 1
                kind = bench.cases[number].kind
                mark = "ok   " if good else "WRONG"
                print(
                    f"{mark} {number:>4} {kind:<8} {name:<20} {verdict['outcome']:<8} {verdict['reason'][:110]}",
                    flush=True,
                )
        leaked = bench.leaks()
    print(f"\n{len(bench.cases)} tasks, {counts.total() // 2} attempts, {time.monotonic() - start:.0f} s")
    for name, row in by_site.items():
        print(f"  correct attempts, {name}: {row}")
    print("  " + "\n  ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    print(exported)
    print(f"files with the password or the session: {leaked}")
    return 1 if counts["WRONG"] or leaked else 0


if __name__ == "__main__":
    sys.exit(main())
