"""What a meter saw of a run: in its submission, and in several together."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.results.metering import PARTICIPANT_COST, PARTICIPANT_USAGE, Metering
from judge.results.part import RunPart


class MeteredRun(RunPart):
    """The calls of a run's participant."""

    keys = (PARTICIPANT_COST, PARTICIPANT_USAGE)

    def totals(self) -> Mapping[str, Any]:
        metering = Metering.of(self.store)
        total = metering.total if metering else None
        return total.published() if total else {}

    @classmethod
    def merged(cls, details: Sequence[Mapping[str, Any]], scored: Sequence[int]) -> Mapping[str, Any]:
        """Empty unless all were metered: the sum of some would look like the usage of all.

        A cost that one does not know is absent.
        """
        tables = [each.get(PARTICIPANT_USAGE) for each in details]
        usages = [each for each in tables if isinstance(each, Mapping)]
        if not usages or len(usages) < len(details):
            return {}
        costs = [each.get(PARTICIPANT_COST) for each in details]
        known = [cost for cost in costs if isinstance(cost, int | float)]
        numbers = {
            key: sum(value for each in usages if isinstance(value := each.get(key), int | float))
            for key, first in usages[0].items()
            if isinstance(first, int | float)
        }
        models = {str(model) for each in usages for model in _items(each.get("models"))}
        dates = {each.get("price_date") for each in usages}
        together = {"models": sorted(models), "price_date": dates.pop() if len(dates) == 1 else None}
        return {
            **({PARTICIPANT_COST: round(math.fsum(known), 6)} if len(known) == len(costs) else {}),
            PARTICIPANT_USAGE: {key: (numbers | together).get(key, first) for key, first in usages[0].items()},
        }


def _items(value: object) -> Iterator[object]:
    yield from value if isinstance(value, list | tuple) else ()
