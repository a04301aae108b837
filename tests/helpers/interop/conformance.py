"""What the conformance kit found, against what is known to fail: pure, but for reading two files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import tomli

from helpers.paths import ROOT

KNOWN_FAILURES = ROOT / "tests" / "interop" / "conformance" / "known_failures.toml"


@dataclass(frozen=True)
class KnownFailure:
    """A test of the kit that fails, over which transports, whose fault it is (`kit` or `sdk`), and why."""

    test: str
    transports: tuple[str, ...]
    whose: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """How the kit's tests ended: `outcomes` maps (transport, test) to passed, failed, error or skipped."""

    outcomes: Mapping[tuple[str, str], str]

    def count(self, transport: str, folder: str, *outcomes: str) -> int:
        """How many tests of a folder ended in one of `outcomes`."""
        return sum(
            1
            for (over, test), outcome in self.outcomes.items()
            if over == transport and test.startswith(folder) and outcome in outcomes
        )


def read_known(path: Path = KNOWN_FAILURES) -> tuple[KnownFailure, ...]:
    """The allow-list."""
    entries = tomli.loads(path.read_text(encoding="utf-8"))["known"]
    return tuple(KnownFailure(**{**entry, "transports": tuple(entry["transports"])}) for entry in entries)


def read_junit(report: Path) -> dict[str, str]:
    """Test id (`folder.module.Class.test`) to outcome, from a report of pytest."""
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        reported = {child.tag for child in case} & {"failure", "error", "skipped"}
        kind = (
            "error" if "error" in reported else "failure" if "failure" in reported else next(iter(reported), "passed")
        )
        outcomes[f"{case.get('classname')}.{case.get('name')}"] = {"failure": "failed"}.get(kind, kind)
    return outcomes


def unexpected_results(findings: Findings, known_failures: Iterable[KnownFailure]) -> list[str]:
    """What must not be: a failure that is not known, a known one that fails no longer or is not there at all."""
    expected = {(transport, entry.test) for entry in known_failures for transport in entry.transports}
    failed = {key for key, outcome in findings.outcomes.items() if outcome in ("failed", "error")}
    messages = [f"{transport}: {test} fails and is not in the list" for transport, test in failed - expected]
    for transport, test in expected - failed:
        outcome = findings.outcomes.get((transport, test), "not there")
        messages.append(f"{transport}: {test} is in the list and {outcome}; take it out")
    return sorted(messages)
