"""Whether the corrected rate of a submission, which may be a stranger's, follows from the labels that it lists."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from judge.results.corrected import CORRECTED, LABELS_KEY, SampleLabel, Stratum, estimate

_LabelCount = Annotated[int, Field(ge=0, le=100_000)]


class _PublishedStratum(BaseModel):
    """As a run with labels lists it."""

    verdict: Literal["success", "failure"]
    attempts: _LabelCount
    labels: _LabelCount
    successes: _LabelCount

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if not self.successes <= self.labels <= self.attempts:
            raise ValueError("more labels than attempts")
        return self


class _PublishedLabels(BaseModel):
    strata: Annotated[tuple[_PublishedStratum, ...], Field(max_length=1_000)]
    settled: _LabelCount


_PUBLISHED = TypeAdapter(_PublishedLabels)


def interval_by_labels(detail: Mapping[str, Any], outcomes: Sequence[str]) -> tuple[float, float] | None:
    """The interval of a submission's corrected rate, in percent, by the labels that it lists, if its attempts ended so.

    `None` if the rate does not follow from them.
    """
    try:
        labels = _PUBLISHED.validate_python(detail.get(LABELS_KEY))
    except ValidationError:
        return None
    sizes = Counter({"failure": labels.settled})
    for each in labels.strata:
        sizes[each.verdict] += each.attempts
    if any(sizes[word] != outcomes.count(word) for word in ("success", "failure")):
        return None
    strata = [
        Stratum(each.verdict, each.attempts, [SampleLabel("", at < each.successes) for at in range(each.labels)])
        for each in labels.strata
    ]
    result = estimate([*strata, Stratum("failure", labels.settled, is_settled=True)])
    rate = detail.get(CORRECTED)
    # Rates of merged parts were rounded.
    if result is None or not isinstance(rate, int | float) or abs(100 * result.rate - rate) > 0.1:
        return None
    low, high = result.interval
    return round(100 * low, 1), round(100 * high, 1)
