"""Task sets that come with the judge."""

import pytest

from helpers.runner.commands import ROOT
from judge.scenario.bundled import bundled_tasks
from shared.errors import ConfigError


def test_a_bundled_set_is_found_by_the_name_of_its_folder() -> None:
    assert len(bundled_tasks("demo", ROOT / "scenarios")) >= 10


@pytest.mark.parametrize("name", ["nope", "", "..", "../scenarios/demo"])
def test_a_name_that_is_no_set_is_refused_and_the_known_ones_are_named(name: str) -> None:
    with pytest.raises(ConfigError, match=r"is no bundled task set.*demo"):
        bundled_tasks(name, ROOT / "scenarios")
