"""The corrected success rate of a run: from its label files and plan to what its submission, report and rows say."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Self

from judge.plugins.labels.label_files import LabelFiles, Opinions, labels_folder, rule_of
from judge.plugins.labels.label_plan import LabelPlan, read_plan
from judge.plugins.labels.labelled import LabelledAttempt, attempts_of, strangers
from judge.results.corrected import CORRECTED, LABELS_KEY, Estimate, SampleLabel, Stratum, estimate, missing_labels
from judge.store.layout import RunStore
from shared.fields import as_mapping
from shared.text import counted

PLAN_FILE = "plan.json"
RULES = {
    "single": "one label each",
    "unanimous": "unanimous labels",
    "majority": "the label of more than half of those who labelled",
    "adjudicated": "adjudicated labels",
}


@dataclass(frozen=True)
class Correction:
    """What people's labels say of a run's attempts. `strata` are the plan's, with the labels of drawn attempts;
    `opinions` are each seed's, which shards that were merged have of their own.

    `not_drawn` attempts are in no stratum, because they came after the last draw: without them there is no estimate.
    """

    strata: tuple[Stratum, ...]
    opinions: tuple[tuple[Opinions, ...], ...]
    plan: LabelPlan
    lines: Mapping[str, int] = field(default_factory=dict)
    undecided: int = 0
    not_drawn: int = 0

    @classmethod
    def of(cls, attempts: Sequence[LabelledAttempt], plan: LabelPlan, lines: Mapping[str, int]) -> Self:
        """From the attempts of a run, or of some of its tasks, with what people say of them."""
        judged = {each.key: each for each in attempts if not each.is_settled}
        strata, sampled, known = [], defaultdict[int, list[LabelledAttempt]](list), set()
        for planned, sample_size in zip(plan.strata, plan.sample_sizes, strict=True):
            there = [judged[key] for key in planned.keys if key in judged]
            known |= {each.key for each in there}
            sample = [judged[key] for key in planned.keys[:sample_size] if key in judged]
            labels = [SampleLabel(each.website, each.label == "success") for each in sample if each.is_decided]
            strata.append(Stratum(planned.verdict, len(there), labels))
            sampled[planned.seed] += sample
        settled = sum(each.is_settled for each in attempts)
        strata += [Stratum("failure", settled, is_settled=True)] if settled else []
        return cls(
            strata=tuple(strata),
            opinions=tuple(
                tuple(each.opinions for each in sample if each.opinions is not None) for sample in sampled.values()
            ),
            plan=plan,
            lines=dict(lines),
            undecided=sum(each.label == "undecided" for sample in sampled.values() for each in sample),
            not_drawn=len(judged.keys() - known),
        )

    @property
    def estimate(self) -> Estimate | None:
        """The corrected rate; `None` where it cannot be given."""
        return None if self.not_drawn else estimate(self.strata)

    @property
    def missing(self) -> int:
        """How many more labels it needs at least."""
        return missing_labels(self.strata)

    @property
    def is_stuck(self) -> bool:
        """Whether it needs more labels than there are attempts without one: some are undecided."""
        without = sum(stratum.size for stratum in self.strata if not stratum.is_settled) - self.labels - self.undecided
        return self.missing > without

    @property
    def labels(self) -> int:
        """The number of labels in it."""
        return sum(len(stratum.labels) for stratum in self.strata)

    @property
    def why_absent(self) -> str:
        """Why there is no corrected rate, in one line; empty if there is one."""
        if self.not_drawn:
            return f"{counted(self.not_drawn, 'attempt')} not in the plan: wabe label RUN --labels N draws from them"
        if self.is_stuck:
            decide = "wabe label RUN --conflicts decides those on which people differ"
            return (
                f"no attempt is left to label, and people left {counted(self.undecided, 'attempt')} undecided: {decide}"
            )
        return f"{counted(self.missing, 'more label')} needed for a corrected success rate" if self.missing else ""

    def published(self) -> dict[str, Any]:
        """As in a submission's detail; empty without an estimate."""
        result = self.estimate
        if result is None:
            return {}
        opinions = list(chain.from_iterable(self.opinions))
        return {
            CORRECTED: round(100 * result.rate, 1),
            LABELS_KEY: {
                "interval_95": [round(100 * edge, 1) for edge in result.interval],
                "standard_error": round(100 * result.standard_error, 3),
                "labels": self.labels,
                "undecided": self.undecided,
                "labellers": len({name for each in opinions for name in each.lines}),
                "rule": ", ".join(sorted({rule_of(each) for each in self.opinions if each})),
                "conflicts": sum(each.is_conflict for each in opinions),
                "blind": sum(all(line.blind for line in each.lines.values()) for each in opinions),
                "strata": [
                    {
                        "verdict": stratum.verdict,
                        "attempts": stratum.size,
                        "labels": len(stratum.labels),
                        "successes": stratum.successes,
                    }
                    for stratum in self.strata
                    if not stratum.is_settled
                ],
                "settled": sum(stratum.size for stratum in self.strata if stratum.is_settled),
                "websites": len(result.by_website),
                "plan": {"seeds": self.plan.seeds, "draws": len(self.plan.sizes), "drawn": sum(self.plan.sample_sizes)},
                "lines": dict(self.lines),
            },
        }


class LabelledRun:
    """A run with its labels."""

    def __init__(
        self,
        store: RunStore,
        *,
        folder: Path | None = None,
        upto: Mapping[str, int] | None = None,
        draws: int | None = None,
    ) -> None:
        """Read it; with `upto` only so many lines of each file, with `draws` the plan as it was then.

        The labels are those in `folder`, by default beside the run. Raises `ConfigError`.
        """
        self.store = store
        folder = folder or labels_folder(store)
        self.files = LabelFiles.read(folder, upto)
        plan = read_plan(folder / PLAN_FILE)
        self.plan = plan if plan is None or draws is None else plan.at(draws)
        self.attempts = attempts_of(store, self.files)

    def correction_on(self, tasks: Collection[str]) -> Correction | None:
        """What the labels say of these tasks only."""
        attempts = [each for each in self.attempts if each.key.task_id in tasks]
        return Correction.of(attempts, self.plan, self.files.counts) if self.plan else None

    @property
    def correction(self) -> Correction | None:
        """What the labels say of the whole run; `None` without a plan."""
        return Correction.of(self.attempts, self.plan, self.files.counts) if self.plan else None

    def published(self) -> dict[str, Any]:
        """What the detail of the run's submission says of people's labels; empty without enough of them."""
        return self.correction.published() if self.correction else {}

    @property
    def notes(self) -> list[str]:
        """Lines and labels that do not count, in one line each."""
        return [*map(str, self.files.problems), *strangers(self.files, self.attempts)]


def has_labels(store: RunStore) -> bool:
    """Whether anybody labelled attempts of the run, or is about to."""
    return labels_folder(store).is_dir()


def label_text(detail: Mapping[str, Any]) -> str:
    """The corrected success rate of a submission in one line; empty without one."""
    rate, labels = detail.get(CORRECTED), as_mapping(detail.get(LABELS_KEY))
    if not isinstance(rate, int | float) or not labels:
        return ""
    edges = labels.get("interval_95")
    interval = f" {edges}" if isinstance(edges, list) else ""
    number = labels.get("labels")
    people = f"{counted(number, 'label')} of people" if isinstance(number, int) else "people's labels"
    return f"corrected success rate {rate} %{interval}, from {people} ({rules_text(labels)})"


def rules_text(labels: Mapping[str, Any]) -> str:
    """By which rules the labels of a submission were made of several people's, in words."""
    return "; ".join(RULES.get(each, "unknown rule") for each in _rules_in(labels))


def _rules_in(labels: Mapping[str, Any]) -> list[str]:
    return str(labels.get("rule")).split(", ")


def merged_labels(details: Sequence[Mapping[str, Any]], attempts: Sequence[int]) -> dict[str, Any]:
    """The corrected rate of several submissions together, with so many scored attempts each.

    Empty unless all of them have one: they were sampled independently of each other.
    """
    try:
        return _merged(
            [as_mapping(each[LABELS_KEY]) for each in details], [each[CORRECTED] for each in details], attempts
        )
    except (KeyError, TypeError, ZeroDivisionError):
        # One is not labelled, or not by this program.
        return {}


def _merged(
    corrections: Sequence[Mapping[str, Any]], rates: Sequence[float], attempts: Sequence[int]
) -> dict[str, Any]:
    total = sum(attempts)
    weights = [count / total for count in attempts]
    rate = sum(weight * each for weight, each in zip(weights, rates, strict=True)) / 100
    spread = sum(
        (weight * each["standard_error"] / 100) ** 2 for weight, each in zip(weights, corrections, strict=True)
    )
    merged_estimate = Estimate(rate, spread, {})
    rules = {rule for each in corrections if each["rule"] for rule in _rules_in(each)}
    return {
        CORRECTED: round(100 * rate, 1),
        LABELS_KEY: {
            "interval_95": [round(100 * edge, 1) for edge in merged_estimate.interval],
            "standard_error": round(100 * merged_estimate.standard_error, 3),
            **{
                key: sum(each[key] for each in corrections)
                for key in ("labels", "undecided", "conflicts", "blind", "settled")
            },
            "labellers": max(each["labellers"] for each in corrections),
            "rule": ", ".join(sorted(rules)),
            "strata": [stratum for each in corrections for stratum in each["strata"]],
            "parts": [dict(each) for each in corrections],
        },
    }
