"""Write docs/plugins.md, the list of plug-ins, from their descriptions. The only document that links to their pages.

python scripts/plugins.py [--check]     exits with 1 if it is out of date
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_HEAD = """\
# Plug-ins

Each is a folder of `src/judge/plugins`, which can be deleted with its tests. Made by `python scripts/plugins.py`.

| plug-in | what it adds |
|---|---|
"""


def text(root: Path = ROOT) -> str:
    """The page for the plug-ins of a checkout."""
    return _HEAD + "".join(_rows(root / "src" / "judge" / "plugins"))


def _rows(folder: Path) -> Iterator[str]:
    for package in sorted(folder.glob("*/__init__.py")):
        name = package.parent.name
        about = (ast.get_docstring(ast.parse(package.read_text("utf-8"))) or "").partition("\n")[0]
        page = f"../src/judge/plugins/{name}/README.md"
        has_page = (package.parent / "README.md").is_file()
        yield f"| {f'[{name}]({page})' if has_page else name} | {about} |\n"


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write or check the page; returns the exit code."""
    page, current = root / "docs" / "plugins.md", text(root)
    if "--check" not in arguments:
        page.write_text(current, "utf-8")
    elif page.read_text("utf-8") != current:
        print("docs/plugins.md is out of date: run python scripts/plugins.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
