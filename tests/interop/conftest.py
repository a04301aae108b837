from collections.abc import Iterator

import pytest

from helpers.interop.environments import IndexUnreachable, environment
from helpers.interop.programs import ForeignClients


@pytest.fixture(scope="module")
def environments(request: pytest.FixtureRequest) -> None:
    """The old SDK, and nightly google-adk, each where it cannot meet ours."""
    for name in ("v03", "adk") if request.config.getoption("--nightly") else ("v03",):
        try:
            environment(name)
        except IndexUnreachable as error:
            pytest.skip(f"the package index cannot be reached: {error}")


@pytest.fixture(scope="module")
def clients(environments: None) -> Iterator[ForeignClients]:
    """Foreign clients whose processes the tests of a module share. No longer: others end what their worker started."""
    clients = ForeignClients()
    yield clients
    clients.close()
