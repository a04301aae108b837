"""What a run shows in the terminal."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from helpers.results import a_result, a_submission, a_verdict
from judge.records.events import Event, RunDone, RunStarted, StepDone, TaskDone, TaskJudging, TaskRetried, TaskStarted
from judge.records.verdicts import BUDGET_SPENT, MODEL_UNREACHED
from judge.runner.live_page import LivePage
from judge.runner.options import Display
from judge.runner.terminal import Progress, print_summary
from judge.store.layout import RunStore


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def rendered(progress: Progress) -> str:
    console = Console(file=io.StringIO(), width=120)
    with console.capture() as capture:
        console.print(progress.render())
    return capture.get()


def watching(clock: Clock, *events: Event) -> Progress:
    progress = Progress(Console(file=io.StringIO(), force_terminal=True, width=120), clock=clock)
    for event in events:
        progress(event)
    return progress


def test_a_running_task_shows_its_step_its_action_and_how_long_it_runs(clock: Clock) -> None:
    progress = watching(
        clock,
        RunStarted(run_id="r", total=3),
        TaskStarted(task_id="oak_desks", attempt=1, max_steps=12),
        StepDone(task_id="oak_desks", step=4, max_steps=12, action="<Oak checkbox> -> CLICK", executed=True),
    )
    clock.now += 75
    output = rendered(progress)
    assert "oak_desks" in output
    assert "4/12" in output
    assert "<Oak checkbox> -> CLICK" in output
    assert "1:15" in output


def test_a_second_attempt_and_judging_are_shown(clock: Clock) -> None:
    progress = watching(
        clock,
        RunStarted(run_id="r", total=1),
        TaskStarted(task_id="t", attempt=1, max_steps=5),
        TaskRetried(task_id="t", attempt=1, cause="the browser died"),
    )
    assert "trying again: the browser died" in rendered(progress)
    progress(TaskStarted(task_id="t", attempt=2, max_steps=5))
    progress(TaskJudging(task_id="t", steps=3))
    output = rendered(progress)
    assert "t (attempt 2)" in output
    assert "judging" in output


def test_the_totals_count_every_outcome_and_estimate_the_time_left(clock: Clock) -> None:
    progress = watching(clock, RunStarted(run_id="r", total=10, kept=2))
    clock.now += 60
    for number, outcome in enumerate(("success", "failure", "unscored", "aborted")):
        progress(TaskDone(task_id=f"t{number}", outcome=outcome, steps=1, reason="r"))
    output = rendered(progress)
    assert "6 of 10 tasks" in output
    for outcome in ("1 success", "1 failure", "1 unscored", "1 aborted"):
        assert outcome in output
    assert "about 1:00 left" in output


def test_kept_tasks_come_first_and_are_counted_in_the_bar(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(Console(file=out, force_terminal=True, width=120), clock=clock)
    entries = a_submission(a_result("t1", verdict=a_verdict()), a_result("t2", verdict=a_verdict("failure")))
    progress.keeps(entries["results"][0]["detail"]["tasks"])
    progress(RunStarted(run_id="r", total=4, kept=2))
    progress(TaskDone(task_id="t3", outcome="success", steps=1, reason="done"))
    text = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert re.findall(r"^(success|failure) +(t\d)", text, re.MULTILINE) == [
        ("success", "t1"),
        ("failure", "t2"),
        ("success", "t3"),
    ]
    assert progress.shown == {"t1", "t2", "t3"}
    assert "3 of 4 tasks  2 success  1 failure" in rendered(progress)


def test_results_that_the_judge_does_not_keep_are_not_shown_as_kept(clock: Clock) -> None:
    progress = Progress(Console(file=io.StringIO(), width=120), clock=clock)
    progress.keeps(a_submission(a_result("t1", verdict=a_verdict()))["results"][0]["detail"]["tasks"])
    progress(RunStarted(run_id="r", total=4, kept=0))
    assert progress.shown == set()
    assert "0 of 4 tasks  elapsed" in rendered(progress)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_last_line_wraps_at_words_on_a_terminal_only(is_terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=40, color_system=None)
    with console.capture() as capture:
        print_summary(console, a_submission(a_result("t1", verdict=a_verdict())), None, already_shown={"t1"})
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert (len(lines) > 1) is is_terminal
    rates = "white_agent: success rate 100.0 %, 1 of 1 scored task (95 % interval"
    assert " ".join(lines).startswith(rates)
    assert not is_terminal or all(len(line) <= 40 for line in lines)


def test_the_epochs_of_a_task_are_distinguished(clock: Clock) -> None:
    progress = watching(
        clock,
        RunStarted(run_id="r", total=1, epochs=2),
        TaskDone(task_id="t", outcome="success", steps=2, reason="r"),
        TaskStarted(task_id="t", epoch=2, attempt=1, max_steps=5),
    )
    assert "t.2" in rendered(progress)
    assert "1 of 2 attempts" in rendered(progress)


def test_a_task_that_is_done_leaves_the_table(clock: Clock) -> None:
    progress = watching(
        clock,
        RunStarted(run_id="r", total=2),
        TaskStarted(task_id="gone_soon", attempt=1, max_steps=5),
        TaskDone(task_id="gone_soon", outcome="success", steps=2, reason="r"),
    )
    assert "gone_soon" not in rendered(progress)


def test_markup_in_an_action_is_shown_and_not_obeyed(clock: Clock) -> None:
    progress = watching(
        clock,
        TaskStarted(task_id="t", attempt=1, max_steps=5),
        StepDone(task_id="t", step=1, max_steps=5, action="[red]not red[/red] [bold", executed=True),
    )
    assert "[red]not red[/red] [bold" in rendered(progress)


def test_what_a_start_waits_for_is_named_until_it_is_up(clock: Clock) -> None:
    progress = watching(clock)
    progress.waiting_for(["shop", "green_agent"])
    clock.now += 5
    assert "Waiting for shop, green_agent … 0:05" in rendered(progress)
    progress.is_up("shop")
    assert "Waiting for green_agent …" in rendered(progress)
    progress.is_up("green_agent")
    assert "the judge prepares the run" in rendered(progress)
    progress(RunStarted(run_id="r", total=1))
    assert "prepares" not in rendered(progress)


def test_the_progress_bar_grows_with_the_finished_tasks(clock: Clock) -> None:
    progress = watching(clock, RunStarted(run_id="r", total=2))
    assert rendered(progress).count("━") == 0
    progress(TaskDone(task_id="t", outcome="success", steps=2, reason="r"))
    assert rendered(progress).count("━") == 10


def piped(display: Display | None = None) -> tuple[str, Progress]:
    """What a run of two tasks prints into a pipe of 40 columns."""
    text = io.StringIO()
    console = Console(file=text, width=40, quiet=display in ("json", "none"))
    with Progress(console, display, task_ids=["t", "oak_desks"]) as progress:
        progress.waiting_for(["shop"])
        progress.is_up("shop")
        progress(RunStarted(run_id="r", total=2))
        progress(TaskStarted(task_id="t", attempt=1, max_steps=5))
        progress(StepDone(task_id="t", step=1, max_steps=5, action="<Oak checkbox> -> CLICK", executed=True))
        progress(TaskJudging(task_id="t", steps=2))
        progress(TaskDone(task_id="t", outcome="failure", steps=2, reason="[bold]because[/bold] " * 10))
        progress(TaskDone(task_id="oak_desks", outcome="success", steps=1, reason="all checks passed"))
        progress(RunDone(successes=1, scored=2, total=2))
    return text.getvalue(), progress


def test_without_a_terminal_a_task_is_one_line_and_ids_are_aligned() -> None:
    text, _ = piped()
    lines = text.splitlines()
    assert lines[:3] == ["Waiting for shop", "Everything is up, the judge prepares the run", "Assessment r: 2 tasks."]
    assert lines[3].startswith("failure    t            2/5 steps  [bold]because[/bold] [bold]because[/bold]")
    assert lines[4] == "success    oak_desks       1 step  all checks passed"
    assert len(lines) == 5


def test_json_is_one_object_per_line_and_nothing_else() -> None:
    text, _ = piped("json")
    events = [json.loads(line) for line in text.splitlines()]
    assert [
        event["event"] for event in events
    ] == "phase phase run_started task_started step_done task_judging task_done task_done run_done".split()
    assert events[-2] == {
        "event": "task_done",
        "task_id": "oak_desks",
        "epoch": 1,
        "outcome": "success",
        "steps": 1,
        "reason": "all checks passed",
    }


@pytest.mark.parametrize(
    ("page", "line"),
    [
        (LivePage(url="http://127.0.0.1:9009/"), "Live page: http://127.0.0.1:9009/\n"),
        (LivePage(url=None, note="the judge has none"), "Live page: none (the judge has none)\n"),
    ],
)
def test_the_address_of_the_live_page_is_a_line_and_in_json_an_event(page: LivePage, line: str) -> None:
    plain, lines = io.StringIO(), io.StringIO()
    Progress(Console(file=plain, width=120), "plain").live_page(page)
    Progress(Console(file=lines, quiet=True), "json").live_page(page)
    assert plain.getvalue() == line
    assert json.loads(lines.getvalue()) == {"event": "live_page", "url": page.url, "note": page.note}


def test_none_shows_nothing() -> None:
    assert piped("none")[0] == ""


def test_on_a_terminal_a_long_reason_stays_in_its_column() -> None:
    text = io.StringIO()
    progress = Progress(Console(file=text, force_terminal=True, width=60, no_color=True), "plain", task_ids=["t"])
    progress(TaskDone(task_id="t", outcome="failure", steps=2, reason="one two three four five six seven eight nine"))
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.getvalue().splitlines()]
    assert lines[0].startswith("failure")
    assert len(lines) == 2
    assert lines[1].startswith(" " * 25)


# --- the summary at the end -------------------------------------------------------------------------------------------


def a_detail(**changes: Any) -> dict[str, Any]:
    task = {
        "task_id": "oak_desks",
        "level": "easy",
        "verdict": "failure",
        "steps_taken": 3,
        "max_steps": 12,
        "reason": "the [bold]filter[/bold]\nwas wrong",
    }
    base = {
        "success_rate": 0.0,
        "judged_successes": 0,
        "scored_tasks": 1,
        "unscored_tasks": 0,
        "aborted_tasks": 0,
        "confidence_interval_95": [0.0, 95.0],
        "cost_usd": None,
        "judge": {"note": None},
        "tasks": [task],
    }
    return base | changes


def test_a_task_that_was_shown_is_not_listed_again(tmp_path: Path) -> None:
    text = io.StringIO()
    tasks = [{**a_detail()["tasks"][0], "task_id": name} for name in ("kept_from_before", "just_done")]
    submission = {"results": [{"winner": "white_agent", "detail": a_detail(tasks=tasks)}]}
    print_summary(Console(file=text, width=120), submission, None, already_shown={"just_done"})
    assert "kept_from_before" in text.getvalue()
    assert "just_done" not in text.getvalue()


def test_nothing_scored_has_no_rate(tmp_path: Path) -> None:
    text = exit_and_output(tmp_path, scored_tasks=0, unscored_tasks=1, total_tasks=1)[1]
    assert "white_agent: no task was scored; of all tasks (1): 0.0 %, 1 unscored" in text
    assert "interval" not in text


def exit_and_output(tmp_path: Path, **changes: Any) -> tuple[int, str]:
    text = io.StringIO()
    submission = {"participants": {}, "results": [{"winner": "white_agent", "detail": a_detail(**changes)}]}
    code = print_summary(Console(file=text, width=120), submission, RunStore(tmp_path, "r1"))
    return code, text.getvalue()


def test_a_task_is_one_line_with_its_verdict_and_why(tmp_path: Path) -> None:
    code, text = exit_and_output(tmp_path)
    line = next(line for line in text.splitlines() if "oak_desks" in line)
    assert code == 0
    assert "failure" in line
    assert "3/12" in line
    assert "the [bold]filter[/bold] was wrong" in line


def test_what_was_lost_is_counted_and_changes_the_exit_code(tmp_path: Path) -> None:
    code, text = exit_and_output(tmp_path, aborted_tasks=2, unscored_tasks=1)
    assert code == 1
    assert "1 unscored" in text
    assert "2 aborted" in text


def test_a_success_that_a_frozen_site_does_not_confirm_is_not_lost(tmp_path: Path) -> None:
    task = a_detail()["tasks"][0] | {"verdict": "unscored", "reason_code": "off_archive", "coverage": "off_archive"}
    code, text = exit_and_output(tmp_path, tasks=[task], scored_tasks=0, unscored_tasks=1, total_tasks=1)
    assert code == 0
    assert "1 success not confirmed: record more ways" in text
    assert "incomplete" not in text


def test_an_unknown_cost_is_not_shown_as_nothing(tmp_path: Path) -> None:
    assert "judge cost unknown" in exit_and_output(tmp_path)[1]
    assert "judge cost $0.4200" in exit_and_output(tmp_path, cost_usd=0.42)[1]
    assert "judge cost" not in exit_and_output(tmp_path, cost_usd=0.0)[1]


def test_a_judges_own_warning_is_repeated(tmp_path: Path) -> None:
    assert "a baseline" in exit_and_output(tmp_path, judge={"note": "a baseline"})[1]


def test_a_mixed_run_shows_a_rate_for_each_kind_of_verdict(tmp_path: Path) -> None:
    counts = {"success_rate": 50.0, "judged_successes": 1, "scored_tasks": 2}
    one = {"checks": counts}
    assert "decided by" not in exit_and_output(tmp_path, by_truth=one)[1]
    text = exit_and_output(tmp_path, by_truth={**one, "judge": counts}, judge={"model": "openai:o4-mini"})[1]
    assert "decided by checks: 50.0 %, 1 of 2 scored tasks" in text
    assert "decided by judge model openai:o4-mini: 50.0 %" in text


def test_tasks_on_a_site_that_was_not_reset_are_counted(tmp_path: Path) -> None:
    (task,) = a_detail()["tasks"]
    assert (
        "shared_state: 1 played on a site" in exit_and_output(tmp_path, tasks=[{**task, "flags": ["shared_state"]}])[1]
    )


def test_scripts_that_screenshots_show_as_boxes_are_named_with_the_number_of_tasks(tmp_path: Path) -> None:
    (task,) = a_detail()["tasks"]
    tasks = [{**task, "flags": flags} for flags in (["undrawn_thai", "undrawn_emoji"], ["undrawn_thai"], ["off_site"])]
    assert (
        "no font for: 2 tasks with text in Thai, emoji; screenshots show boxes"
        in exit_and_output(tmp_path, tasks=tasks)[1]
    )


def test_repeats_are_summed_up_in_a_line_of_their_own(tmp_path: Path) -> None:
    results = [a_result("t", epoch=n, verdict=a_verdict(each)) for n, each in enumerate(("success", "failure"), 1)]
    text = io.StringIO()
    print_summary(Console(file=text, width=200), a_submission(*results), None, already_shown={"t"})
    assert "success rate 50.0 %, 1 of 2 scored attempts at 1 task" in text.getvalue()
    assert "2 epochs; pass@k and pass^k: k=1: 50.0 % and 50.0 %, k=2: 100.0 % and 0.0 %" in text.getvalue()
    assert "success    t " not in text.getvalue()
    assert "failure    t.2" in text.getvalue()


def test_the_remedy_for_a_spent_budget_is_printed_once_and_names_the_option(tmp_path: Path) -> None:
    unpaid = a_verdict("unscored", reason="judge model: the budget of 1 USD is spent", reason_code=BUDGET_SPENT)
    results = [a_result(f"t{number}", verdict=unpaid) for number in range(3)]
    store = RunStore(tmp_path, "r1")
    store.create()
    store.write_run({"config": {"max_judge_cost_usd": 1}})
    text = io.StringIO()
    print_summary(Console(file=text, width=200), a_submission(*results), store)
    assert text.getvalue().count("wabe score r1 with a higher --max-cost-usd") == 1
    assert "--max-tokens" not in text.getvalue()
    print_summary(Console(file=text, width=200), a_submission(*results), None)
    assert text.getvalue().count("start the judge with a higher --max-cost-usd or --max-tokens") == 1


def test_verdicts_that_lack_because_the_model_was_not_reached_name_the_command_that_gives_them(tmp_path: Path) -> None:
    unreached = a_verdict("unscored", reason="judge model: cannot be reached", reason_code=MODEL_UNREACHED)
    store = RunStore(tmp_path, "r1")
    store.create()
    text = io.StringIO()
    print_summary(
        Console(file=text, width=200), a_submission(*(a_result(f"t{n}", verdict=unreached) for n in "ab")), store
    )
    assert "the judge model could not be reached, 2 verdicts missing: wabe score r1 once it can be" in text.getvalue()
