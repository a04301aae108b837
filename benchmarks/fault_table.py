"""Injects every fault, tries every cheat, and prints a table of the outcomes.

    python benchmarks/fault_table.py [--only WORDS] [--markdown FILE] [--workers N] [--settle page-time|real-time]
        [--hold] [--attack]

Nothing in the table is written by hand: each row is a test that ran just now, with the outcome that the judge put on
record. Ends with 1 when one did not hold. With `--hold`, every task holds
requests; with `--attack`, every task is played under an attack: no outcome may change.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
# Behaviour of applications that test pages do not have: exchanges on sockets, covered controls, names that change, …
APPLICATIONS = ("settle", "server_tab", "lost_refs", "fields", "unnamed", "joins")
SUITES = ("tests/faults", "tests/adversarial", *(f"tests/judge/browser/test_{name}.py" for name in APPLICATIONS))
MAX_OUTCOME_CHARS = 220


@dataclass(frozen=True)
class Row:
    group: str
    what: str
    outcome: str
    held: bool
    seconds: float


def run_suites(only: str | None, report: Path, workers: int, settle: str, *, every_task: list[str]) -> int:
    """Run the tests, their progress on standard error; gives pytest's exit code."""
    command = [sys.executable, "-m", "pytest", *SUITES, "-q", f"--junitxml={report}"]
    command += ["--nightly", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", "--settle", settle]
    command += ["-k", only] if only else []
    command += every_task
    # By file, since a file may hold a fixed port or a machine-wide limit for itself.
    command += ["-n", str(workers), "--dist", "loadfile"]
    return subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode


def rows_of(report: Path) -> list[Row]:
    return [row_of(case) for case in ET.parse(report).getroot().iter("testcase") if case.find("skipped") is None]


def row_of(case: ET.Element) -> Row:
    name, _, parameter = str(case.get("name")).partition("[")
    what = name.removeprefix("test_").replace("_", " ")
    outcomes = [item.get("value") or "" for item in case.iter("property")]
    has_passed = case.find("failure") is None and case.find("error") is None
    return Row(
        group=group_of(str(case.get("classname"))),
        what=f"{what} [{parameter}" if parameter else what,
        outcome=" | ".join(dict.fromkeys(outcomes)) or ("as the test says" if has_passed else "see the test's report"),
        held=has_passed,
        seconds=float(case.get("time") or 0),
    )


def group_of(classname: str) -> str:
    """The first sentence of the module in which the test stands."""
    module = ROOT.joinpath(*classname.split(".")).with_suffix(".py")
    return str(ast.get_docstring(ast.parse(module.read_text()))).splitlines()[0]


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_OUTCOME_CHARS else line[: MAX_OUTCOME_CHARS - 1] + "…"


def print_table(rows: list[Row]) -> None:
    console = Console(width=200) if not sys.stdout.isatty() else Console()
    for group in dict.fromkeys(row.group for row in rows):
        table = Table(title=group, title_justify="left", expand=True)
        for column, ratio in (("fault or cheat", 3), ("on record", 4)):
            table.add_column(column, ratio=ratio)
        table.add_column("held", no_wrap=True)
        table.add_column("s", justify="right", no_wrap=True)
        for row in (row for row in rows if row.group == group):
            table.add_row(safe(row.what), safe(short(row.outcome)), "yes" if row.held else "NO", f"{row.seconds:.1f}")
        console.print(table)


def safe(text: str) -> str:
    """Escaped, so that rich does not read it as markup."""
    return text.replace("[", "\\[")


def markdown(rows: list[Row]) -> str:
    lines: list[str] = []
    for group in dict.fromkeys(row.group for row in rows):
        lines += [f"\n### {group}\n", "| fault or cheat | on record | held |", "|---|---|---|"]
        for row in (row for row in rows if row.group == group):
            cells = [cell.replace("|", "\\|") for cell in (row.what, short(row.outcome))]
            lines.append(f"| {cells[0]} | {cells[1]} | {'yes' if row.held else '**no**'} |")
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="a pytest -k expression")
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    parser.add_argument("--settle", default="auto", choices=["auto", "page-time", "real-time"])
    parser.add_argument("--hold", action="store_true", help="every task holds requests")
    parser.add_argument("--attack", action="store_true", help="every task is played under an attack")
    parser.add_argument("--workers", type=int, default=3 * (os.cpu_count() or 2) // 2, help="processes that run tests")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        every_task = [f"--{name}" for name in ("hold", "attack") if getattr(arguments, name)]
        code = run_suites(arguments.only, report, arguments.workers, arguments.settle, every_task=every_task)
        rows = rows_of(report) if report.exists() else []
    print_table(rows)
    if arguments.markdown:
        arguments.markdown.write_text(markdown(rows))
    passed_count = sum(row.held for row in rows)
    print(f"{passed_count} of {len(rows)} faults and cheats came to what they must")
    return 0 if code == 0 and rows else 1


if __name__ == "__main__":
    sys.exit(main())
