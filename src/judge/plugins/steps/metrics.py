"""The step metrics of Mind2Web (Deng et al., 2023), and two from Braintrust's web-agent cookbook. Pure.

Mind2Web's metrics of a step are element accuracy (the chosen element is one of the accepted ones), operation F1 (over
the sets of tokens of `OP VALUE`) and step success (both are 1). As published, all three are 0 for a step without any
accepted element. Each metric is averaged over all steps (micro) and over the averages of the tasks (macro). A task
succeeds if all of its steps do. The cookbook's metrics are whether the operation is right, and whether both the
operation and its value are.
"""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

from judge.plugins.steps.reference import Operation, Reference
from judge.records.metadata import shown
from judge.report.data import host_of
from shared.models import Record, omit_default
from shared.seams import Seam


class Choice(Record):
    """A participant's choice; empty if its reply was unusable, which `complaint` explains. `failed`: there was none."""

    element: str | None = None
    operation: Operation | None = None
    complaint: str = ""
    failed: bool = False


class StepScore(Record):
    """The scores of one step, from 0 to 1."""

    task_id: str
    element_accuracy: float
    operation_f1: float
    step_success: float
    operation: float
    operation_and_value: float
    # By what the step is grouped: the values by name.
    groups: dict[str, str] = omit_default({})


STEP_METRICS: Seam[Callable[[Reference, Choice], float]] = Seam("step_metrics", "metric of steps")
"""Further metrics of a step, from 0 to 1, averaged over steps."""

# As published, these are averaged over steps only.
_MICRO_ONLY = ("operation", "operation_and_value")


def score_step(reference: Reference, choice: Choice) -> StepScore:
    """The scores of a choice."""
    return StepScore(
        task_id=reference.task_id,
        element_accuracy=element_accuracy(reference, choice),
        operation_f1=f1_of_step(reference, choice),
        step_success=step_success(reference, choice),
        operation=operation_alike(reference, choice),
        operation_and_value=operation_and_value(reference, choice),
        groups={
            **{key: shown(value) for key, value in reference.metadata.items()},
            **({"website": host_of(reference.website)} if reference.website else {}),
            "operation": reference.operation.op,
        },
    )


def element_accuracy(reference: Reference, choice: Choice) -> float:
    """Whether the chosen element is an accepted one."""
    return float(choice.element in reference.accepted)


def step_success(reference: Reference, choice: Choice) -> float:
    """Whether element and operation are right."""
    return float(element_accuracy(reference, choice) == 1.0 and f1_of_step(reference, choice) == 1.0)


def operation_alike(reference: Reference, choice: Choice) -> float:
    """Whether the operation is right."""
    return float(choice.operation is not None and choice.operation.op == reference.operation.op)


def operation_and_value(reference: Reference, choice: Choice) -> float:
    """Whether the operation and its value are right."""
    expected, actual = reference.operation, choice.operation
    is_value = expected.op == "CLICK" or (actual is not None and actual.value == expected.value)
    return float(operation_alike(reference, choice) == 1.0 and is_value)


def f1_of_step(reference: Reference, choice: Choice) -> float:
    """F1 over the tokens of the operation; 0 if the data accept no element."""
    return operation_f1(reference.operation, choice.operation) if reference.accepted else 0.0


def operation_f1(expected: Operation, actual: Operation | None) -> float:
    """F1 over the sets of tokens."""
    expected_tokens, actual_tokens = _tokens(expected), _tokens(actual)
    shared = len(expected_tokens & actual_tokens)
    return 2 * shared / (len(expected_tokens) + len(actual_tokens)) if shared else 0.0


def _tokens(operation: Operation | None) -> set[str]:
    if operation is None:
        return set()
    return set(f"{operation.op} {operation.value if operation.op != 'CLICK' else ''}".split())


def averages(scores: Sequence[StepScore]) -> dict[str, Any]:
    """All metrics from 0 to 1, with the numbers of steps and tasks; `None` without a step."""
    tasks: dict[str, list[StepScore]] = {}
    for score in scores:
        tasks.setdefault(score.task_id, []).append(score)
    both = [name for name in StepScore.model_fields if name not in ("task_id", "groups", *_MICRO_ONLY)]
    published = {
        name: {
            "micro": _mean(getattr(score, name) for score in scores),
            "macro": _mean(fmean(getattr(score, name) for score in own) for own in tasks.values()),
        }
        for name in both
    }
    return {
        "steps": len(scores),
        "tasks": len(tasks),
        **published,
        "task_success": _mean(float(all(score.step_success for score in own)) for own in tasks.values()),
        "operation": _mean(score.operation for score in scores),
        "operation_and_value": _mean(score.operation_and_value for score in scores),
    }


def by_group(scores: Sequence[StepScore]) -> dict[str, dict[str, dict[str, Any]]]:
    """The averages over the steps of each group: by website, kind of action, and metadata."""
    names = dict.fromkeys(name for score in scores for name in score.groups)
    grouped: dict[str, dict[str, list[StepScore]]] = {name: {} for name in names}
    for score in scores:
        for name, value in score.groups.items():
            grouped[name].setdefault(value, []).append(score)
    return {name: {value: averages(own) for value, own in sorted(each.items())} for name, each in grouped.items()}


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return fmean(numbers) if numbers else None
