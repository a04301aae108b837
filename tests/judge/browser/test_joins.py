"""Names and texts of elements without a name of their own, as a browser renders them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.browser.hostile_site import Site, hostile_site
from helpers.browser.sessions import a_browser
from helpers.trajectory.recordings import RecordedStep, evaluate_check
from shared.models import Page
from shared.snapshot import as_shown, parse_snapshot

pytestmark = pytest.mark.e2e

# What the paragraph with that content is called.
NAMES = {
    "<a href=x>json</a>.<strong>dumps</strong>(": "json.dumps(",
    "<a href=x>json</a> . <strong>dumps</strong> (": "json . dumps (",
    "<a href=x>a</a><a href=x>b</a>": "ab",
    "<a href=x>a</a>\n<a href=x>b</a>": "a b",
    "<a href=x>a </a><a href=x>b</a>": "a b",
    "<a href=x>a</a><br><a href=x>b</a>": "a b",
    "<a href=x>a</a><a href=x style='display:block'>b</a>": "a b",
    "<a href=x>a</a><a href=x style='display:inline-block'>b</a>": "a b",
    "<a href=x>a</a><a href=x style='float:left'>b</a>": "a b",
    "<em>a<a href=x>b</a></em><em><a href=x>c</a>d</em>": "abcd",
    "<em>a<a href=x>b</a> </em><em><a href=x>c</a>d</em>": "ab cd",
    "<a href=x>a</a><span style='display:none'> </span><a href=x>b</a>": "ab",
    "<a href=x>a</a><script>0</script><a href=x>b</a>": "ab",
    "<a href=x>a</a><img><a href=x>b</a>": "a b",
    "<a href=x>a</a><input><a href=x>b</a>": "a b",
    "<a href=x>a</a><em contenteditable>typed</em><a href=x>b</a>": "atypedb",
    "<a href=x class=note>a</a><a href=x>b</a>": "a (1) b",
    "<a href=x style='display:contents'>a</a><a href=x>b</a>": "ab",
    "<span style='display:flex'><a href=x>a</a><a href=x>b</a></span>": "a b",
    "a<a href=x><h3>b</h3></a>c": "a b c",
}
EDITOR = "<p><a href=x>a</a><em contenteditable>typed</em><a href=x>b</a></p>"
PAGE = "<style>.note::after {{ content: ' (1)' }}</style>{}".format(
    "".join(f"<div role=listitem>{content}</div>" for content in NAMES)
)
FRAME = "<iframe srcdoc='<em>a</em><em>b</em>'></iframe>"
SHADOW = """<div id=host><a href=x>b</a></div><script>
  host.attachShadow({mode: 'open'}).innerHTML = '<em>a</em><slot></slot><em>c</em>'</script>"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with hostile_site(
        {
            "/": PAGE,
            "/shadow": SHADOW,
            "/editor": EDITOR,
            "/frame": f"<iframe srcdoc='{'<em>a</em><em>b</em>'}'></iframe>",
        }
    ) as one:
        yield one


async def observed(url: str) -> Page:
    async with a_browser() as browser:
        await browser.open(url)
        return await browser.observe()


async def test_pieces_are_one_word_where_the_browser_draws_one(site: Site) -> None:
    page = parse_snapshot((await observed(site.url)).snapshot)
    results = [page.name_of(node) for node in page.find("listitem")]
    assert dict(zip(NAMES, results, strict=True)) == NAMES


@pytest.mark.parametrize(("path", "text"), [("shadow", "abc"), ("frame", "ab")])
async def test_shadow_trees_and_frames_are_read_as_they_are_drawn(
    tmp_path: Path, site: Site, path: str, text: str
) -> None:
    names = await observed(f"{site.url}{path}")
    step = RecordedStep(path=names.url, snapshot=names.snapshot)
    check = {"kind": "text", "contains": text}
    assert evaluate_check(tmp_path, check, [step], website=site.url).passed is True


async def test_what_an_editor_separates_is_not_joined_without_it(tmp_path: Path, site: Site) -> None:
    names = await observed(f"{site.url}editor")
    step = RecordedStep(path=names.url, snapshot=names.snapshot)
    for text, editable, passed in (("a b", False, True), ("ab", False, False), ("atypedb", True, True)):
        check = {"kind": "text", "contains": text, "editable": editable}
        folder = tmp_path / text.replace(" ", "_")
        assert evaluate_check(folder, check, [step], website=site.url).passed is passed


async def test_participants_do_not_see_what_is_one_word(site: Site) -> None:
    names = await observed(site.url)
    assert "[joined" in names.snapshot
    assert "[joined" not in as_shown(names.snapshot)
    assert "[joined" not in as_shown(names.snapshot, boxes=True)
