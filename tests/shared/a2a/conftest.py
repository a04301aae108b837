"""Tests of A2A have a loop each: the SDK leaves tasks behind, which the end of the loop cancels."""

from pathlib import Path

import pytest
from pytest_asyncio import is_async_test

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE) and is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="function"), append=False)
