from collections.abc import Sequence
from typing import Any

import pytest

from judge.evaluators.kinds.probe import Probes
from judge.records.sites import Site
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from shared.models import Page

SHOP = "http://shop.test/"
SITE = Site(frozenset()).with_home(SHOP)


class Reader:
    """Reads the length of each expression."""

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        return tuple(ProbeValue(value=len(expression)) for expression in expressions)


def probes(*checks: dict[str, Any]) -> Probes:
    known = {"task_id": "t", "website": SHOP, "task": "x", "checks": [{"kind": "probe", **check} for check in checks]}
    return Probes(Task.model_validate(known))


def page(url: str = SHOP, dialog: str | None = None) -> Page:
    return Page(url=url, title="", snapshot="", dialog=dialog)


async def test_each_expression_is_read_once() -> None:
    both = probes({"expression": "a", "min": 1}, {"expression": "bb", "min": 1}, {"expression": "a", "max": 3})
    assert await both.read(Reader(), page(), SITE) == (ProbeValue(value=1), ProbeValue(value=2))


async def test_a_task_without_probes_reads_nothing() -> None:
    assert await probes().read(Reader(), page(), SITE) == ()


@pytest.mark.parametrize(
    ("observed", "why"),
    [
        (page("http://evil.test/"), "a page of another site"),
        (page("http://shop.test:81/"), "a page of another site"),
        (page("javascript:total=1"), "a page of another site"),
        (page("about:blank"), "a page of another site"),
        (page(dialog="confirm: Sure?"), "a dialog is open"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_nothing_is_read_elsewhere_or_under_a_dialog(observed: Page, why: str) -> None:
    one = probes({"expression": "a", "expected": 1, "ends": True})
    values = await one.read(Reader(), observed, SITE)
    assert values == (ProbeValue(error=why),)
    assert not one.has_ended(observed, values, SITE)


@pytest.mark.parametrize(
    ("check", "value", "has_ended"),
    [
        ({"ends": True}, 0, True),
        ({"ends": True}, False, True),
        ({"ends": True}, None, False),
        ({}, 1, False),
        ({"ends": True, "on": "/done"}, 1, False),
        ({"ends": True, "on": "/"}, 1, True),
    ],
)
def test_an_attempt_ends_when_a_probe_with_ends_has_a_value(
    check: dict[str, Any], value: int | bool | None, has_ended: bool
) -> None:
    one = probes({"expression": "a", "expected": 1, **check})
    assert one.has_ended(page(), [ProbeValue(value=value)], SITE) is has_ended
