"""The columns of people's labels."""

from dataclasses import dataclass

from judge.results.columns import RowSource, column


@dataclass(frozen=True, kw_only=True)
class LabelColumns:
    """What people say of an attempt."""

    human_label: str | None = column(lambda it: _label(it), heading="Label", after="max_actions")


def _label(source: RowSource) -> str | None:
    # Its imports need rows.
    from judge.plugins.labels.part import RunLabels

    labels = source.part(RunLabels)
    return labels.of_attempts.of(source) if labels else None
