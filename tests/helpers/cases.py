"""Tables of cases of which the suite takes each mechanism once, and the nightly run (`--nightly`) takes all."""

from collections.abc import Collection, Hashable, Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Case = TypeVar("Case", bound=Hashable)


def each(cases: Iterable[Case], *, suite: Collection[Case]) -> list[ParameterSet]:
    """Parameters for all cases; those that are not in `suite` are left to the nightly run. A tuple has several."""
    items = list(cases)
    if unknown := [case for case in suite if case not in items]:
        raise ValueError(f"not among the cases: {unknown}")
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=[] if case in suite else [pytest.mark.nightly]
        )
        for case in items
    ]


def selected(request: pytest.FixtureRequest, name: str) -> set[object]:
    """The values of parameter `name` with which this run tests the module: what its fixture has to play."""
    items = (item for item in request.session.items if item.path == request.path)
    calls = (getattr(item, "callspec", None) for item in items)
    return {call.params[name] for call in calls if call is not None and name in call.params}
