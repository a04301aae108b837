import pytest

from helpers.interop.environments import IndexUnreachable, environment


@pytest.fixture(scope="session")
def environments() -> None:
    """The old SDK and google-adk, each where it cannot meet ours."""
    for name in ("v03", "adk"):
        try:
            environment(name)
        except IndexUnreachable as error:
            pytest.skip(f"the package index cannot be reached: {error}")
