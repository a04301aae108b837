"""Runs that people label: many attempts on disk, and label files as the page writes them."""

from pathlib import Path

from helpers.results import a_finished_run, a_result, a_step, a_verdict
from judge.plugins.labels.label_files import LabelLine, LabelWord, append_label, label_file
from judge.plugins.labels.labelled import attempts_of
from judge.plugins.labels.labelling import Labelling, begin
from judge.records.tasks import Task
from judge.store.layout import RunStore

# Every third verdict is a success; of both verdicts, every fifth is wrong.
RIGHT_EVERY, WRONG_EVERY = 3, 5
SEED = 2


def is_success(number: int) -> bool:
    return number % RIGHT_EVERY == 0


def truth(number: int) -> bool:
    """What people say of the attempt with this number."""
    return is_success(number) != (number % WRONG_EVERY == 1)


def a_run_to_label(folder: Path, attempts: int = 60, run_id: str = "run-1", sites: int = 4) -> RunStore:
    results = [
        a_result(
            f"t{number}",
            verdict=a_verdict("success" if is_success(number) else "failure"),
            task=Task(
                task_id=f"t{number}",
                website=f"https://site{number % sites}.example/",
                task=f"Find thing {number}.",
                level="easy",
            ),
        )
        for number in range(attempts)
    ]
    return a_finished_run(folder, *results, run_id=run_id)


def a_hostile_run(folder: Path, text: str, attempts: int = 3) -> RunStore:
    """A run whose participant and pages say `text` wherever they can; its digests are right."""
    results = [
        a_result(
            f"t{number}",
            verdict=a_verdict("success" if is_success(number) else "failure", reason=text),
            task=Task(task_id=f"t{number}", website="https://example.org/", task=f"Find it. {text}", level="easy"),
            steps=(
                a_step(
                    0, title=text, url=f"https://example.org/{text}", line=f"<{text} button> -> CLICK", thought=text
                ),
                a_step(1, title=text, url=f"javascript:{text}", line="<page> -> FINISH", screenshot=None),
            ),
            final_answer=text,
        )
        for number in range(attempts)
    ]
    run = a_finished_run(folder, *results)
    run.write_run({**(run.read_run() or {}), "identity": {"name": text, "card_name": text, "model": text}})
    return run


def number_of(session: Labelling, place: int) -> int:
    return int(session.places[place].attempt.key.task_id.removeprefix("t"))


def label_truly(session: Labelling, count: int | None = None, *, wrong: frozenset[int] = frozenset()) -> None:
    """Label the next attempts as they truly are, except those whose numbers are `wrong`."""
    for _ in range(len(session.places) if count is None else count):
        place = session.next_open()
        if place is None:
            return
        number = number_of(session, place)
        session.say(place, "success" if truth(number) != (number in wrong) else "failure", seconds=2.5)


def labelled_run(folder: Path, labels: int = 40, *, attempts: int = 60, run_id: str = "run-1") -> RunStore:
    """A run in which one person labelled so many drawn attempts."""
    run = a_run_to_label(folder, attempts, run_id)
    label_truly(begin([run], "anna", labels=labels, seed=SEED))
    return run


def a_line(run: RunStore, task_id: str, label: LabelWord | None, **changes: object) -> LabelLine:

    key = next(each.key for each in attempts_of(run) if each.key.task_id == task_id)
    known: dict[str, object] = {"task_id": task_id, "epoch": key.epoch, "trajectory_sha256": key.sha256, "label": label}
    return LabelLine.model_validate(known | changes)


def say(run: RunStore, labeller: str, task_id: str, label: LabelWord | None, **changes: object) -> None:
    append_label(label_file(run, labeller), a_line(run, task_id, label, **changes))
