"""Seeded mutants: 30 single changes to the source, each of which must make at least one test fail.

Each mutant breaks one behaviour that users rely on. Its old text is looked up in all of `src`, so that moving code
between files needs no change here; a text that is rewritten needs its mutant rewritten too. The working tree is not
touched: every mutant gets a copy of its own.

    python benchmarks/mutants.py                  all of them; exits 1 if one survives, 2 if one cannot be applied
    python benchmarks/mutants.py blame checks     those whose behaviour or tests contain one of these words
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_COPIED = (".git", ".venv", ".interop", ".output", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis")
SUFFIXES = (".py", ".sql")


@dataclass(frozen=True)
class Mutant:
    """One change. `breaks` says what goes wrong with it; `tests` are names of test files, anywhere under `tests`."""

    breaks: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = (
    # -- what a judge model says ---------------------------------------------------------------------------------------
    Mutant(
        "an outcome reply without a status counts as a success",
        'return self.verdict("unscored", "the judge model\'s replies contained no status"',
        'return self.verdict("success", "the judge model\'s replies contained no status"',
        ("test_webjudge.py", "test_single_question.py"),
    ),
    Mutant(
        "'not successful' is read as a success",
        'return "failure" if failed or denied else "success"',
        'return "failure" if failed else "success"',
        ("test_parsing.py",),
    ),
    Mutant(
        "a score on another scale, such as 4/10, is read as a score of 4",
        'scale.group(1) != "5"',
        'scale.group(1) == ""',
        ("test_parsing.py",),
    ),
    # -- outcomes, counts, blame ---------------------------------------------------------------------------------------
    Mutant(
        "a finished attempt without a verdict is a silent failure",
        'return self.verdict.outcome if self.verdict else "unscored"',
        'return self.verdict.outcome if self.verdict else "failure"',
        ("trajectory/test_record.py",),
    ),
    Mutant(
        "aborted and unscored tasks drop out of the rate of all tasks",
        "Fraction(tally.successes, tally.attempts) for tally in tallies]",
        "Fraction(tally.successes, tally.scored) for tally in tallies if tally.scored]",
        ("test_hidden_losses.py",),
    ),
    Mutant(
        "a page reached after leaving the task's site is blamed on the site",
        "return self.is_elsewhere(document.address) or self._has_rested_since(document)",
        "return self._has_rested_since(document)",
        ("test_blame.py",),
    ),
    # -- network policy ------------------------------------------------------------------------------------------------
    Mutant(
        "a task's website may be a cloud metadata service",
        "return why if place not in self.own or refuses_always(why) else None",
        "return why if place not in self.own else None",
        ("network/test_policy.py",),
    ),
    # -- records -------------------------------------------------------------------------------------------------------
    Mutant(
        "a screenshot that was exchanged after the attempt goes unnoticed",
        'if step.get(f"{kind}_sha256") != digest:',
        "if digest is None:",
        ("test_stale_verdicts.py", "trajectory/test_files.py"),
    ),
    Mutant(
        "verify accepts a submission with a count taken out",
        "for key in sorted({*own_entry, *entry}):",
        "for key in own_entry:",
        ("test_verifying.py",),
    ),
    Mutant(
        "a resumed run keeps unscored tasks as they are",
        'or result.outcome not in ("success", "failure")',
        'or result.outcome == "aborted"',
        ("test_assessment.py",),
    ),
    # -- checks --------------------------------------------------------------------------------------------------------
    Mutant(
        "a page of another site counts as evidence",
        "return self.site.holds(self.step.origin or self.step.url)",
        "return True",
        ("evaluators/test_checks.py", "test_cheats_checks.py"),
    ),
    Mutant(
        "an element whose name only contains the expected name satisfies an element check",
        'return name == plain(element.name or "")',
        'return plain(element.name or "") in name',
        ("evaluators/test_checks.py",),
    ),
    Mutant(
        "a number above max satisfies a text check",
        "(high is None or value <= high)",
        "True",
        ("evaluators/test_checks.py",),
    ),
    Mutant(
        "typed text that looks like an action line satisfies an action check",
        "return parts[2] is None or span[0] < len(line) - len(parts[2])",
        "return True",
        ("evaluators/test_checks.py", "test_cheats_checks.py"),
    ),
    Mutant(
        "an answer that names two different values satisfies an answer check",
        "if len(values) == 1:\n        return values[0]",
        "if values:\n        return values[0]",
        ("evaluators/test_checks.py", "test_normalise.py"),
    ),
    Mutant(
        "an inverted check passes where there is no page to look at",
        "passed = last.counts and not last.passed",
        "passed = not last.passed",
        ("evaluators/test_checks.py",),
    ),
    Mutant(
        "what was there earlier, but not at the end, satisfies a check of the end",
        "return Decision(last.passed,",
        "return Decision(bool(hits),",
        ("evaluators/test_checks.py",),
    ),
    Mutant(
        "a check `on` one page is satisfied by any page",
        "if check.on is None or look.is_at(check.on, extra_query=True)",
        "if check.on is None or look.is_own",
        ("evaluators/test_checks.py",),
    ),
    Mutant(
        "a check `within` an element is satisfied by the rest of the page",
        "roots = None if self._within is None else fitting(page, self._within, range(len(page.nodes)))",
        "roots = None if self._within is None or fitting(page, self._within, range(len(page.nodes))) else []",
        ("evaluators/test_checks.py",),
    ),
    Mutant(
        "an element that was not scrolled into view satisfies an `in_view` check",
        "if across <= 0 or down <= 0:\n            return False",
        "if across <= 0 or down <= 0:\n            return True",
        ("evaluators/test_checks.py",),
    ),
    # -- typed values, replies, snapshots, action lines ----------------------------------------------------------------
    Mutant(
        "an amount in another currency counts as the expected one",
        "actual[0] == expected[0] and expected[1] in (None, actual[1])",
        "actual[0] == expected[0]",
        ("evaluators/test_checks.py", "test_normalise.py"),
    ),
    Mutant(
        "of a repeated key in a reply one is silently taken",
        "if len(result) < len(pairs):",
        "if len(result) > len(pairs):",
        ("test_protocol_replies.py",),
    ),
    Mutant(
        "an option that is not selected counts as text of the page",
        'node.states.get("selected", "false") == "false"',
        'node.states.get("selected", "false") == ""',
        ("evaluators/test_checks.py",),
    ),
    Mutant(
        "typed text can imitate a second action in an action line",
        ".translate(_BRACKETS)",
        "",
        ("test_action_lines.py",),
    ),
    # -- limits, retries, tables ---------------------------------------------------------------------------------------
    Mutant(
        "the judge model is called on after its token budget is spent",
        "self._max_tokens is not None and tokens >= self._max_tokens:",
        "self._max_tokens is not None and tokens < 0:",
        ("llm/test_limits.py",),
    ),
    Mutant(
        "an attempt that the browser broke is not tried again",
        "last = first + config.max_task_retries",
        "last = first",
        ("test_local_shortages.py",),
    ),
    Mutant(
        "an incomplete submission can lead the leaderboard",
        "         COALESCE(complete, TRUE) DESC, ROUND(ranked_rate, 1) DESC;",
        "         ROUND(ranked_rate, 1) DESC;",
        ("test_hidden_losses.py", "test_ranking.py"),
    ),
    Mutant(
        "merging shards takes either of two different results of one task",
        "if before.value != entry.value:",
        "if before.key != entry.key:",
        ("test_merging_submissions.py",),
    ),
    Mutant(
        "a misspelt key of a scenario or a check is ignored",
        'extra="forbid", defer_build=True, allow_inf_nan=False)\n'
        '\n    @model_validator(mode="before")\n    @classmethod\n',
        'extra="ignore", defer_build=True, allow_inf_nan=False)\n\n    @classmethod\n',
        ("scenario/test_checks.py", "scenario/test_toml.py"),
    ),
    Mutant(
        "an agent's answer without end is read without end",
        "if size > limit:",
        "if size > 1_000 * limit:",
        ("a2a/test_client.py",),
    ),
)


class CannotApplyError(Exception):
    """The mutant or its tests do not fit the code; the message says how."""


@dataclass(frozen=True)
class Ran:
    """The outcome of a mutant: the test that failed first, or `None`; `problem` if it could not be tried."""

    mutant: Mutant
    killed_by: str | None
    seconds: float
    problem: str = ""


def place_of(mutant: Mutant, root: Path) -> Path:
    """The one file under `src` that holds the mutant's old text. Raises `CannotApplyError`."""
    files = [path for path in sorted((root / "src").rglob("*")) if path.suffix in SUFFIXES]
    hits = [path for path in files for _ in range(path.read_text(encoding="utf-8").count(mutant.old))]
    if len(hits) != 1:
        place = "not found" if not hits else f"ambiguous, in {', '.join(str(hit.relative_to(root)) for hit in hits)}"
        raise CannotApplyError(f"old text {place}: {mutant.old!r}")
    return hits[0]


def tests_of(mutants: Sequence[Mutant], root: Path) -> list[str]:
    """The test files, relative to the root. Raises `CannotApplyError` for a name that no file has."""
    test_files: dict[str, None] = {}
    for name in dict.fromkeys(name for mutant in mutants for name in mutant.tests):
        files = sorted((root / "tests").rglob(name))
        if not files:
            raise CannotApplyError(f"no test file is called {name}")
        test_files |= dict.fromkeys(str(path.relative_to(root)) for path in files)
    return list(test_files)


def run_tests(root: Path, tests: Sequence[str]) -> str | None:
    """The first test that fails, `None` if all pass. Raises `CannotApplyError` if there was nothing to run."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not e2e", "-rfE", *tests]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    if ran.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - |$)", ran.stdout, re.MULTILINE)
    if ran.returncode not in (1, 2) or failed is None:
        raise CannotApplyError(f"pytest exited {ran.returncode}: {(ran.stdout + ran.stderr)[-500:]}")
    return failed[1]


def try_mutant(mutant: Mutant, clean: Path) -> Ran:
    """Apply the mutant to a copy of `clean` and run its tests there."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wabe-mutant-") as folder:
        # With compiled files and their times: only the changed file is compiled again.
        root = Path(shutil.copytree(clean, Path(folder) / "wabe"))
        try:
            path = place_of(mutant, root)
            path.write_text(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new), encoding="utf-8")
            killed_by = run_tests(root, tests_of([mutant], root))
        except CannotApplyError as error:
            return Ran(mutant, None, time.monotonic() - began, problem=str(error))
    return Ran(mutant, killed_by, time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the seeded mutants.")
    parser.add_argument("words", nargs="*", help="only mutants whose behaviour or tests contain one of these words")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many mutants at once")
    args = parser.parse_args()
    text_of = {mutant: " ".join((mutant.breaks, *mutant.tests)) for mutant in MUTANTS}
    chosen = [mutant for mutant in MUTANTS if not args.words or any(word in text_of[mutant] for word in args.words)]
    with tempfile.TemporaryDirectory(prefix="wabe-mutants-") as folder:
        clean = Path(shutil.copytree(ROOT, Path(folder) / "wabe", ignore=shutil.ignore_patterns(*NOT_COPIED)))
        try:
            failed = run_tests(clean, tests_of(chosen, clean))
        except CannotApplyError as error:
            print(error)
            return 2
        if failed:
            print(f"{failed} fails without any mutant")
            return 2
        with ThreadPoolExecutor(args.workers) as pool:
            results = list(pool.map(lambda mutant: try_mutant(mutant, clean), chosen))
    for ran in results:
        print(f"{ran.seconds:5.1f} s  {ran.mutant.breaks}")
        print(f"         {ran.problem or (f'killed by {ran.killed_by}' if ran.killed_by else 'SURVIVED')}")
    survivors = sum(1 for ran in results if not ran.killed_by and not ran.problem)
    unfit = sum(1 for ran in results if ran.problem)
    print(
        f"{len(results)} mutants: {len(results) - survivors - unfit} killed, {survivors} survived, {unfit} not applied"
    )
    return 2 if unfit else 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
