"""Count what makes the prose of docstrings and comments in src heavy, in 10,000 words.

python scripts/prose.py [FOLDER…]     the counts
python scripts/prose.py --list        where each stands
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src"
PATTERNS = {
    "that of, those of": r"\b(?:that|those) of\b",
    "that is, that are, that was": r"\bthat (?:is|are|was)\b",
    "own": r"\bown\b",
}
_JAVASCRIPT = re.compile(r"/\*.*?\*/|(?<![:\w'\"])//[^\n]*", re.DOTALL)


def _python(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        # Docstrings, of attributes as well.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a file, with their lines."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        yield from _python(text)
    else:
        yield from ((text.count("\n", 0, found.start()) + 1, found[0]) for found in _JAVASCRIPT.finditer(text))


def files(folders: list[Path]) -> list[Path]:
    """The Python and JavaScript files below folders."""
    found = (path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".js", ".cjs"))
    return sorted(path for path in found if "vendor" not in path.parts)


def counts(folders: list[Path]) -> dict[str, float]:
    """How often each pattern stands in 10,000 words; and the number of words."""
    texts = [text for path in files(folders) for _, text in prose(path)]
    words = sum(len(text.split()) for text in texts)
    found = {name: sum(len(re.findall(each, text, re.I)) for text in texts) for name, each in PATTERNS.items()}
    return {name: 10_000 * number / words for name, number in found.items()} | {"words": words}


def main(arguments: list[str]) -> None:
    """Print the counts, or where each stands."""
    folders = [Path(each) for each in arguments if each != "--list"] or [SRC]
    if "--list" in arguments:
        for path in files(folders):
            for line, text in prose(path):
                for name, each in PATTERNS.items():
                    for found in re.finditer(each, text, re.I):
                        at = line + text.count("\n", 0, found.start())
                        shown = text[max(0, found.start() - 50) : found.end() + 40].replace("\n", " ")
                        print(f"{path}:{at}: {name}: {' '.join(shown.split())}")
        return
    for name, number in counts(folders).items():
        print(f"{number:8.1f}  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
