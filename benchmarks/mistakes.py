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
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from judge.commands.app import app, expand_resume
from judge.runner.boundary import run_command

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
    """A command with a mistake. `file` is the content of the scenario that it names; `words` must be in the answer."""

    what: str
    command: str
    words: str
    file: str = GOOD


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
            ("no remedy", not re.search(r"\(.+\)|Did you mean|did you mean|: wabe |; use|instead|Try ", self.text)),
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
    Mistake("a baseline that is not there", "run {file} --baseline yesterday", "yesterday"),
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
    Mistake("a run to verify that is not there", "verify 20200101-000000-zz", "20200101-000000-zz"),
    Mistake("a run to delete that is not there", "runs rm 20200101-000000-zz --yes", "20200101-000000-zz"),
    Mistake("a folder without trajectories", "score {folder}", "{folder}"),
    Mistake("a misspelt judge method", "score {run} --method webjugde", "webjugde"),
    Mistake("watching nothing", "score {run} --watch", "--watch"),
    Mistake("nothing to compare with labels", "agreement", "agreement"),
    Mistake("a table without the column judge", "agreement {csv}", "judge"),
    Mistake("a format that does not exist", "export {run} --format excel", "excel"),
    Mistake("a file of another benchmark", "leaderboard {json}", "{json}"),
    Mistake("something else to merge", "merge {json}", "{json}"),
    Mistake("a participant that does not exist", "participant rplay", "rplay"),
    Mistake("a source of tasks that does not exist", "tasks import mind3web --output {folder}/x", "mind3web"),
    Mistake("an agent where something is", "new-agent {taken}", "{taken}"),
    Mistake("an address without a host", "look shop", "shop"),
)


def answered(mistake: Mistake, folder: Path) -> Answer:
    """Make the mistake in a folder of its own."""
    (folder / "empty").mkdir()
    (folder / "taken").mkdir()
    (folder / "taken" / "notes.txt").write_text("mine")
    (folder / "my.toml").write_text(mistake.file)
    (folder / "table.csv").write_text("human,model\n1,1\n")
    (folder / "other.json").write_text(json.dumps({"score": 3}))
    run = folder / ".output" / "runs" / "20260101-000000-aa"
    (run / "results").mkdir(parents=True)
    (run / "run.json").write_text(
        json.dumps({"state": "completed", "config": {"judge_model": "offline"}, "task_ids": []})
    )
    places = {
        "folder": "empty",
        "taken": "taken",
        "file": "my.toml",
        "csv": "table.csv",
        "json": "other.json",
        "run": "20260101-000000-aa",
    }

    def filled(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda match: places.get(match[1], match[0]), text)

    arguments = [filled(word) for word in mistake.command.split()]
    output = io.StringIO()
    code: object = 0
    with contextlib.chdir(folder), contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        try:
            run_command(app, expand_resume(arguments), name="wabe")
        except SystemExit as left:
            code = left.code
    number = code if isinstance(code, int) else 0
    return Answer(Mistake(mistake.what, " ".join(arguments), filled(mistake.words)), number, output.getvalue())


def show(answers: Sequence[Answer], markdown: Path | None) -> None:
    """Print the table; also as Markdown."""
    table = Table(show_lines=True)
    for title in ("mistake", "command", "what WABE says"):
        table.add_column(title, overflow="fold")
    lines = ["| mistake | command | what WABE says |", "|---|---|---|"]
    for each in answers:
        text = " ".join(each.text.split())[:MAX_SHOWN_CHARS]
        wrong = f" [NOT CLEAR: {', '.join(each.problems)}]" if each.problems else ""
        table.add_row(each.mistake.what, f"wabe {each.mistake.command}", text + wrong)
        lines.append(f"| {each.mistake.what} | `wabe {each.mistake.command}` | {text.replace('|', '¦')}{wrong} |")
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
