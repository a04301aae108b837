"""What the documents say about names, files and settings is true."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import wabe
from helpers.paths import ROOT, load_file
from judge.config import RunConfig

TRACKED_DOCUMENTS = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout
DOCUMENTS = sorted(TRACKED_DOCUMENTS.split())
PLUGINS = ROOT / "src" / "judge" / "plugins"
LIST = ROOT / "docs" / "plugins.md"
# Set by `wabe run` itself.
NOT_FOR_USERS = {"participant_ids"}


def anchors(path: Path) -> set[str]:
    """What `#…` may name in a document: its headings, as the code host writes them, and explicit anchors."""
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    headings = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"^#+ (.+)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in headings} | set(
        re.findall(r'<a id="([^"]+)"', text)
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_relative_link_leads_to_a_file_and_to_a_heading_of_it(name: str) -> None:
    document = ROOT / name
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)", document.read_text()):
        file, _, anchor = target.partition("#")
        path = (document.parent / file).resolve() if file else document
        # So that whoever takes a plug-in away has only the list to make again.
        assert PLUGINS not in path.parents or document in (LIST, path.parent / document.name), target
        assert path.exists(), target
        assert not anchor or path.suffix != ".md" or anchor in anchors(path), target


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_program_that_a_document_names_exists(name: str) -> None:
    """So that no figure loses its command."""
    named = set(re.findall(r"(?<![\w/.-])(?:benchmarks|scripts)/[a-z][\w/.-]*\w", (ROOT / name).read_text()))
    homes = (ROOT, (ROOT / name).parent)
    assert [path for path in sorted(named) if not any((home / path).exists() for home in homes)] == []


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    links = re.findall(r"\]\(([^)#]+)\)", index.read_text() + LIST.read_text())
    named = {(index.parent / target).resolve() for target in links}
    pages = [ROOT / name for name in DOCUMENTS if name.startswith(("docs/", "src/judge/plugins/"))]
    assert [page for page in pages if page not in {*named, index}] == []


def test_the_list_of_plug_ins_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert load_file(ROOT / "scripts" / "plugins.py").main(["--check"]) == 0, capsys.readouterr().err


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\|([^|]+)\|", text, re.MULTILINE))))
    assert set(RunConfig.model_fields) - NOT_FOR_USERS <= named


@pytest.mark.parametrize("name", ["README.md", "docs/api.md"])
def test_what_a_document_imports_exists(name: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
    assert blocks
    imported = [
        alias.name
        for block in blocks
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ImportFrom) and node.module == "wabe"
        for alias in node.names
    ]
    assert set(imported) <= set(wabe.__all__)


def test_the_python_interface_is_documented() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    assert [name for name in wabe.__all__ if f"`{name}`" not in text] == []


@pytest.mark.parametrize("folder", [".github", "leaderboard/.github"])
def test_no_workflow_uploads_network_traces(folder: str) -> None:
    """Redaction may miss a secret, and an artifact of a public repository is public."""
    workflows = [path.read_text() for path in (ROOT / folder / "workflows").glob("*.yml")]
    uploading = [text for text in workflows if re.search(r"^ *(?:path: )?\.output", text, re.MULTILINE)]
    assert uploading
    for left_out in ("*.har", "console.jsonl", "report"):
        assert all(f"!.output/runs/**/{left_out}" in text for text in uploading), left_out


def test_the_extra_all_has_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert everything == f"wabe[{','.join(sorted(extras))}]"
