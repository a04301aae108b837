"""The element language of checks: `role "name" [state]: value`, written like a line of an accessibility snapshot. Pure.

The role may be left out, `/pattern/` may stand for the name, and `[checked=false]` asks for an off state.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Self

from shared.fields import Invalid, closest, did_you_mean
from shared.patterns import Pattern, folded_pattern
from shared.scalars import YAML_QUOTED, scalar
from shared.seen import as_seen, folded, name_as_seen

MAX_ELEMENT_CHARS = 1_000
# WAI-ARIA 1.2, with the names that Playwright's snapshots add: `generic`, `iframe`, `text`.
ROLES = frozenset(
    """alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox
    complementary contentinfo definition deletion dialog directory document emphasis feed figure form generic grid
    gridcell group heading iframe img image insertion link list listbox listitem log main mark marquee math menu menubar
    menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar radio
    radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong
    subscript superscript switch tab table tablist tabpanel term text textbox time timer toolbar tooltip tree treegrid
    treeitem""".split()
)
STATES = ("active", "checked", "disabled", "expanded", "invalid", "level", "pressed", "selected")
# All parts are optional, in a fixed order and with the spaces after them: the match stops at the mistake. `|(?!)`: see
# `shared.snapshot`.
_ELEMENT = re.compile(
    r"""\s*+(?:-[ ]\s*+)?
        (?:(?P<role>[A-Za-z][A-Za-z0-9_-]*+)\s*+)?
        (?:(?:(?P<name>"(?:[^"\\]|\\.)*+")|/(?P<pattern>(?:[^/\\]|\\.)*+)/)\s*+)?
        (?P<states>(?:\[\s*+[A-Za-z-]++\s*+(?:=\s*+[^\]\s]*+\s*+)?\]\s*+|(?!))*+)
        (?::(?P<value>.*+))?""",
    re.VERBOSE | re.DOTALL,
)
_STATE = re.compile(r"\[\s*([A-Za-z-]+)\s*(?:=\s*([^\]\s]*)\s*)?\]")
_UNCLOSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        '"': ("the name has no closing quote", 'close it with "'),
        "/": ("the pattern has no closing slash", "close it with /"),
        "[": ("the state is not closed", "write it like [checked] or [checked=false]"),
    }
)


@dataclass(frozen=True)
class Element:
    """The element that a check looks for; a field with `None` or without a value matches anything.

    `states` maps a state to its value: `"true"` for a bare one, `"false"` for one that must be off.
    """

    notation: str
    role: str | None = None
    name: str | None = None
    pattern: Pattern | None = None
    states: tuple[tuple[str, str], ...] = ()
    value: str | None = None

    @cached_property
    def as_seen(self) -> Self:
        """The element as people see it, to be compared with what they see on a page."""
        return replace(
            self,
            name=None if self.name is None else name_as_seen(self.name),
            value=None if self.value is None else as_seen(self.value),
        )

    @cached_property
    def folded(self) -> Self:
        """The element for a page whose texts are folded."""
        return replace(
            self,
            name=None if self.name is None else folded(name_as_seen(self.name)),
            value=None if self.value is None else folded(self.value),
            pattern=None if self.pattern is None else Pattern(folded_pattern(self.pattern.source)),
        )


def parse_element(notation: str) -> Element:
    """Read one element. Raises `Invalid` with the column of the mistake."""
    if len(notation) > MAX_ELEMENT_CHARS:
        problem = f"more than {MAX_ELEMENT_CHARS} characters"
        raise Invalid(problem, "shorten it", column=MAX_ELEMENT_CHARS + 1)
    line, notation = notation, _without_yaml_quotes(notation)
    match = _ELEMENT.match(notation)
    assert match is not None
    role, name, pattern, value = match.group("role", "name", "pattern", "value")
    if role is not None and role not in ROLES:
        remedy = closest(role.lower(), sorted(ROLES)).strip() or "use a role as the page's snapshot shows it"
        raise Invalid(f"{role[:40]!r} is not a role", remedy, column=match.start("role") + 1)
    if (at := match.end()) < len(notation):
        is_named = name is not None or pattern is not None
        usual = f"{notation[at : at + 20]!a} is not expected here", 'write it like: role "name" [state]: value'
        problem, remedy = usual if is_named and notation[at] in '"/' else _UNCLOSED.get(notation[at], usual)
        raise Invalid(problem, remedy, column=at + 1)
    if not (role or name or pattern is not None or match["states"] or value is not None):
        raise Invalid("empty", 'write it like: button "Buy"', column=1)
    return Element(
        notation=line,
        role=role,
        name=None if name is None else _unquoted(name, match.start("name")),
        pattern=None if pattern is None else _pattern(pattern, match.start("pattern")),
        states=_states(match["states"], match.start("states")),
        value=None if value is None else scalar(value.strip()),
    )


def _without_yaml_quotes(line: str) -> str:
    """The line without YAML's quotes around the key; spaces in their place keep the columns in error messages right."""
    at = len(line) - len(line.lstrip().removeprefix("- ").lstrip())
    quoted = YAML_QUOTED.match(line, at)
    if quoted is None:
        return line
    return " " * (at + 1) + quoted[1].replace("''", "'") + line[quoted.end(1) + 1 :]


def _unquoted(name: str, start: int) -> str:
    try:
        # Not strict, because a name may contain tabs and line breaks as they are.
        return str(json.loads(name, strict=False))
    except ValueError:
        raise Invalid("the name has an unknown escape", 'write \\" and \\\\ only', column=start + 1) from None


def _pattern(source: str, start: int) -> Pattern:
    try:
        return Pattern(source.replace("\\/", "/"))
    except Invalid as error:
        raise Invalid(error.problem, error.remedy, column=start + (error.column or 0)) from None


def _states(notation: str, start: int) -> tuple[tuple[str, str], ...]:
    states: dict[str, str] = {}
    for match in _STATE.finditer(notation):
        at, key = start + match.start(), match[1]
        if key in ("ref", "box", "cursor"):
            raise Invalid(f"[{key}] differs from run to run", "remove it", column=at + 1)
        if key not in STATES:
            raise Invalid(f"{key[:40]!r} is not a state", did_you_mean(key, STATES), column=at + 2)
        value = (match[2] or "true").strip("\"'").lower()
        if states.setdefault(key, value) != value:
            raise Invalid(f"[{key}] has two values", "keep one", column=at + 1)
        if key == "level" and not (value.isascii() and value.isdigit()):
            raise Invalid(f"{value[:20]!a} is not a level", "write it like [level=2]", column=at + 1)
        if key != "level" and value not in ("true", "false", "mixed"):
            raise Invalid(f"{value[:20]!a} is not a value of a state", "use true, false or mixed", column=at + 1)
    return tuple(states.items())
