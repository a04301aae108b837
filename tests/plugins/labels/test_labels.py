"""People's labels: their files and plans, what counts, and what results say of them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner

from helpers.plugins import sign_run, skip_without_command, verify_run, verify_signature
from helpers.results import a_result, a_verdict, write_attempt
from judge.commands.app import app
from judge.plugins.labels.corrections import LabelledRun
from judge.plugins.labels.label_files import LabelFiles, Opinions, append_label, label_file, labels_folder, rule_of
from judge.plugins.labels.label_plan import read_plan
from judge.plugins.labels.labelling import begin, end, import_labels
from judge.results.corrected import CORRECTED, LABELS_KEY
from judge.results.part import publish
from judge.results.tables import TableAttempt, table_of
from judge.store.layout import RunStore
from plugins.labels.labelled import SEED, a_line, a_run_to_label, label_truly, labelled_run, number_of, say, truth
from shared.errors import ConfigError

pytestmark = pytest.mark.slow

PEOPLE = sum(map(truth, range(60))) / 60


def detail_of(run: RunStore) -> dict[str, object]:
    detail: dict[str, object] = json.loads((run.folder / "results.json").read_text())["results"][0]["detail"]
    return detail


def labels_in_rows(run: RunStore) -> dict[str, object]:
    return {
        each.row.task_id: each.row.values()["human_label"] for each in table_of(run) if isinstance(each, TableAttempt)
    }


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key.pem"
    path.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def test_forty_labels_correct_a_run(tmp_path: Path) -> None:
    run = labelled_run(tmp_path)
    assert end([run]) == ["run-1: results.json has the corrected success rate"]
    detail = detail_of(run)
    labels = detail[LABELS_KEY]
    assert isinstance(labels, dict)
    low, high = labels["interval_95"]
    assert detail["success_rate"] == 33.3
    assert low < 100 * PEOPLE < high
    assert (labels["labels"], labels["labellers"], labels["rule"], labels["blind"]) == (40, 1, "single", 40)
    assert sum(each["attempts"] for each in labels["strata"]) == 60
    assert labels["plan"] == {"seeds": [SEED], "draws": 1, "drawn": 40}
    assert labels["websites"] == 4
    assert verify_run(run).mismatches == verify_run(labelled_less(tmp_path)).mismatches


def labelled_less(folder: Path) -> RunStore:
    """The same run without labels: what does not match there is not due to them."""
    return a_run_to_label(folder / "other")


def test_below_twenty_labels_there_is_no_corrected_rate_but_the_number_that_is_missing(tmp_path: Path) -> None:
    run = labelled_run(tmp_path, 19)
    assert end([run]) == ["run-1: 1 more label needed for a corrected success rate"]
    assert CORRECTED not in detail_of(run)
    assert LABELS_KEY not in detail_of(run)


def test_a_session_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path)
    first = begin([run], "anna", labels=40, seed=1)
    label_truly(first, 7)
    later = begin([run], "anna")
    assert (later.labelled, later.next_open()) == (7, 7)
    assert [place.attempt.key for place in later.places] == [place.attempt.key for place in first.places]
    assert begin([run], "bert").labelled == 0


def test_undo_takes_back_label_by_label_also_those_of_an_earlier_session(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path)
    label_truly(begin([run], "anna", labels=30), 3)
    session = begin([run], "anna")
    assert [session.undo(), session.undo(), session.undo(), session.undo()] == [2, 1, 0, None]
    assert begin([run], "anna").labelled == 0
    assert len(label_file(run, "anna").read_text().splitlines()) == 6


def test_more_labels_extend_the_plan_and_keep_what_was_drawn(tmp_path: Path) -> None:
    run = labelled_run(tmp_path, 20)
    before = [place.attempt.key for place in begin([run], "anna").places]
    more = begin([run], "anna", labels=40)
    assert len(more.places) == 40
    assert {place.attempt.key for place in more.places} > set(before)
    assert more.labelled == 20


def test_as_many_labels_as_are_drawn_change_no_plan(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path)
    label_truly(begin([run], "anna", labels=40, seed=SEED), 17)
    before = read_plan(labels_folder(run) / "plan.json")
    for labels in (40, 30, None):
        begin([run], "anna", labels=labels)
        assert read_plan(labels_folder(run) / "plan.json") == before


def test_the_draw_can_be_repeated_from_its_seed_and_is_not_the_order_of_the_verdicts(tmp_path: Path) -> None:
    one, other = a_run_to_label(tmp_path / "a"), a_run_to_label(tmp_path / "b")
    drawn = [
        [number_of(session, place) for place in range(40)]
        for session in (begin([run], "anna", labels=40, seed=7) for run in (one, other))
    ]
    assert drawn[0] == drawn[1]
    verdicts = [number % 3 == 0 for number in drawn[0]]
    assert 0 < sum(verdicts[:20]) < 20


def test_attempts_of_several_runs_are_mixed_and_each_run_has_its_own_plan(tmp_path: Path) -> None:
    runs = [a_run_to_label(tmp_path, run_id=f"run-{number}") for number in (1, 2)]
    session = begin(runs, "anna", labels=60, seed=3)
    ids = [place.run.run_id for place in session.places]
    assert {ids[:20].count("run-1") > 3, ids[:20].count("run-2") > 3} == {True}
    label_truly(session)
    for run in runs:
        correction = LabelledRun(run).correction
        assert correction is not None
        assert correction.estimate is not None
        assert set(LabelledRun(run).files.lines) == {"anna"}


def test_labels_outside_the_plan_are_not_part_of_the_sample(tmp_path: Path) -> None:
    run = labelled_run(tmp_path, 20)
    drawn = {place.attempt.key.task_id for place in begin([run], "anna").places}
    outside = next(f"t{number}" for number in range(60) if f"t{number}" not in drawn)
    before = LabelledRun(run).correction
    say(run, "anna", outside, "success")
    after = LabelledRun(run).correction
    assert before is not None
    assert after is not None
    assert (after.labels, after.estimate) == (before.labels, before.estimate)
    rows = labels_in_rows(run)
    assert rows[outside] == "success"
    assert sum(label is not None for label in rows.values()) == 21


def test_attempts_over_budget_count_as_failures_that_nobody_labels(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path)
    late = a_result("t1", "max_steps", verdict=a_verdict("failure"))
    write_attempt(run.task("t1"), late)
    session = begin([run], "anna", seed=1)
    assert "t1" not in {place.attempt.key.task_id for place in session.places}
    label_truly(session)
    correction = LabelledRun(run).correction
    assert correction is not None
    assert correction.estimate is not None
    assert correction.estimate.rate == pytest.approx(sum(truth(number) for number in range(60) if number != 1) / 60)
    assert correction.published()[LABELS_KEY]["settled"] == 1


def test_an_attempt_that_was_played_again_needs_another_label_and_draw(tmp_path: Path) -> None:
    run = labelled_run(tmp_path, 60)
    write_attempt(run.task("t4"), a_result("t4", verdict=a_verdict("failure"), final_answer="other"))
    labelled = LabelledRun(run)
    assert labelled.notes == ["labels/anna.jsonl: 1 label of another trajectory, such as t4: ignored"]
    assert labelled.correction is not None
    assert labelled.correction.estimate is None
    assert labelled.correction.why_absent.startswith("1 attempt not in the plan")
    session = begin([run], "anna", labels=60)
    assert (len(session.places), session.labelled) == (60, 59)
    label_truly(session)
    again = LabelledRun(run).correction
    assert again is not None
    assert again.estimate is not None


def test_a_trajectory_that_changes_while_it_is_shown_gets_no_label(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path)
    session = begin([run], "anna", labels=20)
    task = session.places[0].attempt.key.task_id
    write_attempt(run.task(task), a_result(task, final_answer="other"))
    with pytest.raises(ConfigError, match="attempt 1: its trajectory has changed since it was drawn"):
        session.say(0, "success")
    assert not label_file(run, "anna").exists()


def damaged(text: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with path.open("a") as stream:
            stream.write(text)

    return damage


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('{"task_id": "t1", "lab', "line 41: cut off: a crash while it was written; ignored"),
        ("not a label\n", "line 41: not JSON; ignored"),
        ('{"task_id": "t1", "label": "good"}\n', "line 41: not a label: trajectory_sha256: Field required"),
        (
            '{"task_id": "t1", "trajectory_sha256": "' + 64 * "0" + '", "label": "good"}\n',
            "line 41: not a label: label: Input should be 'success', 'failure' or 'undecided'",
        ),
    ],
    ids=["half a line", "no JSON", "no digest", "unknown label"],
)
def test_a_line_that_is_not_a_label_is_reported_and_ignored_and_the_others_count(
    tmp_path: Path, text: str, note: str
) -> None:
    run = labelled_run(tmp_path)
    before = LabelledRun(run).correction
    damaged(text)(label_file(run, "anna"))
    session = begin([run], "anna")
    assert session.notes == [f"labels/anna.jsonl: {note}"]
    # Nothing is lost, and the next line stands on its own.
    session.say(0, "undecided", "later")
    assert text in label_file(run, "anna").read_text()
    after = LabelledRun(run)
    assert before is not None
    assert after.correction is not None
    assert (after.correction.labels, after.correction.undecided) == (before.labels - 1, 1)


def test_labels_of_another_run_are_reported_and_ignored(tmp_path: Path) -> None:
    run, other = labelled_run(tmp_path / "a", 20), a_run_to_label(tmp_path / "b", 3, run_id="run-2")
    append_label(label_file(run, "bert"), a_line(other, "t2", "success").model_copy(update={"task_id": "elsewhere"}))
    assert LabelledRun(run).notes == ["labels/bert.jsonl: 1 label of attempts that are not scored in this run: ignored"]


def test_a_file_that_is_not_a_label_file_and_a_changed_plan_are_one_line(tmp_path: Path) -> None:
    run = labelled_run(tmp_path, 20)
    folder = labels_folder(run)
    (folder / "bert.jsonl").mkdir()
    with pytest.raises(ConfigError, match=r"bert\.jsonl"):
        LabelledRun(run)
    (folder / "bert.jsonl").rmdir()
    plan = json.loads((folder / "plan.json").read_text())
    for stratum in plan["strata"]:
        stratum["seed"] = SEED + 1
    (folder / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(ConfigError, match="its order is not that of its seed"):
        read_plan(folder / "plan.json")
    with pytest.raises(ConfigError, match=r"plan\.json: its order"):
        begin([run], "anna")


def test_another_seed_than_the_plans_is_refused(tmp_path: Path) -> None:
    run = labelled_run(tmp_path, 20)
    with pytest.raises(ConfigError, match=f"--seed {SEED + 1}: the plan was drawn with {SEED}"):
        begin([run], "anna", labels=30, seed=SEED + 1)


@pytest.mark.parametrize("name", ["", "a b", "../x", "ä", "x" * 41])
def test_a_labeller_is_a_short_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="--as"):
        begin([a_run_to_label(tmp_path, 3)], name)


def opinions(*labels: str, adjudicated: str | None = None) -> Opinions:
    line = {"task_id": "t", "trajectory_sha256": 64 * "0"}
    text: dict[str, dict[str, object]] = {f"p{number}": {**line, "label": label} for number, label in enumerate(labels)}
    if adjudicated:
        text["chief"] = {**line, "label": adjudicated, "adjudicates": True}
    from judge.plugins.labels.label_files import LabelLine

    return Opinions({name: LabelLine.model_validate(value) for name, value in text.items()})


@pytest.mark.parametrize(
    ("labels", "label", "rule"),
    [
        (opinions("success"), "success", "single"),
        (opinions("success", "success"), "success", "unanimous"),
        (opinions("success", "failure"), "undecided", "majority"),
        (opinions("success", "failure", "failure"), "failure", "majority"),
        (opinions("success", "undecided"), "undecided", "majority"),
        (opinions("success", "success", "undecided"), "success", "majority"),
        (opinions("success", "undecided", "undecided", "undecided"), "undecided", "majority"),
        (opinions("success", "success", "undecided", "failure"), "undecided", "majority"),
        (opinions("undecided", "undecided"), "undecided", "unanimous"),
        (opinions("success", "failure", adjudicated="failure"), "failure", "adjudicated"),
        (opinions("success", "success", "failure", adjudicated="undecided"), "undecided", "adjudicated"),
    ],
)
def test_one_label_of_several(labels: Opinions, label: str, rule: str) -> None:
    assert labels.label == label
    assert rule_of([labels]) == rule


def test_conflicts_are_adjudicated_by_someone_who_sees_the_labels(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path)
    wrong = frozenset({3, 8, 21})
    label_truly(begin([run], "anna", seed=1))
    label_truly(begin([run], "bert"), wrong=wrong)
    session = begin([run], "carla", conflicts=True)
    assert {number_of(session, place) for place in range(len(session.places))} == wrong
    assert set(session.others(0)) == {"anna", "bert"}
    before = LabelledRun(run).correction
    assert before is not None
    assert before.undecided == 3
    label_truly(session)
    after = LabelledRun(run).correction
    assert after is not None
    assert after.published()[LABELS_KEY]["rule"] == "adjudicated"
    assert after.published()[CORRECTED] == round(100 * PEOPLE, 1)


def test_imported_labels_count_for_agreement_and_those_of_other_tasks_are_reported(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path, 10)
    path = tmp_path / "labels.csv"
    path.write_text("task_id,human\nt1,1\nt2,0\nt3,not executable\nt4,\nelsewhere,1\n")
    count, notes = import_labels(run, "anna", path, "human")
    assert count == 3
    assert notes == [f"{path}: 1 label of tasks without a scored attempt, such as elsewhere"]
    lines = LabelFiles.read(labels_folder(run)).lines["anna"]
    assert [(line.task_id, line.label, line.page, line.blind) for line in lines] == [
        ("t1", "success", 0, False),
        ("t2", "failure", 0, False),
        ("t3", "undecided", 0, False),
    ]


def test_verify_recomputes_the_corrected_rate_from_the_lines_that_it_was_made_of(tmp_path: Path) -> None:
    run = labelled_run(tmp_path, 40)
    publish(run)
    begin([run], "anna", labels=50)
    label_truly(begin([run], "anna"))
    verification = verify_run(run)
    assert [line for line in verification.mismatches if "label" in line or "corrected" in line] == []
    assert "labels made since results.json was written are not in it" in verification.notes
    path = run.folder / "results.json"
    path.write_text(path.read_text().replace(f'"{CORRECTED}": ', f'"{CORRECTED}": 1'))
    assert any(line.startswith(f"results.json: {CORRECTED}: 1") for line in verify_run(run).mismatches)
    label_file(run, "anna").unlink()
    assert any(line.startswith(f"results.json: {CORRECTED}") for line in verify_run(run).mismatches)


def test_labels_after_signing_are_added_and_the_next_signature_covers_them(tmp_path: Path, key: Path) -> None:
    run = labelled_run(tmp_path, 20)
    publish(run)
    sign_run(run, key)
    assert verify_signature(run, key).added == ()
    label_truly(begin([run], "anna", labels=40))
    label_truly(begin([run], "bert"), 2)
    assert end([run]) == ["run-1: the run is signed: results.json changes when it is signed again (wabe sign)"]
    verification = verify_signature(run, key)
    assert verification.mismatches == ()
    assert verification.added == ("labels/anna.jsonl: 20 lines", "labels/bert.jsonl", "labels/plan.json: 1 draw")
    before = detail_of(run)[LABELS_KEY]
    sign_run(run, key)
    assert verify_signature(run, key).added == ()
    assert detail_of(run)[LABELS_KEY] != before
    lines = label_file(run, "anna").read_text().splitlines(keepends=True)
    label_file(run, "anna").write_text("".join([*lines[1:], lines[0]]))
    assert verify_signature(run, key).mismatches == ("labels/anna.jsonl: changed since it was signed",)


def test_the_summary_in_markdown_has_the_corrected_rate(tmp_path: Path) -> None:
    skip_without_command("export")
    run = labelled_run(tmp_path)
    done = CliRunner().invoke(app, ["export", str(run.folder), "--format", "markdown", "--output", "-"])
    assert re.search(
        r"^By people: corrected success rate [\d.]+ % \[[\d.]+, [\d.]+\], from 40 labels of people \(one label each\)$",
        done.stdout,
        re.MULTILINE,
    )


def test_a_row_has_the_label_of_people_and_none_without_one(tmp_path: Path) -> None:
    run = a_run_to_label(tmp_path, 3)
    say(run, "anna", "t1", "failure")
    assert labels_in_rows(run) == {"t0": None, "t1": "failure", "t2": None}
