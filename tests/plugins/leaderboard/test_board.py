"""The static leaderboard page: its rows, groups and data, and submissions of strangers."""

import csv
import json
from html import unescape
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.paths import ROOT
from helpers.results import JUDGE, a_result, a_submission, a_verdict
from judge.commands.app import app
from judge.plugins.leaderboard.board import BoardRow, Present, groups_of, make_board, report_address
from judge.plugins.leaderboard.ranking import placed_rows
from judge.results.submission import Submission
from shared.errors import ConfigError

pytestmark = pytest.mark.slow

QUERIES = ("overall", "cost_per_success", "safety")


def submitted(
    name: str = "mine",
    outcomes: str = "sf",
    *,
    tasks: str = "t",
    scenario: str = "demo",
    judge: Any = JUDGE,
    detail: dict[str, Any] | None = None,
    provenance: dict[str, Any] | None = None,
    **top: Any,
) -> Submission:
    """A submission with an attempt for each letter: success, failure, aborted."""
    results = [
        a_result(f"{tasks}{number}", stop_reason="environment_fault")
        if each == "a"
        else a_result(f"{tasks}{number}", verdict=a_verdict("success" if each == "s" else "failure", judge=judge))
        for number, each in enumerate(outcomes)
    ]
    identity = {"name": name, "card_name": "agent", "card_version": "1.2", "model": "m-1", "scenario": scenario}
    run = a_submission(*results, judge=judge, provenance={"identity": identity, **(provenance or {})})
    run["results"][0]["detail"] |= detail or {}
    return run | top


def write_submissions(folder: Path, *submissions: Submission) -> list[Path]:
    paths = []
    for number, submission in enumerate(submissions):
        paths.append(folder / f"s{number}.json")
        paths[-1].write_text(json.dumps(submission))
    return paths


def groups(folder: Path, *submissions: Submission) -> list[list[BoardRow]]:
    return [list(group.rows) for group in groups_of(placed_rows(write_submissions(folder, *submissions), QUERIES).rows)]


def test_a_row_has_what_the_queries_say_and_who_played(tmp_path: Path) -> None:
    extras = {"participant_cost_usd": 0.5, "coverage": {"full": 3, "uncertain": 1, "off_archive": 0}, "score": 1.0}
    run = submitted("mine", "ssf", detail=extras, report_url="https://reports.test/run/1")
    run["results"][0]["detail"]["tasks"][0]["score"] = 0.625
    [[row]] = groups(tmp_path, run)
    assert (row.rank, row.name, row.agent, row.model, row.id) == (1, "mine", "agent 1.2", "m-1", "id-1")
    assert (row.success_rate, row.success_rate_of_all, row.tasks, row.complete) == (66.7, 66.7, 3, True)
    assert row.interval is not None
    assert row.interval[0] < 66.7 < row.interval[1]
    assert (row.cost_per_success, row.score) == (0.25, 62.5)
    assert (row.coverage, row.date, row.judge) == ("3 of 4 on recorded answers alone", "2023-11-14", "offline")
    assert (row.report, row.host) == ("https://reports.test/run/1", "reports.test")


def test_rows_are_ranked_within_their_group_and_equal_rates_share_a_rank(tmp_path: Path) -> None:
    [rows] = groups(
        tmp_path, *(submitted(name, outcomes) for name, outcomes in zip("abcd", ("sf", "ss", "sf", "ff"), strict=True))
    )
    assert [(row.name, row.rank) for row in rows] == [("b", 1), ("a", 2), ("c", 2), ("d", 4)]


def test_an_incomplete_row_has_no_rank_and_says_why(tmp_path: Path) -> None:
    rows = groups(tmp_path, submitted("good", "sf"), submitted("lost", "sa"))[0]
    assert [(row.name, row.rank, row.why) for row in rows] == [
        ("good", 1, ""),
        ("lost", None, "1 of 2 attempts without a verdict"),
    ]


def test_shards_of_a_submission_are_one_row_with_what_is_missing(tmp_path: Path) -> None:
    parts = []
    for index in range(2):
        shard = {"shard": {"index": index, "of": 2, "tasks": 4, "tasks_sha256": "d"}}
        parts.append(submitted("mine", "sf", tasks=f"p{index}", provenance=shard)["results"][0])
    whole = {"participants": {"white_agent": "id-1"}, "results": parts}
    short = {"participants": {"white_agent": "id-2"}, "results": parts[:1]}
    groups_found = {row.id: row for rows in groups(tmp_path, whole, short) for row in rows}
    row, other = groups_found["id-1"], groups_found["id-2"]
    assert (row.tasks, row.success_rate, row.complete, row.why) == (4, 50.0, True, "")
    assert row.interval is not None
    assert (other.complete, other.rank, other.interval) == (False, None, None)
    assert other.why == "2 of 4 attempts without a verdict; shards 1 of 2; missing: 1"


@pytest.mark.parametrize(
    "other",
    [
        submitted("b", tasks="u"),
        submitted("b", judge=JUDGE.model_copy(update={"model": "openai:m"})),
        submitted("b", provenance={"max_actions": 5}),
        pytest.param(
            submitted("b", provenance={"site_tools": "only"}),
            marks=pytest.mark.skipif(find_spec("judge.plugins.site_tools") is None, reason="a column of that plug-in"),
        ),
        submitted("b", detail={"sealed": "9f" * 32}),
    ],
    ids=["task set", "judge", "actions", "site tools", "sealed"],
)
def test_what_cannot_be_compared_is_never_ranked_together(tmp_path: Path, other: Submission) -> None:
    groups_found = groups(tmp_path, submitted("a"), other)
    assert [[row.rank for row in rows] for rows in groups_found] == [[1], [1]]


def of_2099(run: Submission) -> Submission:
    for entry in run["results"][0]["detail"]["tasks"]:
        entry["task_id_with_timestamp"] = "t_20990101_000000_000001"
    return run


def test_the_owner_says_which_task_set_is_the_present_one(tmp_path: Path) -> None:
    honest, other = submitted("honest", tasks="v1-"), of_2099(submitted("other", "ss", tasks="v2-"))
    more = submitted("more", "ss", tasks="v2-")
    placed = placed_rows(write_submissions(tmp_path, honest, other, more), QUERIES).rows
    task_sets = {each.values["Name"]: each.values["Tasks"] for each in placed}
    for present in ([Present(task_sets["honest"], "mine/scenario.toml")], [Present(task_sets["honest"])]):
        first, second = groups_of(placed, present)
        assert [(row.name, row.rank) for row in first.rows] == [("honest", 1)]
        assert first.title == (present[0].name or f"Task set {task_sets['honest']}")
        assert (first.is_present, second.is_present) == (True, False)
        assert (second.title, second.claimed) == (f"Task set {task_sets['other']}", "demo")
    # Nobody has played it yet.
    empty = groups_of(placed, [Present("0123abcd", "new.toml")])[0]
    assert (empty.title, empty.rows, empty.is_present) == ("new.toml", (), True)


def test_what_checks_let_through_is_the_owners_word_and_what_is_kept_under_variants_a_claim(tmp_path: Path) -> None:
    families = {"settings": {"retained": 100.0, "retained_interval_95": [80, 100.0]}, "time": {"retained": 50}}
    more = {"words": {"pairs": 1}, "style": {"retained": "all"}}
    run = submitted(detail={"robustness": {"by_family": families | more}, "let_through": {"of": 1}})
    placed = placed_rows(write_submissions(tmp_path, run, submitted("other")), QUERIES).rows
    task_set = str(placed[0].values["Tasks"])
    [group] = groups_of(placed, [Present(task_set, measured=("checks let through 1 of 9",))])
    assert "checks let through 1 of 9" in group.facts
    assert not any("let through" in fact for fact in groups_of(placed)[0].facts)
    assert sorted(row.kept_claimed for row in group.rows) == ["", "time 50.0 %, settings 100.0 % (80.0 to 100.0)"]


def test_a_scenario_names_the_present_task_set_of_its_submissions(tmp_path: Path) -> None:
    files = [str(ROOT / "leaderboard" / "examples" / f"{name}-idle.json") for name in ("miniwob", "demo")]
    scenario = str(ROOT / "scenarios" / "demo" / "scenario.toml")
    done = CliRunner().invoke(app, ["leaderboard", *files, "--html", str(tmp_path / "page"), "--present", scenario])
    assert done.exit_code == 0, done.output
    listed = json.loads((tmp_path / "page" / "leaderboard.json").read_text())
    assert [row["tasks"] for row in listed] == [17, 25]
    assert '<h2 id="g1-title">demo/scenario.toml</h2>' in (tmp_path / "page" / "index.html").read_text()


def test_a_corrected_rate_that_does_not_follow_from_labels_is_a_claim(tmp_path: Path) -> None:
    strata = [
        {"verdict": verdict, "attempts": 10, "labels": 10, "successes": successes}
        for verdict, successes in (("success", 10), ("failure", 0))
    ]
    detail = {"corrected_success_rate": 50.0, "labels": {"strata": strata, "settled": 0}}
    claimed = {"corrected_success_rate": 99.0}
    runs = [submitted("a", "s" * 10 + "f" * 10, detail=each) for each in (detail, claimed)]
    [rows] = groups(tmp_path, *runs)
    assert [(row.corrected_rate, row.corrected_claimed) for row in rows] == [(50.0, None), (None, 99.0)]
    assert [row.corrected_interval is None for row in rows] == [False, True]
    page = make_board([tmp_path / "s1.json"], tmp_path / "page").page.read_text()
    assert "claimed to be 99" in page
    assert "Corrected by labels</th>" not in page


# What a stranger may write into a submission, by the path of its keys.
D: tuple[str | int, ...] = ("results", 0, "detail")
HOSTILE_VALUES: list[tuple[tuple[str | int, ...], list[Any]]] = [
    ((*D, "judged_successes"), [1e300, -1, 2**70, "9", [], True]),
    ((*D, "success_rate"), [1e300, 250, -5, "100"]),
    ((*D, "total_tasks"), [10**12, -3, 0.5]),
    ((*D, "score"), [1e300, "1", {}]),
    ((*D, "cost_usd"), [-1, 1e300, "0", []]),
    ((*D, "coverage"), [[1], {"full": 1e300}]),
    ((*D, "is_complete"), ["yes", 1]),
    ((*D, "by_level"), [5, {"easy": {"SUCCESS_RATE": "x", "success_rate": []}}]),
    ((*D, "tasks"), [None, [], [None], 5, [{"task_id": {}}], [{"verdict": 1}], [{"TASK_ID": 1, "task_id": 2}]]),
    ((*D, "tasks", 0, "task_sha256"), [{"a": 1}, 7, ""]),
    ((*D, "tasks", 0, "verdict"), ["SUCCESS", None, 1, {}]),
    ((*D, "tasks", 0, "attack"), [1, {}, {"name": 5}]),
    ((*D, "tasks", 0, "policies"), [1, [1], [{"violated": "no"}]]),
    ((*D, "provenance"), ["x", 5, [], {"identity": 7}, {"shard": {"index": 1e300, "of": 1e300, "tasks": -1}}]),
    ((*D, "provenance", "identity"), [{"name": ["a"], "NAME": "b"}, {"scenario": {"a": 1}}]),
    ((*D, "judge"), [[], {"model": {"a": 1}}, "offline"]),
    (("participants",), [None, [], {"white_agent": 5}, {"WHITE_AGENT": "x", "white_agent": "y"}]),
    (("results",), [5, [5], None]),
]  # fmt: skip


def with_value(run: Any, path: tuple[str | int, ...], value: Any) -> Any:
    *above, last = path
    inner = run
    for key in above:
        inner = inner[key]
    inner[last] = value
    return run


def test_sixty_hostile_submissions_move_no_honest_one(tmp_path: Path) -> None:
    honest = [submitted(name, outcomes) for name, outcomes in zip("abc", ("ssf", "sss", "sff"), strict=True)]
    names = ["\u0000first", "000", " ", HOSTILE, "b"]
    hostile = [
        of_2099(with_value(submitted(names[number % 5], "fff", tasks="tv"[number % 2]), path, value))
        if path not in (("results",), (*D, "tasks"))
        else with_value(submitted("x"), path, value)
        for number, (path, value) in enumerate((path, each) for path, values in HOSTILE_VALUES for each in values)
    ]
    assert len(hostile) >= 60
    files = write_submissions(tmp_path, *hostile, *honest)
    files.append(tmp_path / "torn.json")
    files[-1].write_text('{"results": [')
    alone = groups_of(placed_rows(files[-4:-1], QUERIES).rows)[0]
    rows, left_out = placed_rows(files, QUERIES)
    task_set = next(each.values["Tasks"] for each in rows if each.path == files[-4])
    found = groups_of(rows, [Present(task_set)])[0].rows
    shown = [(row.name, row.rank, row.success_rate) for row in found if row.success_rate]
    assert shown == [(row.name, row.rank, row.success_rate) for row in alone.rows]
    assert tmp_path / "torn.json" in left_out
    assert {tmp_path / f"s{number}.json" for number in range(6)} <= left_out.keys()
    assert not left_out.keys() & set(files[-4:-1])


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("https://a.test/r?x=1#y", "a.test"),
        ("https://a.test:8443/", "a.test"),
        ("http://a.test/", ""),
        ("javascript:alert(1)", ""),
        ("HTTPS://a.test/", "a.test"),
        ("https://good.test@evil.test/", ""),
        ("https:///x", ""),
        ("https://a.test/\u202e", ""),
        ("https://а.test/", ""),
        ("https://a.test/ x", ""),
        ('https://a.test/"onclick=', ""),
        ("https://[::1", ""),
        ("https://a.test:99999/", ""),
        ("https://a.test/" + "x" * 3000, ""),
        (None, ""),
        (["https://a.test/"], ""),
    ],
)
def test_only_addresses_over_tls_are_linked_with_their_host(value: object, host: str) -> None:
    assert report_address(value)[1] == host


class ActiveElements(HTMLParser):
    """The elements of a page that could run or load anything, and the links."""

    def __init__(self) -> None:
        super().__init__()
        self.odd: list[str] = []
        self.links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("img", "iframe", "object", "embed", "base") or any(name.startswith("on") for name, _ in attrs):
            self.odd.append(tag)
        if tag == "a":
            self.links.append(dict(attrs))


HOSTILE = "<img src=x onerror=alert(1)>\"'><script>alert(1)</script>\u202e\x00=cmd()"


def test_a_strangers_texts_stay_texts(tmp_path: Path) -> None:
    run = submitted(
        HOSTILE, scenario=HOSTILE, report_url="javascript:alert(1)", detail={"sealed": HOSTILE, "coverage": [1]}
    )
    run["participants"] = {"white_agent": HOSTILE * 200}
    run["results"][0]["detail"]["corrected_success_rate"] = {"rate": HOSTILE}
    good = submitted("=1+1", report_url="https://a.test/x")
    make_board(write_submissions(tmp_path, run, good), tmp_path / "page")
    text = (tmp_path / "page" / "index.html").read_text()
    active = ActiveElements()
    active.feed(text)
    assert active.odd == []
    outside = [link for link in active.links if str(link["href"]).startswith("https:")]
    assert [(link["href"], link["rel"]) for link in outside] == [("https://a.test/x", "noopener nofollow")]
    assert "script-src 'sha256-" in unescape(text)
    assert len(text) < 60_000
    rows = list(csv.DictReader((tmp_path / "page" / "leaderboard.csv").read_text().splitlines()))
    assert "'=1+1" in {row["name"] for row in rows}
    listed = json.loads((tmp_path / "page" / "leaderboard.json").read_text())
    assert {len(row["id"]) <= 120 for row in listed} == {True}


def test_the_command_writes_the_page_and_replaces_only_its_own(tmp_path: Path) -> None:
    files = list(map(str, write_submissions(tmp_path, submitted())))
    for _ in range(2):
        done = CliRunner().invoke(app, ["leaderboard", *files, "--html", str(tmp_path / "page")])
        assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "page").iterdir()) == [
        "index.html",
        "leaderboard.csv",
        "leaderboard.json",
    ]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    refused = CliRunner().invoke(app, ["leaderboard", *files, "--html", str(tmp_path / "other")])
    assert isinstance(refused.exception, ConfigError)
    assert (tmp_path / "other" / "thesis.txt").read_text() == "mine"
    with_query = CliRunner().invoke(app, ["leaderboard", *files, "--html", str(tmp_path / "page"), "--json"])
    assert isinstance(with_query.exception, ConfigError)


def test_the_bundled_rows_make_a_page_of_two_task_sets(tmp_path: Path) -> None:
    files = sorted((ROOT / "leaderboard" / "examples").glob("*.json"))
    table_rows = groups_of(placed_rows(files, QUERIES).rows)
    assert {group.claimed: {row.name: row.success_rate for row in group.rows} for group in table_rows} == {
        "demo/scenario.toml": {"idle": 0.0, "random": 0.0},
        "miniwob/scenario.toml": {"idle": 0.0, "random": 0.0},
    }


def test_a_page_without_submissions_says_so(tmp_path: Path) -> None:
    empty: Submission = {"participants": {}, "results": []}
    page = make_board(write_submissions(tmp_path, empty), tmp_path / "page").page
    assert "No submissions yet." in page.read_text()
