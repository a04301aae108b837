"""The pages of MiniWoB++ as our own site serves them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from judge.plugins.miniwob.site import create_app, is_seed
from plugins.miniwob.package import NAMES, fake_package


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(fake_package(tmp_path) / "miniwob" / "html", frozenset(NAMES))
    with TestClient(app) as opened:
        yield opened


def test_a_page_begins_by_itself_and_hides_its_score(client: TestClient) -> None:
    answer = client.get("/miniwob/click-test.html?seed=3")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "#reward-display { display: none !important }" in answer.text
    assert answer.text.index("core.startEpisodeReal();") > answer.text.index("window.onload")


def test_what_a_page_loads_is_served(client: TestClient) -> None:
    assert "core.startEpisode" in client.get("/core/core.js").text


@pytest.mark.parametrize(
    "path",
    """
        / /miniwob/click-test.html /miniwob/click-test.html?seed= /miniwob/click-test.html?seed=03
        /miniwob/click-test.html?seed=1000000 /miniwob/click-test.html?seed=3&mode=test
        /miniwob/click-test.html?seed=3&seed=4 /miniwob/other.html?seed=3 /miniwob//click-test.html?seed=3
        /core/../miniwob/click-test.html /core/%2e%2e/miniwob/click-test.html
        /core//../../miniwob/click-test.html
    """.split(),
)
def test_no_page_is_served_without_its_start(client: TestClient, path: str) -> None:
    assert client.get(path, follow_redirects=False).status_code == 404


@given(st.text() | st.integers().map(str))
def test_a_seed_has_one_spelling(text: str) -> None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= 6
    assert is_seed(text) == (is_number and str(int(text)) == text)
