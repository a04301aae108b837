"""WebJudge's published requests, as imported from the evaluator's source by `wabe prompts import`.

The common part of all versions of the evaluator is code here; everything that differs between them (texts, markers,
limits, the labels of images) is data in `published.json`. Source: the evaluator of Online-Mind2Web (arXiv:2504.01382),
variants `online_mind2web` and `general`.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field, model_validator

from judge.judges.evidence import read_image
from judge.parsing import Status
from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError
from shared.fields import Invalid
from shared.images import encoded_as_jpeg
from shared.llm.model import Detail, ImagePart, ModelRequest
from shared.models import Record
from shared.text import without_surrogates

FILE = "published.json"
FIELDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "key_points": frozenset({"task"}),
        "image": frozenset({"task", "key_points"}),
        "outcome": frozenset({"task", "key_points", "last_actions", "thoughts"}),
        "outcome_without_images": frozenset({"task", "key_points", "last_actions"}),
    }
)
# As in the source: the first such digit, even inside a larger number (10 counts as 1).
_SCORE = re.compile("[1-5]")


class ImageLabel(Record):
    """How a request labels an image, whatever its bytes are."""

    media_type: str = Field(pattern=r"^image/[a-z]+$")
    detail: Detail | None = None


class InputImages(Record):
    """How a request shows the task's images: after the text, or with a `lead` in a message of their own."""

    label: ImageLabel
    lead: str | None = None


class Stage(Record):
    """One request: its system text, the format string of its text, and its images."""

    system: str
    user: str
    images: ImageLabel | None = None
    inputs: InputImages | None = None


class PublishedEvaluator(Record):
    """The data of one version of the evaluator's source."""

    variant: Literal["online_mind2web", "general"]
    source_sha256: str
    key_points: Stage
    image: Stage
    outcome: Stage
    outcome_without_images: str
    max_images: int = Field(ge=1, le=500)
    # The second of `key_points_markers` is used if the first does not occur.
    key_points_markers: tuple[str, str]
    score_marker: str = Field(min_length=1)
    reason_marker: str = Field(min_length=1)
    reason_end: str = Field(min_length=1)

    @model_validator(mode="after")
    def _fields_are_known(self) -> "PublishedEvaluator":
        texts = {"outcome_without_images": self.outcome_without_images}
        texts |= {name: getattr(self, name).user for name in ("key_points", "image", "outcome")}
        for name, text in texts.items():
            used = fields_of(text)
            # A field may access attributes of its value (`{task.x}`), so complete fields are compared, not names.
            if used != FIELDS[name]:
                raise Invalid(f"{name} shows {sorted(used)}, not {sorted(FIELDS[name])}", "import the source again")
        return self

    def request(
        self, name: str, values: Mapping[str, Any], images: Sequence[Path], inputs: Sequence[Path], reminder: str
    ) -> ModelRequest:
        """The request of a stage, filled in from `values`. Raises `TrajectoryError` for an unreadable image."""
        stage: Stage = getattr(self, name)
        template = self.outcome_without_images if name == "outcome" and not images else stage.user
        text = template.format(**{key: without_surrogates(values[key]) for key in FIELDS[name]})
        encoded_images = [_encoded(path, stage.images) for path in images] if stage.images else []
        encoded = [_encoded(path, stage.inputs.label) for path in inputs] if stage.inputs else []
        lead = stage.inputs.lead if stage.inputs and encoded else None
        if reminder:
            text = f"{text}\n\n{reminder}"
        if lead:
            return ModelRequest(system=stage.system, lead=(lead, *encoded), parts=(text, *encoded_images))
        return ModelRequest(system=stage.system, parts=(text, *encoded, *encoded_images))

    def actions(self, trajectory: Trajectory, *, with_thoughts: bool) -> str:
        """The numbered actions; in the general variant, with the participant's thoughts if `with_thoughts`."""
        lines: Sequence[str] = trajectory.action_history
        if with_thoughts and self.variant == "general":
            # Like the source: pair them in order and drop the rest.
            lines = [f"{line}. Reasoning: {thought}" for line, thought in zip(lines, trajectory.thoughts, strict=False)]
        return numbered(lines)

    def clean_key_points(self, reply: str) -> str:
        """The key points in the form in which later requests show them."""
        first, second = self.key_points_markers
        text = reply.replace("\n\n", "\n")
        parts = text.split(first)
        text = parts[1] if len(parts) > 1 else text.split(second)[-1]
        return "\n".join(line.lstrip() for line in text.splitlines())

    def reason(self, reply: str) -> str:
        """The reason for a screenshot's score, in one line."""
        text = reply.split(self.reason_marker)[-1].strip().lstrip("\n")
        return text.split(self.reason_end)[0].replace("\n", " ")

    def score(self, reply: str) -> int:
        """The score as the source reads it: 0 if it finds none."""
        parts = reply.split(self.score_marker)
        match = _SCORE.search(parts[1]) if len(parts) > 1 else None
        return int(match[0]) if match else 0


def numbered(lines: Sequence[str]) -> str:
    """`1. …` for each text."""
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def published_status(reply: str) -> Status:
    """The verdict as the source reads it: failure if it finds none."""
    parts = reply.lower().split("status:")
    return "success" if len(parts) > 1 and "success" in parts[1] else "failure"


def fields_of(text: str) -> set[str]:
    """The fields of a format string as written, including any conversion and format."""
    try:
        return {
            f"{name}!{conversion}" if conversion else f"{name}:{form}" if form else name
            for _, name, form, conversion in Formatter().parse(text)
            if name is not None
        }
    except ValueError as error:
        raise Invalid(f"not a format string: {error}", "import the source again") from None


def _encoded(path: Path, label: ImageLabel) -> ImagePart:
    """The image as the source sends it: re-encoded as JPEG, with the source's label, whatever the format was."""
    try:
        data = encoded_as_jpeg(read_image(path))
    # Image decoders raise all kinds of exceptions on foreign bytes.
    except Exception as error:  # noqa: BLE001
        raise TrajectoryError(f"not an image that can be encoded as JPEG: {error!a:.200}", location=str(path)) from None
    return ImagePart(data=data, detail=label.detail, named_type=label.media_type)
