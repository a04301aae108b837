"""The documentation's site, before the generator reads it: its navigation, and where links of its pages lead."""

import re

from helpers.paths import ROOT, load_file

SITE = load_file(ROOT / "scripts" / "build_site.py")


def test_the_navigation_has_every_page_of_the_index_once() -> None:
    listed = [line.partition("- ")[2] for line in SITE.navigation() if line.endswith(".md")]
    assert len(listed) == len(set(listed))
    assert [name for name in listed if name != SITE.API and not (ROOT / name).is_file()] == []
    documents = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md") if path.name != "README.md"}
    assert documents < set(listed)


def test_links_to_files_that_are_no_pages_lead_to_the_repository() -> None:
    known = set(SITE.pages())
    text = SITE.staged("docs/scaling.md", known)
    assert f"]({SITE.REPOSITORY}/tree/main/deploy)" in text
    relative = re.findall(r"\]\(((?!https?:|#)[^)#]+)", text)
    assert relative
    assert {str((ROOT / "docs" / each).resolve().relative_to(ROOT)) for each in relative} <= known


def test_the_page_of_the_api_has_every_exported_name() -> None:
    assert "::: wabe.runs.load_run\n" in SITE.api()
