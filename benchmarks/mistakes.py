#!/usr/bin/env python3
"""Makes mistakes of new users, each with the real command in this process, and prints what WABE says.

    python benchmarks/mistakes.py [--only WORDS] [--markdown FILE]

A mistake is answered well if the command ends with 1 or 2, writes no traceback, and says in at most three lines what is
wrong, naming what the user wrote and what to do instead. Ends with 1 if one is not. No network is used.
"""

import argparse
import contextlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest.mock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from judge.commands.app import app, expand_resume
from judge.runner.boundary import run_command

ROOT = Path(__file__).resolve().parents[1]
MAX_LINES = 3
MAX_SHOWN_CHARS = 260
HEAD = (
    '[green_agent]\nendpoint = "http://127.0.0.1:9409"\ncmd = "wabe serve --port 9409"\n'
    '[[participants]]\nrole = "me"\nendpoint = "http://127.0.0.1:9419"\ncmd = "wabe participant idle --port 9419"\n'
)
TASK = '[[tasks]]\ntask_id = "a"\nwebsite = "https://shop.example/"\ntask = "Find it."\n'
OFFLINE = '[config]\njudge_model = "offline"\n'
GOOD = f"{HEAD}{OFFLINE}{TASK}"
CHECK = "checks = [{{ {} }}]\n"


@dataclass(frozen=True)
class Mistake:
    """A command with a mistake. `file` is the content of the scenario that it names; `words` must be in the answer.

    `env` are variables of the environment.
    """

    what: str
    command: str
    words: str
    file: str = GOOD
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    mistake: Mistake
    code: int
    text: str

    @property
    def problems(self) -> list[str]:
        """What is not right about the answer."""
        lines = self.text.strip().splitlines()
        requirements = [
            ("exit code 0", self.code not in (1, 2)),
            ("a traceback", "Traceback" in self.text),
            (f"{len(lines)} lines", not 0 < len(lines) <= MAX_LINES),
            (f"{self.mistake.words!r} is not named", self.mistake.words not in self.text),
            (
                "no remedy",
                not re.search(r"\(.+\)|Did you mean|did you mean|: wabe |; use|; install|instead|Try ", self.text),
            ),
        ]
        return [problem for problem, is_so in requirements if is_so]


MISTAKES = (
    # The command line.
    Mistake("a command that does not exist", "rum demo", "rum"),
    Mistake("no scenario", "run", "SCENARIO"),
    Mistake("a scenario that is not there", "run my.tml", "my.tml"),
    Mistake("a misspelt task set", "run dmeo", "dmeo"),
    Mistake("a folder as scenario", "run {folder}", "{folder}"),
    Mistake("an unknown option", "run {file} --parallel 4", "--parallel"),
    Mistake("a misspelt level", "run {file} --level esy", "esy"),
    Mistake("no task at all", "run {file} --limit 0", "--limit"),
    Mistake("an unknown task", "run {file} --task b", "--task"),
    Mistake("a program in the place of an agent's folder", "run {file} --agent ./{csv}", "{port}"),
    Mistake("a task that only one of two scenarios has", "run {file} demo --task a", "demo"),
    Mistake("agreement of a run with nothing", "agreement {run}", "--truth checks"),
    Mistake("a fraction as percentage", "run {file} --fail-under 0.8", "0.8"),
    Mistake("more than everything", "run {file} --fail-under 120", "120"),
    Mistake("no epoch", "run {file} --epochs 0", "--epochs"),
    Mistake("a model without its provider", "run {file} --judge-model claude", "claude"),
    Mistake("a model without its key", "run {file} --judge-model openai:o4-mini", "OPENAI_API_KEY"),
    Mistake("nothing to resume", "run {file} --resume", "no run"),
    Mistake("a run to resume that is not there", "run {file} --resume 20200101-000000-zz", "20200101-000000-zz"),
    Mistake("a task left out without a reason", "run {file} --exclude a", "--exclude"),
    Mistake("an output file in a folder that is a file", "run {file} --output {file}/out.json", "--output"),
    Mistake("an unknown kind of display", "run {file} --display quiet", "quiet"),
    # The scenario file.
    Mistake("an empty file", "run {file}", "{file}", ""),
    Mistake("a string without its end", "run {file}", "line 1", '[green_agent\nendpoint = "x"\n'),
    Mistake("no judge", "run {file}", "green_agent", TASK),
    Mistake("no task", "run {file}", "task", f"{HEAD}{OFFLINE}"),
    Mistake("a task twice", "run {file}", "task_id", f"{GOOD}{TASK}"),
    Mistake("a misspelt key", "run {file}", "maxsteps", f"{HEAD}{OFFLINE}maxsteps = 5\n{TASK}"),
    Mistake("a removed key", "run {file}", "settle_ms", f"{HEAD}{OFFLINE}settle_ms = 500\n{TASK}"),
    Mistake("a number as text", "run {file}", "max_steps", f'{HEAD}{OFFLINE}max_steps = "15"\n{TASK}'),
    Mistake("a website without https", "run {file}", "website", GOOD.replace("https://shop", "shop")),
    Mistake("a level that is none", "run {file}", "level", f'{GOOD}level = "simple"\n'),
    Mistake("an unknown kind of check", "run {file}", "kind", GOOD + CHECK.format('kind = "url", url = "/"')),
    Mistake("a pattern that is none", "run {file}", "pattern", GOOD + CHECK.format('kind = "text", pattern = "(" ')),
    Mistake(
        "role and name as keys of a check",
        "run {file}",
        "element = 'combobox",
        GOOD + CHECK.format('kind = "element", role = "combobox", name = "Kind"'),
    ),
    Mistake(
        "an element without quotes",
        "run {file}",
        "element",
        GOOD + CHECK.format('kind = "element", element = "button Buy"'),
    ),
    Mistake(
        "a check without what it checks", "run {file}", "neither url nor title", GOOD + CHECK.format('kind = "page"')
    ),
    Mistake(
        "a variable that is not set",
        "run {file}",
        "NO_SUCH_KEY",
        GOOD.replace('role = "me"\n', 'role = "me"\nenv = { KEY = "${NO_SUCH_KEY}" }\n'),
    ),
    Mistake(
        "a program that is not installed",
        "run {file}",
        "no-such-agent",
        GOOD.replace("wabe participant", "no-such-agent"),
    ),
    Mistake("a task set as the judge's scenario", "run {file}", "scenario", f'{HEAD}[config]\nscenario = "dmeo"\n'),
    # Other commands.
    Mistake("a run that is not there", "report 20200101-000000-zz", "20200101-000000-zz"),
    Mistake("a run to view that is not there", "view 20200101-000000-zz", "20200101-000000-zz"),
    Mistake("a run to delete that is not there", "runs rm 20200101-000000-zz --yes", "20200101-000000-zz"),
    Mistake("a folder without trajectories", "score {folder}", "{folder}"),
    Mistake("a misspelt judge method", "score {run} --method webjugde", "webjugde"),
    Mistake("watching nothing", "score {run} --watch", "--watch"),
    Mistake("a table without the column judge", "agreement {csv}", "judge"),
    Mistake("a format that does not exist", "export {run} --format excel", "excel"),
    Mistake("a file of another benchmark", "leaderboard {json}", "{json}"),
    Mistake("something else to merge", "merge {json}", "{json}"),
    Mistake("a participant that does not exist", "participant rplay", "rplay"),
    Mistake("a source of tasks that does not exist", "tasks import mind3web --output {folder}/x", "mind3web"),
    Mistake("an agent where something is", "new-agent {taken}", "{taken}"),
    Mistake("an address without a host", "look shop", "shop"),
    # Arguments of a run.
    Mistake("an address as scenario", "run https://shop.example/", "https://shop.example/"),
    Mistake("a scenario in another language", "run {json}", "other.json"),
    Mistake("a task set with the ending of a file", "run demo.toml", "demo"),
    Mistake("a word instead of a number", "run {file} --max-parallel two", "two"),
    Mistake("no shard", "run {file} --shards 0", "--shards"),
    Mistake("an unknown engine", "run {file} --engine spark", "spark"),
    Mistake("a level without tasks", "run {file} --level hard", "--level"),
    Mistake("a task in capitals", "run {file} --task A", "'A'"),
    Mistake("results in a folder that is a file", "run {file} --output-dir {csv}", "{csv}"),
    Mistake("an archive that is not there", "run {file} --archive shop.wacz", "shop.wacz"),
    Mistake("a provider without its model", "run {file} --judge-model gemini", "gemini"),
    Mistake("an empty key", "run {file} --judge-model gemini:x", "GOOGLE_API_KEY", env={"GOOGLE_API_KEY": ""}),
    Mistake(
        "a wrong model in the environment",
        "run {file}",
        "gpt-5",
        GOOD.replace(OFFLINE, ""),
        env={"WABE_JUDGE_MODEL": "gpt-5"},
    ),
    Mistake("an agent that is a model's name", "run {file} --agent gpt-5", "gpt-5"),
    Mistake("an agent without its key", "run {file} --agent openai", "OPENAI_API_KEY"),
    Mistake("an agent's folder that is not there", "run {file} --agent ./agnet", "agnet"),
    Mistake("an empty folder as agent", "run {file} --agent ./{folder}", "scenario.toml"),
    Mistake("an agent that nobody started", "run {file} --agent http://127.0.0.1:9", "http://127.0.0.1:9"),
    Mistake("a port that another program has", "run {file}", "{busy}", GOOD.replace("9409", "{busy}")),
    Mistake("a browser that is not there", "run {file}", "/no/chrome", env={"WABE_BROWSER_PATH": "/no/chrome"}),
    Mistake(
        "no browser at all",
        "run {file}",
        "playwright install",
        env={"PATH": "", "PLAYWRIGHT_BROWSERS_PATH": "/no", "HOME": "/no"},
    ),
    # The scenario file: TOML.
    Mistake("quotes inside quotes", "run {file}", "single quotes", GOOD.replace('"Find it."', '"Click "Buy"."')),
    Mistake(
        "a pattern in double quotes",
        "run {file}",
        "single quotes",
        GOOD + CHECK.format(r'kind = "text", pattern = "\d+"'),
    ),
    Mistake("quotes of a word processor", "run {file}", "straight quotes", GOOD.replace('"Find it."', "“Find it.”")),
    Mistake(
        "no quotes", "run {file}", "texts in quotes", GOOD.replace('"https://shop.example/"', "https://shop.example/")
    ),
    Mistake("a capital in true", "run {file}", "lower case", f"{HEAD}{OFFLINE}judge_checked_tasks = True\n{TASK}"),
    Mistake("a colon instead of an equals sign", "run {file}", "line 10", f"{HEAD}{OFFLINE}max_steps: 5\n{TASK}"),
    Mistake("a key twice", "run {file}", "line 10", f"{HEAD}{OFFLINE}{OFFLINE[9:]}{TASK}"),
    Mistake("another table's name", "run {file}", "'tasks'", GOOD.replace("[[tasks]]", "[[task]]")),
    Mistake(
        "one bracket for participants",
        "run {file}",
        "[[participants]]",
        GOOD.replace("[[participants]]", "[participants]"),
    ),
    # The scenario file: keys and values.
    Mistake("no participant", "run {file}", "participants", GOOD.replace(HEAD, HEAD[: HEAD.index("[[")])),
    Mistake(
        "a participant without address",
        "run {file}",
        "endpoint",
        GOOD.replace('endpoint = "http://127.0.0.1:9419"\n', ""),
    ),
    Mistake(
        "an address without http", "run {file}", "endpoint", GOOD.replace("http://127.0.0.1:9419", "127.0.0.1:9419")
    ),
    Mistake("one port for two agents", "run {file}", "9409", GOOD.replace("9419", "9409")),
    Mistake("a task without id", "run {file}", "task_id", GOOD.replace('task_id = "a"\n', "")),
    Mistake("an id with a blank", "run {file}", "task_id", GOOD.replace('"a"', '"buy a rug"')),
    Mistake("a task without its text", "run {file}", "task", GOOD.replace('task = "Find it."\n', "")),
    Mistake("a check instead of a list", "run {file}", "checks", GOOD + 'checks = { kind = "page", url = "/" }\n'),
    Mistake(
        "limits without a group in the pattern",
        "run {file}",
        "pattern",
        GOOD + CHECK.format('kind = "text", pattern = "[0-9]+", max = 400'),
    ),
    Mistake("a day as people write it", "run {file}", "valid_until", GOOD + 'valid_until = "31.12.2026"\n'),
    Mistake("a log-in that is not there", "run {file}", "state.json", GOOD + 'storage_state = "state.json"\n'),
    Mistake("a script that is not there", "tasks validate {file}", "script.json", GOOD + 'reference = "script.json"\n'),
    Mistake("a file to upload that is not there", "run {file}", "cv.pdf", GOOD + 'files = ["cv.pdf"]\n'),
    Mistake("no step", "run {file}", "max_steps", f"{HEAD}{OFFLINE}max_steps = 0\n{TASK}"),
    # More of the other commands.
    Mistake("a scenario in the place of a run", "report {file}", "{file}"),
    Mistake("a table for a leaderboard", "leaderboard {csv}", "{csv}"),
    Mistake("a log-in without an address", "tasks login", "URL"),
    Mistake("a task to suggest checks for that was not played", "checks suggest {run} --task z", "z"),
    Mistake("a key that is not there", "sign {run} --key key.pem", "key.pem"),
    Mistake("words in the columns of labels", "agreement {words}", "yes"),
    Mistake("an application that there is not", "apps install gitlab", "gitlab"),
    Mistake("a port beyond the last one", "participant idle --port 99999", "99999"),
    Mistake("a participant without its key", "participant gemini --port 9419", "GOOGLE_API_KEY"),
    Mistake("an evaluator to import that is not there", "prompts import judge.py --output {folder}/x", "judge.py"),
    Mistake("an archive to check that is another file", "sites check {csv}", "{csv}"),
    Mistake("a sealed set without its key", "tasks validate {sealed}", "WABE_SEAL_KEY"),
    # Setting up.
    Mistake("an old Python", "scripts/setup.sh", "3.11.2", env={"WABE_PYTHON": "python2.7"}),
)


@contextlib.contextmanager
def places(folder: Path, mistake: Mistake) -> Iterator[dict[str, str]]:
    """What the words in brackets stand for: files of the folder, and a port that another program has."""
    (folder / "empty").mkdir()
    (folder / "taken").mkdir()
    (folder / "taken" / "notes.txt").write_text("mine")
    (folder / "table.csv").write_text("human,model\n1,1\n")
    (folder / "words.csv").write_text("human,judge\nyes,1\n")
    (folder / "other.json").write_text(json.dumps({"score": 3}))
    run = folder / ".output" / "runs" / "20260101-000000-aa"
    (run / "results").mkdir(parents=True)
    (run / "run.json").write_text(
        json.dumps({"state": "completed", "config": {"judge_model": "offline"}, "task_ids": []})
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        (folder / "my.toml").write_text(mistake.file.replace("{busy}", port))
        if "{sealed}" in mistake.command:
            said("tasks seal my.toml --key my.key --output set.sealed")
        yield {
            "folder": "empty",
            "taken": "taken",
            "file": "my.toml",
            "csv": "table.csv",
            "words": "words.csv",
            "json": "other.json",
            "sealed": "set.sealed",
            "run": run.name,
            "busy": port,
        }


def said(command: str) -> tuple[int, str]:
    """The exit code and the output of a command; one that is not `wabe`'s is a program of the repository."""
    if command.startswith("scripts/"):
        done = subprocess.run([ROOT / command], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr
    output = io.StringIO()
    code: object = 0
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        try:
            run_command(app, expand_resume(command.split()), name="wabe")
        except SystemExit as left:
            code = left.code
    return (code if isinstance(code, int) else 0), output.getvalue()


def answered(mistake: Mistake, folder: Path) -> Answer:
    """Make the mistake in a new folder."""
    with contextlib.chdir(folder), unittest.mock.patch.dict(os.environ, mistake.env), places(folder, mistake) as named:

        def filled(text: str) -> str:
            return re.sub(r"\{(\w+)\}", lambda match: named.get(match[1], match[0]), text)

        command = filled(mistake.command)
        code, text = said(command)
    shown = command if command.startswith("scripts/") else f"wabe {command}"
    return Answer(replace(mistake, command=shown, words=filled(mistake.words)), code, text)


def show(answers: Sequence[Answer], markdown: Path | None) -> None:
    """Print the table; also as Markdown."""
    table = Table(show_lines=True)
    for title in ("mistake", "command", "what WABE says"):
        table.add_column(title, overflow="fold")
    lines = ["| mistake | command | what WABE says |", "|---|---|---|"]
    for each in answers:
        text = " ".join(each.text.split())[:MAX_SHOWN_CHARS]
        wrong = f" [NOT CLEAR: {', '.join(each.problems)}]" if each.problems else ""
        table.add_row(each.mistake.what, each.mistake.command, text + wrong)
        lines.append(f"| {each.mistake.what} | `{each.mistake.command}` | {text.replace('|', '¦')}{wrong} |")
    Console(width=160, markup=False).print(table)
    if markdown is not None:
        markdown.write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only mistakes whose description contains this")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    markdown = options.markdown.absolute() if options.markdown else None
    for name in [name for name in os.environ if name.endswith("_API_KEY") or name.startswith("WABE_")]:
        del os.environ[name]
    answers = []
    for mistake in MISTAKES:
        if options.only in mistake.what:
            with tempfile.TemporaryDirectory() as folder:
                answers.append(answered(mistake, Path(folder)))
    show(answers, markdown)
    unclear = [each for each in answers if each.problems]
    print(f"{len(answers) - len(unclear)} of {len(answers)} mistakes are answered clearly")
    return 1 if unclear else 0


if __name__ == "__main__":
    sys.exit(main())
