"""What people's labels say of a run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from judge.plugins.labels.corrections import LabelledRun, has_labels, label_text, merged_labels, rules_text
from judge.plugins.labels.label_files import LabelFiles, labels_folder
from judge.plugins.labels.label_history import growth, merge_labels, stored_lines
from judge.plugins.labels.labelled import PeopleLabels
from judge.results.corrected import CORRECTED, LABELS_KEY, Estimate
from judge.results.part import RunPart
from judge.store.layout import RunStore
from shared.fields import as_mapping
from shared.plugins import ReportSection
from shared.text import counted


class RunLabels(RunPart):
    """The labels beside a run."""

    keys = (CORRECTED, LABELS_KEY)
    title = "By people's labels"

    @cached_property
    def of_attempts(self) -> PeopleLabels:
        """The labels of single attempts."""
        return PeopleLabels(LabelFiles.read(labels_folder(self.store)))

    @cached_property
    def _labelled(self) -> LabelledRun | None:
        return LabelledRun(self.store) if has_labels(self.store) else None

    def read(self) -> None:
        self.totals()

    def totals(self) -> Mapping[str, Any]:
        return self._labelled.published() if self._labelled else {}

    def recorded_totals(self, detail: Mapping[str, Any]) -> Mapping[str, Any]:
        if not any(key in detail for key in self.keys):
            return {}
        labels = as_mapping(detail.get(LABELS_KEY))
        draws = as_mapping(labels.get("plan")).get("draws")
        lines = dict(stored_lines(labels.get("lines")))
        return LabelledRun(self.store, upto=lines, draws=draws if type(draws) is int else 0).published()

    def notes(self, detail: Mapping[str, Any]) -> Iterable[str]:
        if self._labelled is not None:
            yield from self._labelled.notes
            if self.totals() != self.recorded_totals(detail):
                yield "labels made since results.json was written are not in it"

    def section(self, rows: Sequence[Any]) -> ReportSection | None:
        correction = self._labelled.correction if self._labelled else None
        if correction is None or not correction.labels:
            return None
        made, said = correction.estimate, as_mapping(correction.published().get(LABELS_KEY))
        if made is None:
            line = f"{counted(correction.labels, 'label')} of people: {correction.why_absent}."
        else:
            low, high = (f"{100 * edge:.1f}" for edge in made.interval)
            people = counted(said["labellers"], "person", "people")
            line = (
                f"{100 * made.rate:.1f} %, 95 % interval {low} to {high} %, from {counted(said['labels'], 'label')}"
                f" of {people} ({rules_text(said)}), drawn by verdict"
                + (f"; {said['undecided']} undecided." if said["undecided"] else ".")
            )
        return ReportSection(self.title, [line])

    def remark(self) -> str:
        text = label_text(self.totals())
        return f"By people: {text}" if text else ""

    def estimate(self, tasks: Collection[str]) -> Estimate | None:
        correction = self._labelled.correction_on(tasks) if self._labelled else None
        return correction.estimate if correction else None

    def growth(self, name: str, path: Path, sha256: str) -> str:
        return growth(name, path, sha256)

    def join(self, shards: Sequence[RunStore]) -> None:
        merge_labels(self.store, shards)

    @classmethod
    def merged(cls, details: Sequence[Mapping[str, Any]], scored: Sequence[int]) -> Mapping[str, Any]:
        known = [(detail, count) for detail, count in zip(details, scored, strict=True) if count]
        return merged_labels([detail for detail, _ in known], [count for _, count in known])
