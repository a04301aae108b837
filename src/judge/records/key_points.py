"""Key points of a task: what must be true when it is done, each a text, or a text with a weight."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from shared.fields import Prose, Table, at_most

Words = Annotated[Prose, Field(min_length=1), at_most(1000)]
MAX_WEIGHT = 1_000_000


class WeightedPoint(Table):
    """A key point that counts more or less than others in the score, or only where its condition holds."""

    text: Words
    weight: Annotated[float, Field(strict=True, gt=0, le=MAX_WEIGHT)]
    condition: Words | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def whole(self) -> str:
        """The text with its condition."""
        return f"{self.text} (Only if this holds, otherwise met: {self.condition})" if self.condition else self.text


def _kind(value: object) -> str:
    return "<weighted>" if isinstance(value, Mapping | WeightedPoint) else "<text>"


# As a user writes it; recorded tasks have longer texts.
DeclaredPoint = Annotated[
    Annotated[Words, Tag("<text>")] | Annotated[WeightedPoint, Tag("<weighted>")], Discriminator(_kind)
]
KeyPoint = Annotated[Annotated[str, Tag("<text>")] | Annotated[WeightedPoint, Tag("<weighted>")], Discriminator(_kind)]


def texts_of(points: Sequence[str | WeightedPoint]) -> tuple[str, ...]:
    """The texts of key points, with their conditions: most judge methods know no others than met and not met."""
    return tuple(point.whole if isinstance(point, WeightedPoint) else point for point in points)


def weights_of(points: Sequence[str | WeightedPoint]) -> tuple[float, ...]:
    """The weights of key points, 1 for those without one."""
    return tuple(point.weight if isinstance(point, WeightedPoint) else 1.0 for point in points)
