"""The report of step-level scoring: each page's screenshot with the expected and the chosen element outlined."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.plugins.steps.asking import ScoredStep
from judge.plugins.steps.metrics import StepScore
from judge.plugins.steps.reference import Operation
from judge.report.build import report_folder
from judge.report.output import write
from judge.report.pages import Renderer
from shared.files import write_json
from shared.images import SUFFIXES, image_size, media_type
from shared.snapshot import parse_snapshot

# More would be too much for a browser; `steps.json` contains all of them.
MAX_SHOWN = 1_000
_HEADINGS: Mapping[str, str] = MappingProxyType({"operation_f1": "Operation F1"})

ImageBox = tuple[float, float, float, float]


@dataclass(frozen=True)
class StepComparison:
    """One step: the expected and the chosen action. Boxes are x, y, width and height in pixels of the image."""

    task_id: str
    task: str
    number: int
    last_action: str
    image: str | None
    size: tuple[int, int] | None
    expected: str
    chosen: str
    expected_boxes: tuple[ImageBox, ...]
    chosen_box: ImageBox | None
    score: StepScore


class StepsReport:
    """Collects steps as they are answered, and writes the page. Images are written immediately, not kept in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._views: list[StepComparison] = []
        self._records: list[dict[str, Any]] = []
        with report_folder(folder):
            (folder / "images").mkdir()

    def add(self, answered: ScoredStep, image: bytes | None) -> None:
        """Add one step."""
        reference, choice = answered.reference, answered.choice
        self._records.append(
            {
                "task_id": reference.task_id,
                "index": reference.index,
                "accepted": reference.accepted,
                "expected": reference.operation.model_dump(),
                "choice": choice.model_dump(),
                "scores": answered.score.model_dump(exclude={"task_id", "groups"}),
                "reply": answered.reply,
            }
        )
        if len(self._views) >= MAX_SHOWN:
            return
        self._views.append(_view(answered, image, self._place(answered, image)))

    def _place(self, answered: ScoredStep, image: bytes | None) -> str | None:
        """Write the screenshot; returns its file name."""
        kind = media_type(image) if image is not None else None
        if image is None or kind is None:
            return None
        reference = answered.reference
        name = f"{reference.task_id}_{reference.index:03d}.{SUFFIXES[kind]}"
        (self.folder / "images" / name).write_bytes(image)
        return name

    def write(self, summary: dict[str, Any], *, participant: str, source: str) -> Path:
        """Write the page and `steps.json`; returns the page."""
        # Reversed, so that each task gets the place of its first record.
        order = {record["task_id"]: place for place, record in reversed(list(enumerate(self._records)))}
        self._records.sort(key=lambda record: (order[record["task_id"]], record["index"]))
        views = sorted(self._views, key=lambda view: (order[view.task_id], view.number))
        facts: dict[str, Any] = {"participant": participant, "source": source}
        write_json(self.folder / "steps.json", {**facts, **summary, "results": self._records})
        page = Renderer().page(
            "steps.html",
            package="judge.plugins.steps",
            summary=summary,
            averaged=[
                (key, _HEADINGS.get(key, key.replace("_", " ").capitalize()))
                for key, value in summary.items()
                if isinstance(value, dict) and key != "by"
            ],
            groups={name: values for name, values in summary["by"].items() if len(values) > 1},
            views=views,
            left_out=len(self._records) - len(views),
            **facts,
        )
        path = self.folder / "index.html"
        write(path, page)
        return path


def _view(answered: ScoredStep, image: bytes | None, name: str | None) -> StepComparison:
    reference, choice = answered.reference, answered.choice
    snapshot = parse_snapshot(reference.snapshot)

    def ref_text(ref: str) -> str:
        node = snapshot.by_ref(ref)
        return f'{node.role} "{snapshot.name_of(node)}"'[:200] if node else ref

    def box(ref: str) -> ImageBox | None:
        node = snapshot.by_ref(ref)
        return snapshot.boxes[node.position] if node else None

    expected = " or ".join(map(ref_text, reference.accepted)) or "no element"
    choice_text = ref_text(choice.element) if choice.element else ""
    return StepComparison(
        task_id=reference.task_id,
        task=reference.task,
        number=reference.index + 1,
        last_action=reference.history[-1] if reference.history else "",
        image=name,
        size=image_size(image) if image is not None else None,
        expected=f"{expected} -> {_words(reference.operation)}",
        chosen=choice.complaint or f"{choice_text} -> {_words(choice.operation)}",
        expected_boxes=tuple(accepted_box for accepted_box in map(box, reference.accepted) if accepted_box),
        chosen_box=box(choice.element) if choice.element else None,
        score=answered.score,
    )


def _words(operation: Operation | None) -> str:
    if operation is None:
        return "nothing"
    return f"{operation.op}: {operation.value}" if operation.value else operation.op
