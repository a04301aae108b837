import subprocess
import sys

from helpers.paths import ROOT


def test_each_rule_of_the_matcher_can_be_taken_away() -> None:
    script = [sys.executable, str(ROOT / "benchmarks" / "frozen"), "rules"]
    smallest = ["--sites", "1", "--changing", "1", "--loading", "1", "--visits", "1"]
    result = subprocess.run([*script, *smallest], capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "| signals change nothing |" in result.stdout
