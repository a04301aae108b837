"""What plug-ins add to the core's records."""

from dataclasses import dataclass, fields

import pytest

from shared import plugins
from shared.errors import ConfigError
from shared.models import Record
from shared.plugins import Facts, Plugin, PluginOptions, extended


class Own(Record):
    steps: int = 0


class Gusts(Facts):
    gusts: int = 7


@dataclass(frozen=True, kw_only=True)
class Row:
    task: str


@dataclass(frozen=True, kw_only=True)
class GustsColumn:
    gusts: int = 7


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    windy = Plugin(declares=(Gusts,), columns=lambda: GustsColumn)
    monkeypatch.setattr(plugins, "plugins", lambda: {"quiet": Plugin(), "windy": windy})


def test_fields_of_plug_ins_follow_those_of_the_record() -> None:
    facts = extended(Own, Facts)
    assert list(facts.model_fields) == ["steps", "gusts"]
    assert facts(steps=2).model_dump() == {"steps": 2, "gusts": 7}
    assert (facts.__name__, facts.__module__) == ("Own", __name__)
    row = extended(Row)
    assert [each.name for each in fields(row)] == ["task", "gusts"]
    assert extended(Own, PluginOptions) is Own


def test_a_plug_in_cannot_take_a_name_that_is_there() -> None:
    with pytest.raises(ConfigError, match="plug-in windy declares 'gusts', which there is already"):
        extended(Gusts, Facts)
