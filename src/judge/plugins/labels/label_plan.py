"""Which attempts people are asked to label: a random sample of each counted verdict, drawn before the first label.

The order of a stratum follows from the seed: the attempts by the digest of seed and attempt. Drawing is taking the
first ones, so that more labels extend a sample, and anyone can repeat it. The file has every extension, oldest first.
"""

import hashlib
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError

from judge.plugins.labels.label_files import AttemptKey
from judge.plugins.labels.labelled import LabelledAttempt
from judge.results.corrected import MIN_OF_STRATUM, SampleLabel, Stratum
from shared.errors import ConfigError
from shared.fields import Sha256
from shared.files import read_errors, read_json, write_errors, write_json
from shared.models import Record

MAX_SEED = 2**63 - 1
_MAX_FILE_BYTES = 64_000_000

Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]


class PlannedStratum(Record):
    """The attempts of one counted verdict when they were drawn from, in the order that the seed gives them."""

    verdict: Literal["success", "failure"]
    seed: Seed
    attempts: tuple[tuple[str, int, Sha256], ...]

    @property
    def keys(self) -> list[AttemptKey]:
        """The attempts."""
        return [AttemptKey(*each) for each in self.attempts]

    @property
    def is_in_order(self) -> bool:
        """Whether the order is the seed's."""
        return self.keys == in_order(self.keys, self.seed)


class LabelPlan(Record):
    """`sizes` has, for each time that it was drawn or extended, how many attempts of each stratum are drawn."""

    schema_version: Literal["wabe-label-plan-1"] = "wabe-label-plan-1"
    strata: tuple[PlannedStratum, ...]
    sizes: tuple[tuple[int, ...], ...]

    @property
    def sample_sizes(self) -> tuple[int, ...]:
        """How many of each stratum are drawn now."""
        last = self.sizes[-1] if self.sizes else ()
        return (*last, *[0] * (len(self.strata) - len(last)))

    @property
    def ranked(self) -> list[tuple[str, AttemptKey]]:
        """The drawn attempts with what they are sorted by to be shown, which does not tell their strata."""
        return [
            (_digest(stratum.seed, key, "shown"), key)
            for stratum, count in zip(self.strata, self.sample_sizes, strict=True)
            for key in stratum.keys[:count]
        ]

    @property
    def seeds(self) -> list[int]:
        """The seeds, each once; several if runs were merged."""
        return list(dict.fromkeys(stratum.seed for stratum in self.strata))

    def at(self, extensions: int) -> Self:
        """The plan as it was after so many draws."""
        sizes = self.sizes[:extensions]
        strata = self.strata[: len(sizes[-1]) if sizes else 0]
        return self.model_copy(update={"strata": strata, "sizes": sizes})


def in_order(attempts: Iterable[AttemptKey], seed: int) -> list[AttemptKey]:
    """The attempts in the order in which they are drawn."""
    return sorted(attempts, key=lambda key: (_digest(seed, key, "drawn"), key))


def new_seed() -> int:
    """A seed that nobody who made the attempts could know."""
    return secrets.randbelow(2**32)


def read_plan(path: Path) -> LabelPlan | None:
    """The plan in a file; `None` if there is none. Raises `ConfigError` for a damaged one, or one of another seed."""
    if not path.exists():
        return None
    remedy = "restore it, or move it elsewhere: the next draw makes another"
    with read_errors(path, remedy):
        try:
            plan = LabelPlan.model_validate(read_json(path, max_bytes=_MAX_FILE_BYTES))
        except (ValidationError, ValueError):
            raise ConfigError(f"{path}: not a plan of labels", remedy=remedy) from None
    if not all(stratum.is_in_order for stratum in plan.strata):
        raise ConfigError(f"{path}: its order is not that of its seed", remedy=remedy)
    growing = [
        (*earlier, *[0] * (len(later) - len(earlier)))
        for earlier, later in zip(plan.sizes, plan.sizes[1:], strict=False)
    ]
    is_growing = all(
        len(size) == len(last) and all(map(int.__le__, size, last))
        for size, last in zip(growing, plan.sizes[1:], strict=True)
    )
    fits = len(plan.sample_sizes) == len(plan.strata) and all(
        0 <= count <= len(stratum.attempts) for stratum, count in zip(plan.strata, plan.sample_sizes, strict=True)
    )
    if not (is_growing and fits):
        raise ConfigError(f"{path}: its sizes contradict its attempts", remedy=remedy)
    return plan


def write_plan(path: Path, plan: LabelPlan) -> None:
    """Write the plan atomically. Raises `ConfigError`."""
    with write_errors(path, "check who owns the folder, and the disk's space"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, plan.model_dump(mode="json"))


def extended(
    plans: Mapping[str, LabelPlan | None],
    attempts: Mapping[str, Sequence[LabelledAttempt]],
    target: int | None,
    *,
    seed: int,
) -> dict[str, LabelPlan]:
    """The plans of runs, by run, drawn so that they have `target` attempts together; all attempts if it is `None`.

    A run's new attempts become strata of their own. What is drawn stays drawn. Labels so far say which verdicts need
    more. Raises `ConfigError` if there is nothing to draw.
    """
    grown = {run: _with_new_strata(plans.get(run), attempts[run], seed) for run in attempts}
    labels = {run: {each.key: each for each in attempts[run]} for run in attempts}
    places = [(run, place) for run, plan in grown.items() for place in range(len(plan.strata))]
    strata = [_stratum(grown[run].strata[place], grown[run].sample_sizes[place], labels[run]) for run, place in places]
    total = sum(each.size for each in strata)
    if not total:
        raise ConfigError("no attempt with a verdict to draw from", remedy="judge the run first: wabe score RUN")
    before = [grown[run].sample_sizes[place] for run, place in places]
    everything = [len(grown[run].strata[place].attempts) for run, place in places]
    sizes = everything if target is None else allocate(strata, target, before)
    by_run: dict[str, list[int]] = {run: [] for run in grown}
    for (run, place), size in zip(places, sizes, strict=True):
        by_run[run].append(min(size, len(grown[run].strata[place].attempts)))
    return {
        run: plan if tuple(by_run[run]) == (plan.sizes[-1] if plan.sizes else ()) else _with_sizes(plan, by_run[run])
        for run, plan in grown.items()
    }


def require_seed(plans: Collection[LabelPlan], seed: int) -> None:
    """Raise a `ConfigError` if one of the plans was drawn with another seed."""
    other = next((each for plan in plans for each in plan.seeds if each != seed), None)
    if other is not None:
        raise ConfigError(f"--seed {seed}: the plan was drawn with {other}", remedy="leave --seed out to extend it")


def _with_new_strata(plan: LabelPlan | None, attempts: Sequence[LabelledAttempt], seed: int) -> LabelPlan:
    plan = plan or LabelPlan(strata=(), sizes=())
    known = {key for stratum in plan.strata for key in stratum.keys}
    seed = plan.strata[0].seed if plan.strata else seed
    strata = list(plan.strata)
    verdicts: tuple[Literal["success", "failure"], ...] = ("success", "failure")
    for verdict in verdicts:
        new = [
            each.key for each in attempts if each.verdict == verdict and not each.is_settled and each.key not in known
        ]
        if new:
            ordered_keys = tuple(tuple(key) for key in in_order(new, seed))
            strata.append(PlannedStratum(verdict=verdict, seed=seed, attempts=ordered_keys))
    return plan.model_copy(update={"strata": tuple(strata)})


def _stratum(stratum: PlannedStratum, size: int, attempts: Mapping[AttemptKey, LabelledAttempt]) -> Stratum:
    """What is known of a stratum so far: its attempts still there, and the labels of drawn ones."""
    there = [attempts[key] for key in stratum.keys if key in attempts]
    sampled = [attempts[key] for key in stratum.keys[:size] if key in attempts]
    return Stratum(
        stratum.verdict,
        len(there),
        [SampleLabel(each.website, each.label == "success") for each in sampled if each.is_decided],
    )


def _with_sizes(plan: LabelPlan, sizes: Sequence[int]) -> LabelPlan:
    return plan.model_copy(update={"sizes": (*plan.sizes, tuple(sizes))})


def _digest(seed: int, key: AttemptKey, purpose: str) -> str:
    return hashlib.sha256(f"{purpose} {seed} {key.epoch} {key.task_id} {key.sha256}".encode()).hexdigest()


def allocate(strata: Sequence[Stratum], labels: int, before: Sequence[int] = ()) -> list[int]:
    """How many labels of each stratum to draw so that there are `labels` in all.

    They are proportional to size times expected deviation; each stratum gets what an estimate needs first, and none
    more than it has. As many as were drawn `before` stay drawn.
    """
    sizes = [0 if each.is_settled else each.size for each in strata]
    least = [min(MIN_OF_STRATUM, size) for size in sizes]
    drawn = [max(pair) for pair in zip(least, before, strict=True)] if before else least
    shares = [size * (each.deviation if size else 0.0) for size, each in zip(sizes, strata, strict=True)]
    scale = sum(shares) or 1.0
    for _ in range(max(0, min(labels, sum(sizes)) - sum(drawn))):
        # One at a time to the stratum that lacks most, so that they add up.
        lacking = {
            place: labels * shares[place] / scale - drawn[place]
            for place, size in enumerate(sizes)
            if drawn[place] < size
        }
        drawn[max(lacking, key=lambda place: (lacking[place], -place))] += 1
    return drawn
