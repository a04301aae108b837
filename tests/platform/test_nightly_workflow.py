"""The nightly run takes everything that the suite leaves out."""

from typing import Any

import yaml

from helpers.paths import ROOT


def steps_of(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_it_takes_all_cases_in_both_settle_modes_and_applications_frozen_sites_and_mutants() -> None:
    workflow: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text())
    jobs = workflow["jobs"]
    # YAML reads the key `on` as a truth value.
    assert workflow[True]["schedule"]
    assert ".ci/run --nightly" in steps_of(jobs["complete"])
    assert jobs["faults"]["strategy"]["matrix"]["settle"] == ["page-time", "real-time"]
    assert 'benchmarks/fault_table.py --settle "$SETTLE"' in steps_of(jobs["faults"])
    assert jobs["faults"]["steps"][-1]["env"] == {"SETTLE": "${{ matrix.settle }}"}
    assert "--hypothesis-profile=thorough" in steps_of(jobs["thorough"])
    for command in ("--nightly tests/plugins/apps/test_demo.py", "benchmarks/apps.py", "benchmarks/frozen sites"):
        assert command in steps_of(jobs["applications"])
    assert "benchmarks/mutants.py" in steps_of(jobs["mutants"])
    for names in ("all", "each"):
        assert f"scripts/without_plugin.py {names}" in steps_of(jobs["without-plug-ins"])
