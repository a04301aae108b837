"""The examples in docstrings."""

import doctest
import importlib

import pytest

from helpers.paths import ROOT

MODULES = [
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for path in (ROOT / "src").rglob("*.py")
    if "\n    >>> " in path.read_text()
]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_an_example_gives_what_it_shows(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), raise_on_error=True).attempted > 0
