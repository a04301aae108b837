"""The report's folder."""

import base64
import hashlib
import posixpath
import re
import shutil
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.attacked import attacked
from helpers.results import JUDGE, a_finished_run, a_result, a_verdict, write_verdict_on
from helpers.runs import a_png, say_everywhere, write_synthetic_run, write_task
from judge.records.tasks import Task
from judge.report.build import make_report, report_folder
from judge.report.data import read_task
from judge.report.pages import Renderer
from judge.results.folders import FolderStore
from judge.results.rows import COLUMNS
from judge.store.layout import RunStore
from shared.errors import ConfigError

TASK = Task(task_id="t1", website="https://www.lamps.example/", task="Find a lamp.")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><!-- {{ 7*7 }} \u202e"


class Tags(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def tags_of(html: str) -> Tags:
    parser = Tags()
    parser.feed(html)
    return parser


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    return write_synthetic_run(tmp_path / "out", tasks=6, steps=3)


def test_a_report_has_a_page_per_task_and_every_screenshot(run: RunStore, tmp_path: Path) -> None:
    index = make_report([run], tmp_path / "report")
    assert index == tmp_path / "report" / "index.html"
    assert len(list((tmp_path / "report" / "tasks").iterdir())) == 6
    assert len(list((tmp_path / "report" / "images").glob("*/step_*.png"))) == 18


def test_the_final_page_is_shown_apart_from_the_steps(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "20260101-000000-test")
    store.create()
    write_task(store, TASK, image=a_png(), steps=2, has_final_look=True)
    task = read_task(store.task("t1"))
    make_report([store], tmp_path / "report")
    html = (tmp_path / "report" / "tasks" / "t1.html").read_text()
    assert (len(task.steps), html.count('<article class="step"'), '<section id="final"' in html) == (2, 2, True)
    assert "../images/t1/screenshot.png" in tags_of(html).addresses
    assert (tmp_path / "report" / "images" / "t1" / "screenshot.png").read_bytes() == a_png()


def test_every_address_in_a_report_lies_in_its_folder_or_is_a_link_to_the_web(run: RunStore, tmp_path: Path) -> None:
    index = make_report([run], tmp_path / "report")
    for page in [index, *(tmp_path / "report" / "tasks").iterdir()]:
        for address in tags_of(page.read_text()).addresses:
            if not address.startswith(("#", "data:image/svg+xml,", "https://")):
                target = (page.parent / address.split("#")[0]).resolve()
                assert target.is_file(), f"{page.name}: {address}"
                assert target.is_relative_to((tmp_path / "report").resolve())


def test_aborted_unscored_and_unfinished_tasks_are_named_on_the_front_page(run: RunStore, tmp_path: Path) -> None:
    (run.task("task_000").folder / "result.json").unlink()
    html = make_report([run], tmp_path / "report").read_text()
    assert re.search(r"\d of 6 tasks are not in the rate", html)
    assert {"1 unscored", "1 aborted", "1 unfinished"} <= set(re.findall(r"1 (?:unscored|aborted|unfinished)", html))


def test_an_incomplete_run_is_marked_beside_its_rate_of_all_tasks(run: RunStore, tmp_path: Path) -> None:
    html = make_report([run], tmp_path / "report").read_text()
    assert html.index("Incomplete: 3 of 6 tasks are not in the rate") < html.index('aria-label="Summary"')
    assert re.search(r"Of all 6 tasks: <b>[\d.]+\xa0%</b>", html)


def test_a_comparison_marks_the_run_that_is_incomplete(run: RunStore, tmp_path: Path) -> None:
    html = make_report([run, run], tmp_path / "both").read_text()
    assert "<b>Incomplete:</b> A (3 of 6 not scored), B (3 of 6 not scored)." in html


def test_an_earlier_report_is_replaced(run: RunStore, tmp_path: Path) -> None:
    make_report([run], tmp_path / "report")
    (tmp_path / "report" / "tasks" / "stale.html").write_text("old")
    make_report([run], tmp_path / "report")
    assert not (tmp_path / "report" / "tasks" / "stale.html").exists()


def test_a_folder_with_something_else_in_it_is_left_alone(run: RunStore, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my own page")
    with pytest.raises(ConfigError, match="not a report"):
        make_report([run], tmp_path / "mine")
    assert (tmp_path / "mine" / "index.html").read_text() == "my own page"


def test_a_folder_that_cannot_be_created_is_a_users_error(run: RunStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot write the report"):
        make_report([run], tmp_path / "file" / "report")
    with pytest.raises(ConfigError, match="cannot write the report"):
        make_report([run], tmp_path / "file" / "report.html", single_file=True)


def test_a_report_can_be_made_of_a_run_that_is_still_empty(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "20260101-000000-none")
    store.create()
    assert "No task was scored." in make_report([store], tmp_path / "report").read_text()


def test_making_a_report_changes_nothing_of_the_run(run: RunStore, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    make_report([run], tmp_path / "report")
    assert {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_a_report_made_in_several_processes_is_the_same(
    run: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_report([run], tmp_path / "one")
    monkeypatch.setattr("judge.report.build._MANY_TASKS", 2)
    monkeypatch.setattr("judge.report.build._TASKS_AT_ONCE", 2)
    make_report([run], tmp_path / "several", parallel=True)
    assert contents_of(tmp_path / "several") == contents_of(tmp_path / "one") != {}


def contents_of(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_comparison_holds_the_report_of_each_run(tmp_path: Path) -> None:
    first = write_synthetic_run(tmp_path / "out", "20260101-000000-a", tasks=5)
    later = write_synthetic_run(tmp_path / "out", "20260102-000000-b", tasks=5, seed=3)
    index = make_report([first, later], tmp_path / "both")
    for address in tags_of(index.read_text()).addresses:
        if not address.startswith(("#", "data:")):
            assert (tmp_path / "both" / address).is_file(), address
    assert "McNemar" in index.read_text()


def test_a_comparison_lists_every_task_with_those_that_differ_first(tmp_path: Path) -> None:
    first = write_synthetic_run(tmp_path / "out", "20260101-000000-a", tasks=5)
    later = write_synthetic_run(tmp_path / "out", "20260102-000000-b", tasks=6, seed=3)
    html = make_report([first, later], tmp_path / "both").read_text()
    mixed = re.findall(r'<tr data-mixed="(\w+)"', html)
    assert mixed == sorted(mixed)
    assert len(mixed) == 6
    assert html.count("not in this run") == 1


def test_the_steps_of_a_task_stand_side_by_side_from_where_they_differ(tmp_path: Path) -> None:
    stores = [RunStore(tmp_path / "out", name) for name in ("a", "b")]
    for store, steps in zip(stores, (2, 3), strict=True):
        store.create()
        write_task(store, TASK, steps=steps, image=a_png(), seed=5)
    make_report(stores, tmp_path / "both")
    html = (tmp_path / "both" / "tasks" / "t1.html").read_text()
    # The shorter attempt ends where the other one clicks.
    assert 'First difference at <a href="#step-2">' in html
    assert {"../a/images/t1/step_001.png", "../b/images/t1/step_002.png"} <= set(tags_of(html).addresses)


def test_a_comparison_has_at_most_twelve_runs(run: RunStore, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="2 to 12"):
        make_report([run] * 13, tmp_path / "both")


def test_no_text_of_a_run_becomes_markup(tmp_path: Path) -> None:
    pages = []
    for text in ("calm words", HOSTILE):
        store = write_synthetic_run(tmp_path / text[:4].strip("</"), tasks=4, steps=2, says=text, role=text)
        say_everywhere(store, text)
        pages.append(make_report([store], store.output_dir / "report").parent)
    for name in ("index.html", "tasks/task_000.html", "tasks/task_001.html", "tasks/task_003.html"):
        expected, result = (tags_of((folder / name).read_text()) for folder in pages)
        assert "alert(1)" in (pages[1] / name).read_text()
        assert result.tags == expected.tags, name
        assert result.attributes == expected.attributes, name


def test_no_text_of_a_run_becomes_markup_in_a_comparison_in_one_file(tmp_path: Path) -> None:
    pages = []
    for text in ("calm words", HOSTILE):
        folder = tmp_path / text[:4].strip("</")
        stores = [
            write_synthetic_run(folder, name, tasks=4, steps=2, says=text, seed=len(name)) for name in ("a", "bc")
        ]
        for store in stores:
            say_everywhere(store, text)
        pages.append(make_report(stores, folder / "both.html", single_file=True).read_text())
    expected, result = map(tags_of, pages)
    assert "alert(1)" in pages[1]
    assert (result.tags, result.attributes) == (expected.tags, expected.attributes)


def test_a_single_file_refers_to_its_own_pages_and_files_only(run: RunStore, tmp_path: Path) -> None:
    html = make_report([run], tmp_path / "run.html", single_file=True).read_text()
    known = set(re.findall(r' id="(?:page|file):([^"]*)"', html))
    for page, content in re.findall(r'<template id="page:([^"]*)">(.*?)</template>', html, re.DOTALL):
        for address in tags_of(content).addresses:
            if not address.startswith(("#", "data:image/svg+xml,", "https://")):
                assert posixpath.normpath(posixpath.join(posixpath.dirname(page), address.split("#")[0])) in known
    assert len(known) == 6 + 1 + 2 + 18 + 1


def test_a_single_file_allows_only_its_own_scripts_and_style(run: RunStore, tmp_path: Path) -> None:
    html = make_report([run], tmp_path / "run.html", single_file=True).read_text()
    policy = unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', html)[0])
    assert policy.startswith("default-src 'none'; img-src data:; ")
    assert "unsafe" not in policy
    for kind, tag in (("script", "<script>(.*?)</script>"), ("style", "<style>(.*?)</style>")):
        allowed = policy.partition(f"{kind}-src ")[2].partition(";")[0]
        for text in set(re.findall(tag, html, re.DOTALL)):
            assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in allowed
    assert " style=" not in html


def test_an_earlier_file_is_replaced_and_any_other_is_left_alone(run: RunStore, tmp_path: Path) -> None:
    page = make_report([run], tmp_path / "run.html", single_file=True)
    assert make_report([run], page, single_file=True).read_bytes().endswith(b"</html>\n")
    page.write_text("my own page")
    with pytest.raises(ConfigError, match="is not a report"):
        make_report([run], page, single_file=True)
    assert [path.name for path in tmp_path.glob("run*")] == ["run.html"]
    assert page.read_text() == "my own page"


@pytest.mark.slow
@given(st.text(max_size=60) | st.sampled_from([HOSTILE, "<b>", "]]>", "&lt;", "\ud800", "\x00", "{% raw %}"]))
def test_no_text_adds_a_tag_or_an_attribute_to_a_task_page(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    pages = []
    for says in ("I look.", text or "."):
        store = RunStore(tmp_path_factory.mktemp("run"), "r")
        store.create()
        task = Task(task_id="t1", website="https://a.example/", task=says if says.strip() else "x", level="easy")
        write_task(store, task, "success", steps=2, says=says, image=a_png(16, 9))
        pages.append(tags_of(Renderer().task(read_task(store.task("t1")))))
    # A text may be long enough for a fold of its own, and blank texts are left out; nothing else may differ.
    calm, other = pages
    folds = {"details", "summary", "pre", "dd", "dt", "p", "h3", "div", "span"}
    assert [tag for tag in other.tags if tag not in folds] == [tag for tag in calm.tags if tag not in folds]
    assert other.attributes <= calm.attributes


def test_each_page_allows_only_its_own_script_and_style(run: RunStore, tmp_path: Path) -> None:
    html = make_report([run], tmp_path / "report").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]
    assert len(re.findall(r"<script", html)) == len(re.findall(r"sha256-", policy[1].split("script-src")[1])) == 1
    assert " style=" not in html


@pytest.fixture(params=["finished", "ended_by_page"])
def mixed(tmp_path: Path, request: pytest.FixtureRequest) -> RunStore:
    """A run with a task whose checks failed while the judge said success, and one that only the judge decided."""
    checks = JUDGE.model_copy(update={"method": "checks"})
    failed = {
        "check": "1",
        "description": "Oak is chosen",
        "expected": "oak",
        "found": f"pine {HOSTILE}",
        "passed": False,
    }
    by_checks = a_verdict("failure", judge=checks, evidence={"checks": [failed]})
    task = {**TASK.model_dump(), "checks": [{"kind": "page", "url": "/*"}]}
    checked = a_result(
        "t1", task=Task.model_validate(task), verdict=by_checks, shared_state=True, stop_reason=request.param
    )
    store = a_finished_run(tmp_path / "out", checked, a_result("t2"), judge_id="checks-1")
    write_verdict_on(store.task("t1"), "webjudge-1", a_verdict(reason=f"It is done. {HOSTILE}"))
    return store


def test_a_disagreement_with_ground_truth_is_linked_and_shown_side_by_side(mixed: RunStore, tmp_path: Path) -> None:
    index = make_report([mixed], tmp_path / "report").read_text()
    assert "tasks/t1.html#disagreements" in tags_of(index).addresses
    assert "tasks/t2.html#disagreements" not in tags_of(index).addresses
    assert "a judge that looks at no page" in index
    page = (tmp_path / "report" / "tasks" / "t1.html").read_text()
    section = page.partition('<section id="disagreements">')[2].partition("</section>")[0]
    for text in (">checks<", "Oak is chosen", "Expected: oak", "Found: pine", ">webjudge<", "It is done."):
        assert text in section
    assert "alert(1)</script>" not in index + page


def test_a_mixed_run_has_a_rate_for_each_kind_of_verdict(mixed: RunStore, run: RunStore, tmp_path: Path) -> None:
    section = make_report([mixed], tmp_path / "report").read_text().partition('<section id="truths">')[2]
    assert section.index("Checks") < section.index("Judge model")
    assert 'id="truths"' not in make_report([run], tmp_path / "other").read_text()


def test_judges_are_named_and_one_that_was_asked_again_is_grouped(mixed: RunStore, tmp_path: Path) -> None:
    named = JUDGE.model_copy(update={"model": "openai:gpt-4.1-mini"})
    for judge_id in ("webjudge-1", "webjudge-1.r2", "webjudge-1.r3"):
        outcome = "failure" if judge_id.endswith("3") else "success"
        write_verdict_on(mixed.task("t1"), judge_id, a_verdict(outcome, judge=named))
    index = make_report([mixed], tmp_path / "report").read_text()
    page = (tmp_path / "report" / "tasks" / "t1.html").read_text()
    assert "webjudge · openai:gpt-4.1-mini" in page
    assert "asked 3 times: 2 success, 1 failure" in page
    assert "2 of 3 times" in page
    # In the table of disagreements, with the digest only in the set-up.
    assert index.count("2 of 3 times") == 1
    assert "webjudge-1" not in index.partition('id="setup"')[0]


def test_the_front_page_sums_all_judgings(mixed: RunStore, tmp_path: Path) -> None:
    other = JUDGE.model_copy(update={"method": "rubric", "model": "openai:gpt-4.1-mini"})
    write_verdict_on(mixed.task("t2"), "rubric-1", a_verdict(judge=other, cost_usd=0.5))
    index = make_report([mixed], tmp_path / "report").read_text()
    section = index.partition('<section id="costs">')[2].partition("</section>")[0]
    # Three verdicts at 0.25 (checks and WebJudge on t1, WebJudge on t2), and the rubric's.
    assert re.findall(r"\$[\d.]+", section)[-1] == "$1.25"
    assert section.index("rubric · openai:gpt-4.1-mini") < section.index("All judgings")
    assert "<dt>Judging</dt><dd>$1.25" in index


def test_a_shared_state_is_flagged(mixed: RunStore, tmp_path: Path) -> None:
    assert "1 task was flagged: the site was not brought back" in make_report([mixed], tmp_path / "report").read_text()


def test_each_epoch_of_a_task_has_its_page_and_the_front_page_sums_them_up(tmp_path: Path) -> None:
    both = [a_result("t1", epoch=n, verdict=a_verdict(each)) for n, each in enumerate(("success", "failure"), 1)]
    once = a_finished_run(tmp_path, both[0], run_id="run-0")
    store = a_finished_run(tmp_path, *both)
    index = make_report([once, store], tmp_path / "report").parent / "b" / "index.html"
    text = index.read_text()
    assert "Every task was played 2 times" in text
    # One row for both, with links to each.
    assert re.findall(r'<tr data-outcome="([^"]*)"', text) == ["success failure"]
    assert ">1/2<" in text
    links = {address for address in tags_of(text).addresses if address.startswith("tasks/")}
    assert links == {"tasks/t1.html", "tasks/t1.2.html"}
    assert all((index.parent / link).is_file() for link in links)
    page = tags_of((index.parent / "tasks" / "t1.2.html").read_text()).addresses
    assert "t1.html" in page
    assert {address for address in page if address.startswith("../images/")} >= {"../images/t1.2/step_000.jpg"}
    assert "Every task was played" not in (tmp_path / "report" / "a" / "index.html").read_text()
    assert "sign test" in (tmp_path / "report" / "index.html").read_text()
    assert "This run has no epoch 2 of the task." in (tmp_path / "report" / "tasks" / "t1.2.html").read_text()


def test_a_copied_task_folder_has_its_own_page_and_is_not_a_repeat(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t1"))
    shutil.copytree(store.results / "t1", store.results / "t2")
    text = make_report([store], tmp_path / "report").read_text()
    assert {address for address in tags_of(text).addresses if address.startswith("tasks/")} == {
        "tasks/t1.html",
        "tasks/t2.html",
    }
    assert "Every task was played" not in text


def test_tasks_whose_ids_differ_in_case_only_are_summed_up_apart_with_their_epochs_in_order(tmp_path: Path) -> None:
    ends = {"a": ("success", "failure"), "A": ("success", "success")}
    results = [a_result(name, epoch=n, verdict=a_verdict(ends[name][n - 1])) for n in (1, 2) for name in ends]
    text = make_report([a_finished_run(tmp_path, *results)], tmp_path / "report").read_text()
    rows = [re.findall('href="tasks/([^"]+).html"', row)[1:] for row in text.split("<tr data-outcome=")[1:]]
    # Failures first.
    assert rows == [["a", "a.2"], ["A", "A.2"]]


def test_labels_of_folders_with_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    content = set()
    for model in ("a", "b"):
        folder = tmp_path / model / "eval" / "traj"
        folder.parent.mkdir(parents=True)
        a_finished_run(tmp_path / model, a_result("t1")).results.rename(folder)
        page = make_report([FolderStore(folder, tmp_path)], tmp_path / f"report-{model}").parent / "tasks" / "t1.html"
        content |= set(re.findall('data-labels="([^"]+)"', page.read_text()))
    assert len(content) == 2


def test_every_page_carries_a_policy_before_anything_that_it_could_run(run: RunStore, tmp_path: Path) -> None:
    with report_folder(tmp_path / "begun"):
        begun = (tmp_path / "begun" / "index.html").read_text()
    make_report([run], tmp_path / "one")
    make_report([run, run], tmp_path / "both")
    single = make_report([run], tmp_path / "single.html", single_file=True).read_text()
    pages = {str(path): path.read_text() for path in tmp_path.rglob("*.html") if path.parent.name != "begun"}
    for name, html in {**pages, "begun": begun, "single": single}.items():
        policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)
        assert policy is not None, name
        assert not re.search(r"<(script|style|link|img|body)\b", html[: policy.start()]), name
        assert unescape(policy[1]).startswith("default-src 'none'"), name
        assert "unsafe" not in policy[1], name


def test_tasks_under_attack_are_marked_and_counted_apart_from_their_clean_twins(tmp_path: Path) -> None:
    store = a_finished_run(
        tmp_path, a_result("t1", verdict=a_verdict("failure")), attacked("t1", True, outcome="failure")
    )
    html = make_report([store], tmp_path / "report").read_text()
    rows = re.findall('<tr data-outcome="failure".*?</tr>', html, re.DOTALL)
    assert sorted(('data-attack="attacked"' in row, "attack: a</span>" in row) for row in rows) == [
        (False, False),
        (True, True),
    ]
    chip = re.search(
        'href="#verdict=failure&amp;attack=clean">(.*?)</a>|href="#verdict=failure&attack=clean">(.*?)</a>', html
    )
    assert chip is not None
    assert chip[0].endswith("</span> 1</a>")


def test_a_text_column_can_have_a_heading(run: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [replace(each, heading="Ended") if each.name == "stop_reason" else each for each in COLUMNS]
    monkeypatch.setattr("judge.report.pages.COLUMNS", columns)
    html = make_report([run], tmp_path / "report").read_text()
    assert '<th scope="col">Ended</th>' in html
    assert "<td>finished</td>" in html
