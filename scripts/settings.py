"""Write the table of settings in docs/configuration.md, made from their declarations in judge/config.py.

python scripts/settings.py             writes it
python scripts/settings.py --check     exits with 1 if it is out of date
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from judge.config import RunConfig
from judge.runner.options import declared_options
from shared.declarations import Setting, settings_in

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"
BEGIN, END = "<!-- settings: written by scripts/settings.py -->\n", "<!-- end of settings -->\n"


def rows() -> Iterator[str]:
    """The table, line by line."""
    yield "| key | default | where | on `--resume` | meaning |"
    yield "|---|---|---|---|---|"
    flags = {each.name: each.flag for each in declared_options()}
    for name, field, setting in settings_in(RunConfig):
        places = (
            f"`{flags[name]}`" if setting.option else "",
            "host" if setting.host else "",
            "request" if setting.instead else "",
            "secret" if setting.secret else "",
        )
        where = ", ".join(filter(None, places))
        resume = "" if setting.compared else "may change"
        meaning = setting.meaning.replace("|", "\\|")
        yield " | ".join((f"| `{name}`", _default(field, setting), where, resume, f"{meaning} |")).replace("  ", " ")


def _default(field: FieldInfo, setting: Setting) -> str:
    value: Any = field.get_default(call_default_factory=True)
    if setting.default or isinstance(value, str):
        return setting.default or f"`{value}`"
    return "none" if value is None or value in ((), {}) else f"{value:g}" if type(value) is float else json.dumps(value)


def text() -> str:
    """The document with the table as it should be."""
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + "".join(f"{row}\n" for row in rows()) + END + rest.partition(END)[2]


def main(arguments: list[str]) -> int:
    """The exit code."""
    if arguments == ["--check"]:
        is_current = DOCUMENT.read_text(encoding="utf-8") == text()
        if not is_current:
            print("docs/configuration.md is out of date: run python scripts/settings.py", file=sys.stderr)
        return 0 if is_current else 1
    DOCUMENT.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
