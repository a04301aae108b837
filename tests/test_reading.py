"""Files that somebody else may have put there are read in one way: `shared.files.opened` and what is built on it.

A FIFO in a run's folder would otherwise stop a command for ever, and a sparse file of 4 GB fill the memory.
"""

import ast
from collections.abc import Iterator, Mapping

import pytest

from helpers.paths import ROOT

pytestmark = pytest.mark.slow

SOURCES = ROOT / "src"
# Modules that read only files which nobody else writes, and which these are.
OWN: Mapping[str, str] = {
    "shared/files.py": "the reader itself",
    "shared/seams.py": "the code of installed packages",
    "judge/judges/code.py": "the code of installed packages",
    "judge/judges/prompt_set.py": "prompts of installed packages",
    "judge/plugins/new_agent/command.py": "templates of this package",
    "judge/plugins/leaderboard/ranking.py": "queries of this package",
    "judge/plugins/miniwob/site.py": "pages of this package",
    "judge/plugins/nearmiss/recordings.py": "the recording of an attempt that this process has just played",
    "judge/plugins/miniwob/tasks.py": "the code of an installed package",
    "judge/plugins/metering/ledger.py": "the last byte of the file that it writes to",
    "judge/plugins/webarena/package.py": "the log of its own process, in a folder of its own",
    "judge/plugins/webarena/program.py": "a request in a folder of its own",
    "judge/runner/launch.py": "logs of the processes that it has started",
    "judge/results/tables.py": "a temporary file of its own",
    "judge/browser/folders.py": "a lock in a folder of its own",
    "judge/browser/installed.py": "a file of the system's",
    "judge/browser/points.py": "a script of this package",
    "judge/browser/console.py": "a file of its own browser",
    "judge/browser/hosted.py": "a file of its own browser",
    "judge/browser/requests.py": "a file of its own browser",
    "judge/browser/socket_messages.py": "a file of its own browser",
    "judge/store/locks.py": "a lock, opened to be written and without following links",
    "shared/a2a/local_pages.py": "files whose kind was checked, sent as they are",
    "judge/commands/summary.py": "the code of installed packages",
    "judge/plugins/shards/merging_runs.py": "folders copied by `copy_file`",
    "judge/browser/downloads.py": "a file of its own browser",
    "judge/plugins/site_tools/webmcp.py": "a script of this package",
    "judge/plugins/mcp_agents/supervisor.py": "its own specification, and files of the kernel",
    "judge/browser/uploads.py": "files that it creates, in a folder of its own",
    "judge/plugins/sealing/command.py": "a file that it creates",
    "judge/plugins/labels/label_files.py": "the last byte of the file that it writes to",
    "judge/commands/states.py": "a file that it creates",
}
READERS = {"read_bytes", "read_text", "open_binary", "open_text"}
FUNCTIONS = set(
    """
    open io.open os.open gzip.open tarfile.open bz2.open lzma.open zipfile.ZipFile ZipFile shutil.copyfile
    shutil.copy shutil.copy2 shutil.copytree FileResponse mmap.mmap
""".split()
)
LAST_NAMES = READERS | {name.rpartition(".")[2] for name in FUNCTIONS}
# Not a file, but bytes that were read before.
IN_MEMORY = "io.BytesIO"


def reads(source: str) -> Iterator[int]:
    """The lines on which a source opens a file to read it in another way than through `shared.files`."""
    tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Await | ast.Call)]
    # No method of a path's is awaited.
    awaited = {id(node.value) for node in nodes if isinstance(node, ast.Await)}
    for node in nodes:
        if not isinstance(node, ast.Call) or id(node) in awaited:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if (name or getattr(node.func, "id", "")) not in LAST_NAMES:
            continue
        called = ast.unparse(node.func)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if called in FUNCTIONS:
            if not (arguments and ast.unparse(arguments[0]).startswith(IN_MEMORY)) and not _writes(arguments[1:]):
                yield node.lineno
        elif (name == "open" and _is_path(arguments) and not _writes(arguments)) or (
            name in READERS and "resources" not in called
        ):
            yield node.lineno


def _modes(arguments: list[ast.expr]) -> list[str]:
    texts = [each.value for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return [text for text in texts if text and set(text) <= set("rwaxbt+")]


def _is_path(arguments: list[ast.expr]) -> bool:
    """Whether `arguments` are the arguments of `Path.open`, not those of a browser's or a provider's method."""
    return not arguments or bool(_modes(arguments))


def _writes(arguments: list[ast.expr]) -> bool:
    return any(set(mode) & set("wax") and "+" not in mode for mode in _modes(arguments))


@pytest.fixture(scope="module")
def modules_that_read() -> dict[str, list[int]]:
    # Participants and bundled applications read none of a run's files.
    paths = [path for name in ("judge", "shared", "wabe") for path in sorted((SOURCES / name).rglob("*.py"))]
    results = {path.relative_to(SOURCES).as_posix(): list(reads(path.read_text())) for path in paths}
    return {name: lines for name, lines in results.items() if lines and "plugins/apps/" not in name}


def test_files_of_runs_archives_and_labels_are_read_in_one_way(modules_that_read: dict[str, list[int]]) -> None:
    assert {name: lines for name, lines in modules_that_read.items() if name not in OWN} == {}


def test_every_exception_is_needed(modules_that_read: dict[str, list[int]]) -> None:
    there = {name for name in OWN if (SOURCES / name).exists() or not name.startswith("judge/plugins/")}
    assert there - modules_that_read.keys() == set()


@pytest.mark.parametrize(
    "source",
    [
        "open(path)", "open(path, 'rb')", "path.open()", "path.open('rb', buffering=0)", "path.open(mode='r+b')",
        "path.read_bytes()", "json.loads(path.read_text('utf-8'))", "os.open(path, os.O_RDONLY)",
        "zipfile.ZipFile(path)", "shutil.copyfile(a, b)",
    ],
)  # fmt: skip
def test_a_read_of_another_kind_is_found(source: str) -> None:
    assert list(reads(source)) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "path.open('wb')",
        "open(path, 'a')",
        "zipfile.ZipFile(io.BytesIO(data))",
        "zipfile.ZipFile(out, 'w')",
        "browser.open(url, mode)",
        "found.open(path)",
        "async def f(store): await store.open()",
        "read_file(path)",
        "resources.files('judge').joinpath(name).read_text(encoding='utf-8')",
    ],
)
def test_writing_and_what_only_looks_like_a_read_is_not(source: str) -> None:
    assert list(reads(source)) == []
