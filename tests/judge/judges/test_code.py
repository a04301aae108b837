"""What the judging code is, and when its checksum changes."""

import shutil
from pathlib import Path

import pytest

from helpers.paths import ROOT
from judge.judges.code import code_checksum, judging_code

SOURCE = ROOT / "src"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in ("judge", "shared"):
        shutil.copytree(SOURCE / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "plugins"))
    return tmp_path


def test_the_code_checksum_is_a_sha_256() -> None:
    assert len(bytes.fromhex(code_checksum())) == 32


def test_modules_that_judging_imports_are_covered_wherever_they_are() -> None:
    covered = judging_code(SOURCE)
    assert {
        "judge/evaluators/kinds/page.py",
        "judge/evaluators/rules_1/evidence.py",
        "judge/judges/webjudge.py",
        "judge/parsing/__init__.py",
        "judge/records/tools.py",
        "judge/sites.py",
        "judge/trajectory/files.py",
        "shared/snapshot.py",
        "shared/models.py",
    } <= covered.keys()


def test_the_way_to_the_model_settings_places_and_prompts_are_not_covered() -> None:
    apart = (
        "shared/llm/",
        "shared/settings.py",
        "shared/seams.py",
        "judge/config.py",
        "judge/store/",
        "judge/browser/",
    )
    assert [name for name in judging_code(SOURCE) if name.startswith(apart) or "prompts/" in name] == []


@pytest.mark.parametrize("name", ["judge/records/tools.py", "judge/evaluators/kinds/page.py", "shared/text.py"])
def test_a_comment_changes_nothing(copy: Path, name: str) -> None:
    with (copy / name).open("a", encoding="utf-8") as file:
        file.write("\n\n# A comment.\n")
    assert judging_code(copy) == judging_code(SOURCE)


def test_a_new_line_of_code_changes_the_code_of_its_file_only(copy: Path) -> None:
    with (copy / "judge/records/tools.py").open("a", encoding="utf-8") as file:
        file.write("\nADDED = 1\n")
    changed = judging_code(copy).items() ^ judging_code(SOURCE).items()
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
def test_a_module_is_covered_from_its_first_import_on(copy: Path, line: str) -> None:
    (copy / "shared/added.py").write_text("X = 1\n", encoding="utf-8")
    (copy / "judge/records/deeper.py").write_text("from shared import added as y\n", encoding="utf-8")
    assert "shared/added.py" not in judging_code(copy)
    with (copy / "judge/records/lines.py").open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    assert "shared/added.py" in judging_code(copy)


def test_a_data_file_of_the_judging_packages_is_covered_as_it_is(copy: Path) -> None:
    (copy / "judge/parsing/words.txt").write_bytes(b"# not a comment\r\n\xff")
    assert judging_code(copy)["judge/parsing/words.txt"] == b"# not a comment\n\xff"
