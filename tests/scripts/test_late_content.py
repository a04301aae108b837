from types import ModuleType

import pytest

from helpers.paths import ROOT, load_file
from shared.models import Page


@pytest.fixture(scope="module")
def late_content() -> ModuleType:
    return load_file(ROOT / "benchmarks" / "late_content.py")


def test_every_offered_tool_that_can_change_a_page_is_measured(late_content: ModuleType) -> None:
    assert late_content.unmeasured_tools() == set()


@pytest.mark.parametrize(
    ("kind", "snapshot", "expected"),
    [
        ("timer", "first FINAL t7 second FINAL t7", "captured"),
        ("timer", "first initial t7 second initial t7", "missed"),
        ("timer", "", "missed"),
        ("timer", "first FINAL t7 second initial t7", "wrong"),
        ("timer", "first FINAL t6 second FINAL t6", "wrong"),
        ("timer", "first WRONG t7 second WRONG t7 WRONG t7: a timer ran before its time", "wrong"),
        ("toast", "first initial t7 toast t7", "captured"),
        ("toast", "first initial t7", "missed"),
    ],
)
def test_an_observation_is_judged_by_what_it_shows(
    late_content: ModuleType, kind: str, snapshot: str, expected: str
) -> None:
    case = late_content.Case(late_content.Kind(kind), "click", 0.3, "t7", "http://127.0.0.1:1")
    page = Page(url="", title="", snapshot=f'- paragraph [ref=e1]: "{snapshot}"')
    assert late_content.verdict(page, case, 720)[0] == expected
