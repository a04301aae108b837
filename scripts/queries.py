"""Writes the part that all leaderboard queries begin with, `queries_begin.sql`, into each of them.

    python scripts/queries.py           # writes src/judge/plugins/leaderboard/queries/*.sql again
    python scripts/queries.py --check   # exits with 1 if one of them is out of date

Each query is one file, because a leaderboard page takes them as they are.
"""

import re
import sys
from pathlib import Path

_SCRIPTS = Path(__file__).resolve().parent
FOLDER = _SCRIPTS.parent / "src" / "judge" / "plugins" / "leaderboard" / "queries"
BEGINNING = _SCRIPTS / "queries_begin.sql"
# From its first line to the end of its last table.
_PART = re.compile(
    r"^-- Shards of one submission are one row:.*?^published AS MATERIALIZED \($.*?^\),\n", re.MULTILINE | re.DOTALL
)


def texts() -> dict[Path, str]:
    """What each query holds."""
    beginning = BEGINNING.read_text("utf-8")
    return {path: _PART.sub(lambda _: beginning, path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.sql"))}


def main(arguments: list[str]) -> int:
    """The exit code."""
    stale = {path: text for path, text in texts().items() if path.read_text("utf-8") != text}
    for path, text in stale.items():
        if arguments == ["--check"]:
            print(f"{path.name} is out of date: run python scripts/queries.py", file=sys.stderr)
        else:
            path.write_text(text, "utf-8")
            print(path.name)
    return 1 if stale and arguments == ["--check"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
