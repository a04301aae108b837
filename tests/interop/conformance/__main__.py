"""Runs the official A2A conformance kit against our server code: `scripts/conformance.sh KIT_FOLDER`.

Ends in 0 when exactly the known failures fail, in 1 when anything else does, in 2 when the kit cannot be run.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.interop.conformance import Findings, read_junit, read_known, unexpected_results
from helpers.interop.environments import IndexUnreachable, environment

MANDATORY, CAPABILITIES = "tests.mandatory", "tests.optional.capabilities"
FOLDERS = ("tests/mandatory", "tests/optional/capabilities", "tests/optional/quality", "tests/optional/features")
RUNS = (("jsonrpc", FOLDERS), ("rest", FOLDERS), ("jsonrpc,rest", ("tests/optional/multi_transport",)))
# The kit calls the methods of 1.0 without naming the version, which by the specification means 0.3.
HEADERS = {"A2A-Version": "1.0"}


@contextmanager
def agent() -> Iterator[str]:
    """The agent under test in a process of its own; its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "interop.conformance.agent_under_test"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip().rstrip("/")
    finally:
        process.terminate()
        process.wait(timeout=30)


def run_kit(kit: Path, python: Path, transports: str, folders: tuple[str, ...]) -> dict[str, str]:
    """Run the kit's tests on a fresh agent, since some count the tasks they find. Its own output goes to stderr."""
    with agent() as url, tempfile.TemporaryDirectory() as temp:
        report = Path(temp) / "report.xml"
        command = [str(python), "-m", "pytest", *folders, f"--sut-url={url}", "--test-scope=all"]
        command += ["--transports", transports, f"--junitxml={report}", "-q", "--tb=short", "-p", "no:cacheprovider"]
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHONPATH"))},
            "A2A_AUTH_HEADERS": json.dumps(HEADERS),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        subprocess.run(command, cwd=kit, env=environ, stdout=sys.stderr, check=False)
        if not report.exists():
            sys.exit(f"conformance: the kit in {kit} did not run; is it a2aproject/a2a-tck?")
        return read_junit(report)


def main() -> int:
    """Run everything, print a summary and what is wrong."""
    if len(sys.argv) != 2 or not (kit := Path(sys.argv[1])).joinpath("run_tck.py").is_file():
        print("usage: scripts/conformance.sh FOLDER   (a checkout of a2aproject/a2a-tck)", file=sys.stderr)
        return 2
    try:
        python = environment("kit")
    except IndexUnreachable as error:
        print(f"conformance: cannot install what the kit needs: {error}", file=sys.stderr)
        return 2
    outcomes: dict[tuple[str, str], str] = {}
    for transports, folders in RUNS:
        result = run_kit(kit, python, transports, folders)
        outcomes |= {(transports, test): outcome for test, outcome in result.items()}
    findings = Findings(outcomes)
    for transports, _ in RUNS:
        for title, folder in (("mandatory", MANDATORY), ("capabilities", CAPABILITIES), ("all", "tests")):
            passed, failed, skipped = (
                findings.count(transports, folder, *kinds) for kinds in (["passed"], ["failed", "error"], ["skipped"])
            )
            if passed + failed + skipped:
                print(f"{transports:13} {title:13} {passed} passed, {failed} failed, {skipped} skipped")
    known = read_known()
    for entry in known:
        print(f"known ({entry.whose}): {entry.test}\n    {entry.reason}")
    wrong = unexpected_results(findings, known)
    for line in wrong:
        print(f"WRONG: {line}")
    print("Not as expected." if wrong else "Nothing fails but what is known to.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
