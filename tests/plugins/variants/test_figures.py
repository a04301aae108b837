"""Rates under variants: the share of the clean successes that remain, and what is lost."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.runs import write_synthetic_run
from judge.plugins.variants.figures import LostUnderVariants, Robustness
from judge.report.build import make_report
from judge.results.figures import Figures
from judge.results.rows import AttemptRow

EMPTY: Any = AttemptRow.without_attempt(task_id="t")


def row(task: str, verdict: str, variant: str | None = None, walk: str = "abc", family: str = "settings") -> AttemptRow:
    known = {"success": True, "failure": False}.get(verdict)
    pair = {"clean_task": task, "variant_name": variant, "variant_family": family} if variant else {}
    name = f"{task}--{variant}" if variant else task
    changed: AttemptRow = replace(
        EMPTY, task_id=name, verdict=verdict, success=known, epoch=1, action_digests=tuple(walk), **pair
    )
    return changed


RUN = [
    row("a", "success"),
    row("b", "success"),
    row("c", "failure"),
    row("a", "success", "dark"),
    row("a", "failure", "phone", "axc"),
    row("b", "success", "phone"),
    row("c", "success", "phone"),
    row("b", "aborted", "dark"),
]


def test_a_run_without_variants_has_none_of_the_figures() -> None:
    assert Robustness.of(RUN[:3]) is None


def test_the_retained_share_is_of_the_clean_successes_that_are_scored_under_the_variant() -> None:
    figures = Robustness.of(RUN)
    assert figures is not None
    family, phone = figures.families["settings"], figures.variants["phone"]
    assert (family.of, family.retained.rate, family.pairs.paired) == (3, 200 / 3, 4)
    assert (phone.of, phone.retained.rate) == (2, 50)
    assert (phone.pairs.paired, phone.pairs.gained, phone.pairs.lost) == (3, 1, 1)


def test_a_lost_task_names_the_first_step_at_which_the_walks_part() -> None:
    figures = Robustness.of(RUN)
    assert figures is not None
    assert figures.lost == (("a", "phone", 2),)
    lines = figures.section().lines
    assert "Lost: a under phone, the walks part at step 2" in lines
    assert lines[0].startswith("settings: 75.0 % clean, 75.0 % under it (4 pairs")


def test_a_submission_has_the_figures_and_leaves_out_what_was_not_measured() -> None:
    figures = Robustness.of(RUN)
    assert figures is not None
    published = figures.published()
    assert published["tasks_lost"] == ["a"]
    assert (published["by_variant"]["phone"]["retained"], published["by_variant"]["phone"]["lost"]) == (50.0, 1)
    unscored = Robustness.of([RUN[1], RUN[7]])
    assert unscored is not None
    assert "retained" not in unscored.published()["by_variant"]["dark"]
    assert "worst_family" not in published


def test_no_variant_counts_in_the_rate_of_the_run() -> None:
    figures = Figures.of(each.counted for each in RUN)
    assert (figures.all.tasks, figures.all.successes, figures.attacks) == (3, 2, None)


def test_no_family_is_the_worst_if_none_loses_anything() -> None:
    styled = row("b", "success", "zoomed", family="style")
    kept = Robustness.of([row("a", "success"), row("b", "success"), row("a", "success", "dark"), styled])
    lost = Robustness.of([*RUN, styled])
    assert kept is not None
    assert lost is not None
    assert (kept.worst, lost.worst) == (None, "settings")


def test_a_comparison_has_the_figures_of_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = Robustness.of(RUN)
    assert figures is not None
    monkeypatch.setattr(LostUnderVariants, "section", lambda *_: figures.section())
    runs = [write_synthetic_run(tmp_path / "out", f"2026010{day}-000000-a", tasks=2) for day in (1, 2)]
    html = make_report(runs, tmp_path / "both").read_text()
    assert all(f"<h2>Robustness, run {letter}</h2>" in html for letter in "AB")
    assert html.count("Lost: a under phone, the walks part at step 2") == 2
