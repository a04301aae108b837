"""The results of participants that know nothing, beside those of a run."""

import json
from pathlib import Path

from helpers.plugins import verify_run
from helpers.results import a_finished_run, a_result, a_submission, a_verdict
from judge.report.build import make_report
from judge.results.trivial_agents import trivial_rates_of
from judge.store.layout import RunStore


def a_run(folder: Path) -> RunStore:
    run = a_finished_run(folder, a_result("a"))
    for player, outcome in (("random", "success"), ("idle", "failure")):
        home = run.folder / "baselines" / "runs" / player
        home.mkdir(parents=True)
        submission = a_submission(
            a_result("a", verdict=a_verdict(outcome)), a_result("b", verdict=a_verdict("failure"))
        )
        (home / "results.json").write_text(json.dumps(submission))
    return run


def test_each_has_its_rate(tmp_path: Path) -> None:
    result = trivial_rates_of(a_run(tmp_path))
    assert {name: (rate.successes, rate.scored) for name, rate in result.items()} == {"random": (1, 2), "idle": (0, 2)}


def test_one_whose_results_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    (run.folder / "baselines" / "runs" / "random" / "results.json").write_text('{"results": [{}]}')
    assert list(trivial_rates_of(run)) == ["idle"]


def test_the_report_shows_their_lines_beside_the_agents(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    before = verify_run(run).mismatches
    page = make_report([run]).read_text()
    section = page.partition('<section id="trivial-agents">')[2].partition("</section>")[0]
    places = [section.find(f">{name}<") for name in ("random", "idle")]
    assert -1 not in places
    assert "50.0" in section
    assert (
        verify_run(run).mismatches == before == verify_run(a_finished_run(tmp_path / "plain", a_result("a"))).mismatches
    )


def test_a_run_without_them_has_no_such_section(tmp_path: Path) -> None:
    assert 'id="trivial-agents"' not in make_report([a_finished_run(tmp_path, a_result("a"))]).read_text()
