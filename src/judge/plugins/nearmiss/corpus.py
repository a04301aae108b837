"""A corpus of attempts whose outcome is known without people: right walks, and near misses with their faulty step."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from judge.plugins.nearmiss.deciding import MissDecision
from judge.plugins.nearmiss.operators import DEFAULTS, OPERATORS
from judge.plugins.nearmiss.recordings import Recorded
from judge.plugins.nearmiss.walks import RIGHT, plays
from shared.errors import ConfigError
from shared.fields import first_mistake
from shared.files import read_errors, read_json, write_errors, write_json
from shared.models import Record, omit_default
from shared.replies import FINISH

FOLDER = "judge-corpus"
LIST = "corpus.json"
# Walks that stop early are recognised by their length alone, and a way is prescribed by few tasks.
OPERATORS_OF_CORPUS = tuple(name for name in DEFAULTS if OPERATORS[name].purpose not in ("early", "way"))


# A folder inside the corpus.
_Folder = Annotated[str, Field(pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*)*$")]


class KnownAttempt(Record):
    """An attempt of the corpus, in its folder there. `human` is what is true of it, `checks` what its checks say.

    `faulty` is the number of the first action that the `twin`, a right walk, does not have, where it did not do the
    task. The names of `task_id` and `human` are as in files of labels.
    """

    task_id: _Folder
    task: str
    human: bool
    checks: bool
    operator: str
    twin: _Folder
    about: str = omit_default("")
    faulty: int | None = omit_default(None)


_KNOWN = TypeAdapter(tuple[KnownAttempt, ...])


def known_attempts(
    name: str, recordings: Sequence[Recorded], decisions: Iterable[MissDecision]
) -> Iterator[KnownAttempt]:
    """The attempts of a scenario of which it is known whether they did the task. `name` is its folder in the corpus."""
    by_walk = {(each.walk.task_id, each.walk.walk_id): each for each in recordings}
    own = [(each, is_done) for each in decisions if (is_done := _is_done(each)) is not None]
    tasks = {each.task_id for each, _ in own}

    def known(task_id: str, walk_id: str, operator: str, **about: Any) -> KnownAttempt:
        task = f"{name}/{task_id}"
        return KnownAttempt(
            task_id=f"{task}/{walk_id}", task=task, operator=operator, twin=f"{task}/{RIGHT}-1", **about
        )

    for task_id, walk_id in (key for key, each in by_walk.items() if each.walk.operator == RIGHT and key[0] in tasks):
        yield known(task_id, walk_id, RIGHT, human=True, checks=True)
    for each, is_done in own:
        faulty = None if is_done else _faulty_action(by_walk[each.task_id, each.walk_id])
        passes = each.kind in ("same", "survivor")
        yield known(
            each.task_id, each.walk_id, each.operator, human=is_done, checks=passes, about=each.about, faulty=faulty
        )


def _is_done(decision: MissDecision) -> bool | None:
    """Whether a walk did its task; `None` where nobody knows."""
    if OPERATORS[decision.operator].purpose == "way" or decision.kind in ("stillborn", "undecided", "way"):
        return None
    if decision.kind in ("survivor", "killed"):
        return False
    # After the task, anything may have happened besides.
    return None if decision.differences else True


def _faulty_action(walk: Recorded) -> int | None:
    """The number of the first action that is not the right walk's; an answer comes after all actions."""
    number, played = 0, iter(walk.trajectory.steps)
    for step in walk.walk.steps[: (walk.walk.faulty or 0) + 1]:
        if step.get("tool") == FINISH:
            return len(walk.trajectory.action_history) + 1
        for each in played:
            number += bool(each.outcome and each.outcome.line)
            if plays(each, step):
                break
        else:
            return None
    return number


def read_corpus(folder: Path) -> tuple[KnownAttempt, ...]:
    """The attempts of a corpus. Raises `ConfigError`."""
    with read_errors(folder / LIST, "build one: wabe judges corpus SCENARIO.toml"):
        try:
            return _KNOWN.validate_python(read_json(folder / LIST))
        except ValidationError as error:
            remedy = "build the corpus again"
            raise ConfigError(f"{folder / LIST}: {first_mistake(error)}", remedy=remedy) from None


def write_corpus(folder: Path, attempts: Sequence[KnownAttempt]) -> None:
    """Write the list of a corpus, which is a file of labels as well. Raises `ConfigError`."""
    with write_errors(folder, "choose another --output"):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / LIST, _KNOWN.dump_python(tuple(attempts), mode="json"))
