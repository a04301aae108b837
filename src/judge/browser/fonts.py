"""Which scripts the browser's machine draws as boxes, because it has no font for them.

The browser measures it: two different characters drawn alike are boxes. No list of packages would say what a
browser finds. A page may bring its own fonts, so a box is a possibility and not a fact.
"""

import json
import re
from collections.abc import Collection, Iterable
from types import MappingProxyType
from typing import NamedTuple


class WritingSystem(NamedTuple):
    """A script, or emoji: what people call it, two different characters of it, and the pattern of all of them."""

    title: str
    samples: str
    pattern: re.Pattern[str]


# By the name in flags (`UNDRAWN`).
SCRIPTS = MappingProxyType(
    {
        name: WritingSystem(title, samples, re.compile(f"[{characters}]"))
        for name, title, samples, characters in (
            ("chinese", "Chinese", "\u4e2d\u6587", "\u3400-\u4dbf\u4e00-\u9fff"),
            ("japanese", "Japanese", "\u3042\u30ab", "\u3041-\u30ff"),
            ("korean", "Korean", "\ud55c\uad6d", "\uac00-\ud7a3"),
            ("thai", "Thai", "\u0e01\u0e02", "\u0e01-\u0e5b"),
            ("arabic", "Arabic", "\u0639\u0645", "\u0620-\u06ff"),
            ("hebrew", "Hebrew", "\u05d0\u05e9", "\u05d0-\u05ea"),
            ("devanagari", "Devanagari", "\u0905\u0939", "\u0900-\u0963\u0966-\u097f"),
            ("bengali", "Bengali", "\u0995\u09b9", "\u0985-\u09b9"),
            ("tamil", "Tamil", "\u0b95\u0bb9", "\u0b85-\u0bb9"),
            ("telugu", "Telugu", "\u0c15\u0c39", "\u0c05-\u0c39"),
            ("emoji", "emoji", "\U0001f697\U0001f355", "\U0001f300-\U0001faff"),
        )
    }
)
# In a separate page, outside of the attempt's context, so that neither can see or change the other.
_MEASURE = """async page => {
  const blank = await page.context().browser().newPage();
  try {
    return await blank.evaluate(scripts => {
      const canvas = document.createElement("canvas");
      const context = canvas.getContext("2d", { willReadFrequently: true });
      canvas.width = canvas.height = 40;
      context.font = "24px sans-serif";
      const drawn = char => {
        context.clearRect(0, 0, canvas.width, canvas.height);
        context.fillText(char, 4, 30);
        return context.getImageData(0, 0, canvas.width, canvas.height).data.join();
      };
      return Object.keys(scripts).filter(name => drawn(scripts[name][0]) === drawn(scripts[name][1]));
    }, %s);
  } finally {
    await blank.context().close();
  }
}"""
# Debian's packages with fonts for all of them.
FONT_PACKAGES = ("fonts-noto-core", "fonts-noto-cjk", "fonts-noto-color-emoji")
# Flags of steps begin with this, followed by the name of a script.
UNDRAWN = "undrawn_"
# The code that measures which scripts are boxes; `read_undrawn` reads its result.
MEASURE_CODE = _MEASURE % json.dumps({name: list(script.samples) for name, script in SCRIPTS.items()})


def read_undrawn(text: str) -> frozenset[str]:
    """The names of the scripts shown as boxes; none if they could not be measured."""
    try:
        table = json.loads(text)
    except ValueError:
        return frozenset()
    return frozenset(SCRIPTS).intersection(table) if isinstance(table, list) else frozenset()


def scripts_in(text: str) -> tuple[str, ...]:
    """The names of the scripts in a text."""
    if text.isascii():
        return ()
    return tuple(name for name, script in SCRIPTS.items() if script.pattern.search(text))


def undrawn_scripts(flags: Iterable[str]) -> tuple[str, ...]:
    """The names of the scripts in flags of steps."""
    return tuple(flag.removeprefix(UNDRAWN) for flag in flags if flag.startswith(UNDRAWN))


def titles_of(names: Collection[str]) -> str:
    """The scripts as people call them, in the order of the table."""
    return ", ".join(script.title for name, script in SCRIPTS.items() if name in names)
