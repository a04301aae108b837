"""What the judging code is, and when its checksum changes."""

from pathlib import Path

import pytest

from helpers.paths import ROOT
from judge.judges.code import checksum_below, code_checksum, judging_code

SOURCE = ROOT / "src"
# Code in the same packages as ours, because parsing all of it takes half a second each time.
SMALL = {
    "judge/__init__.py": "",
    "judge/evaluators/__init__.py": "from judge.evaluators.kinds import page",
    "judge/evaluators/kinds/__init__.py": "",
    "judge/evaluators/kinds/page.py": "from judge.records.tools import TOOLS\n\n\ndef hit() -> int:\n    return 1",
    "judge/judges/__init__.py": "from judge.records import lines",
    "judge/judges/prompts/question.txt": "Is it done?",
    "judge/parsing/__init__.py": "from shared import text",
    "judge/records/__init__.py": "",
    "judge/records/lines.py": "LINES = 1",
    "judge/records/tools.py": "TOOLS = ()",
    "judge/store/__init__.py": "",
    "shared/__init__.py": "",
    "shared/text.py": "TEXT = ''",
}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    for name, content in SMALL.items():
        path = tmp_path / "code" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n", encoding="utf-8")
    return tmp_path / "code"


@pytest.fixture(scope="module")
def covered() -> dict[str, bytes]:
    return judging_code(SOURCE)


def test_the_code_checksum_is_a_sha_256() -> None:
    assert len(bytes.fromhex(code_checksum())) == 32


@pytest.mark.slow
def test_modules_that_judging_imports_are_covered_wherever_they_are(covered: dict[str, bytes]) -> None:
    assert (
        set(
            """
        judge/evaluators/kinds/page.py judge/judges/webjudge.py judge/parsing/__init__.py
        judge/records/tools.py judge/records/sites.py judge/trajectory/files.py shared/snapshot.py
        shared/models.py
    """.split()
        )
        <= covered.keys()
    )


def test_the_way_to_the_model_settings_places_and_prompts_are_not_covered(covered: dict[str, bytes]) -> None:
    apart = (
        "shared/llm/",
        "shared/settings.py",
        "shared/seams.py",
        "judge/config.py",
        "judge/store/",
        "judge/browser/",
    )
    assert [name for name in covered if name.startswith(apart) or "prompts/" in name] == []


@pytest.mark.parametrize("name", ["judge/records/tools.py", "judge/evaluators/kinds/page.py", "shared/text.py"])
def test_a_comment_changes_nothing(code: Path, name: str) -> None:
    before = judging_code(code)
    assert name in before
    with (code / name).open("a", encoding="utf-8") as file:
        file.write("\n\n# A comment.\n")
    assert judging_code(code) == before


def test_a_new_line_of_code_changes_the_code_of_its_file_only(code: Path) -> None:
    before = judging_code(code)
    with (code / "judge/records/tools.py").open("a", encoding="utf-8") as file:
        file.write("\nADDED = 1\n")
    changed = judging_code(code).items() ^ before.items()
    assert {name for name, _ in changed} == {"judge/records/tools.py"}


@pytest.mark.parametrize(
    "line",
    [
        "import shared.added",
        "from shared import added",
        "from shared.added import X",
        "def f(): from shared.added import X",
        "from .deeper import y",
    ],
)
def test_a_module_is_covered_from_its_first_import_on(code: Path, line: str) -> None:
    (code / "shared/added.py").write_text("X = 1\n", encoding="utf-8")
    (code / "judge/records/deeper.py").write_text("from shared import added as y\n", encoding="utf-8")
    assert "shared/added.py" not in judging_code(code)
    with (code / "judge/records/lines.py").open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    assert "shared/added.py" in judging_code(code)


def test_a_data_file_of_the_judging_packages_is_covered_as_it_is(code: Path) -> None:
    (code / "judge/parsing/words.txt").write_bytes(b"# not a comment\r\n\xff")
    assert judging_code(code)["judge/parsing/words.txt"] == b"# not a comment\n\xff"


def test_a_kept_checksum_holds_until_a_file_changes(code: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = checksum_below(code, cache)
    (stored_file,) = (cache / "wabe" / "code").iterdir()
    key, checksum = stored_file.read_text().split()
    assert checksum == first == checksum_below(code, None)
    # It is read: another value comes back.
    stored_file.write_text(f"{key} {'0' * 64}\n")
    assert checksum_below(code, cache) == "0" * 64
    with (code / "judge/records/tools.py").open("a", encoding="utf-8") as file:
        file.write("\nADDED = 1\n")
    changed = checksum_below(code, cache)
    assert changed == checksum_below(code, None) != first
    assert stored_file.read_text().split()[1] == changed


@pytest.mark.parametrize("content", [b"", b"one", b"a b c", b"\xff \xff"])
def test_a_damaged_kept_checksum_is_replaced(code: Path, tmp_path: Path, content: bytes) -> None:
    first = checksum_below(code, tmp_path)
    (file,) = (tmp_path / "wabe" / "code").iterdir()
    file.write_bytes(content)
    assert checksum_below(code, tmp_path) == first
    assert file.read_text().split()[1] == first


def test_a_cache_folder_that_cannot_be_written_changes_nothing(code: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "cache"
    blocked.write_bytes(b"a file")
    assert checksum_below(code, blocked) == checksum_below(code, None)
