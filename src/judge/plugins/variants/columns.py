"""The columns of rows that say under which variant a task was played."""

from dataclasses import dataclass
from hashlib import sha256

from judge.results.columns import RowSource, column

# Two walks part where these differ.
_DIGEST_CHARS = 6


def _name(source: RowSource) -> str | None:
    return source.task.played_variant.declared.name if source.task.played_variant else None


def _family(source: RowSource) -> str | None:
    return source.task.played_variant.declared.family if source.task.played_variant else None


def _walk(source: RowSource) -> tuple[str, ...]:
    lines = ((step.outcome.line if step.outcome else None) or "" for step in source.attempt.steps)
    return tuple(sha256(line.encode()).hexdigest()[:_DIGEST_CHARS] for line in lines)


@dataclass(frozen=True, kw_only=True)
class VariantColumns:
    """The columns. `action_digests`: what tells the actions of two attempts apart, step by step."""

    variant_name: str | None = column(
        _name, entry=True, when=lambda it: it.task.played_variant is not None, added=True, public=True
    )
    variant_family: str | None = column(
        _family, entry=True, when=lambda it: it.task.played_variant is not None, added=True, public=True
    )
    action_digests: tuple[str, ...] = column(_walk)
