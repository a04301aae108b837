"""`wabe look`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.browser.hostile_site import Page, Site, hostile_site
from judge.commands.app import app
from judge.evaluators.matching import elements_like
from judge.records.elements import parse_element
from shared.errors import ConfigError
from shared.snapshot import parse_snapshot

PAGES: dict[str, Page] = {
    "/": """<title>Shop</title><h1>Shop for <a href=/all>all</a></h1>
    <button onclick="said.textContent='Sold'">Buy</button><p id=said role=status></p>
    <label><input type=checkbox checked> Oak</label><a href=/all>Lamp</a><a href=/all>Lamp</a>
    <button>&#xe8b8; Mu&#x308;ll&#x200b;er</button>
    <script>said.textContent = document.cookie</script>""",
    "/all": "<title>All</title>Nothing",
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with hostile_site(PAGES) as running:
        yield running


def look(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["look", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.e2e
def test_a_page_is_shown_with_its_elements_as_checks_write_them(site: Site, tmp_path: Path) -> None:
    picture = tmp_path / "shop.jpg"
    output = look(site.url, "--screenshot", str(picture))
    head, _, listed = output.partition("\nElements, as checks and scripts name them:\n")
    assert head.startswith(f"Page: {site.url}\nTitle: Shop\n\n- ")
    assert "box=" not in head
    elements = [line.strip() for line in listed.partition("\n\n")[0].splitlines()]
    assert {'heading "Shop for all" [level=1]', 'button "Buy"', 'checkbox "Oak" [checked]'} < set(elements)
    # Composed, without a character that nobody sees, and without the picture of an icon font.
    assert 'button "Müller"' in elements
    assert 'link "Lamp"  (2 of them)' in elements
    page = parse_snapshot(head)
    assert all(elements_like(page, parse_element(line.partition("  (")[0])) for line in elements)
    assert listed.endswith(f"Screenshot: {picture}\n")
    assert picture.read_bytes().startswith(b"\xff\xd8")


@pytest.mark.e2e
def test_a_log_in_and_clicks_come_before_the_look(site: Site, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    domains = ("127.0.0.1", "counter.example")
    cookies = [{"name": "user", "value": "emma", "domain": domain, "path": "/", "expires": -1} for domain in domains]
    state.write_text(json.dumps({"cookies": cookies}))
    assert 'status "user=emma"' in look(site.url, "--storage-state", str(state))
    assert 'status "Sold"' in look(site.url, "--click", 'button "Buy"')
    assert "Title: All" in look(site.url, "--click", 'button "Buy"', "--click", "e3")


@pytest.mark.e2e
def test_a_click_that_names_several_elements_lists_them(site: Site) -> None:
    with pytest.raises(ConfigError, match=r'2 elements on .*name one by its reference: e\d+: link "Lamp"; e\d+: link'):
        look(site.url, "--click", 'link "Lamp"')


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["shop.example"], "'shop.example' is not an address"),
        (["http://shop.example/", "--click", 'knob "Buy"'], "'knob' is not a role"),
        (["http://shop.example/", "--storage-state", "missing.json"], "missing.json: .*wabe tasks login"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_opened(words: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        look(*words)
