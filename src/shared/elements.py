"""The element language of checks: `role "name" [state]: value`, written like a line of an accessibility snapshot. Pure.

The role may be left out, `/pattern/` may stand for the name, and `[checked=false]` asks for a state that is off.
"""

import difflib
import json
import re
from dataclasses import dataclass

from shared.fields import Invalid, did_you_mean
from shared.patterns import Pattern
from shared.snapshot import YAML_QUOTED, scalar

MAX_ELEMENT_CHARS = 1_000
# WAI-ARIA 1.2, with the names that Playwright's snapshots add: `generic`, `iframe`, `text`.
ROLES = frozenset(
    """alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox
    complementary contentinfo definition deletion dialog directory document emphasis feed figure form generic grid
    gridcell group heading iframe img image insertion link list listbox listitem log main mark marquee math menu menubar
    menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar radio
    radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong
    subscript superscript switch tab table tablist tabpanel term text textbox time timer toolbar tooltip tree treegrid
    treeitem""".split()  # noqa: SIM905
)
STATES = ("active", "checked", "disabled", "expanded", "invalid", "level", "pressed", "selected")
_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_STATE = re.compile(r"\[\s*([A-Za-z-]+)\s*(?:=\s*([^\]\s]*)\s*)?\]")
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PATTERN = re.compile(r"/((?:[^/\\]|\\.)*)/", re.DOTALL)


@dataclass(frozen=True)
class Element:
    """What a check asks of an element; what is `None` or absent may be anything.

    `states` maps a state to its value: `"true"` for a bare one, `"false"` for one that must be off.
    """

    written: str
    role: str | None = None
    name: str | None = None
    pattern: Pattern | None = None
    states: tuple[tuple[str, str], ...] = ()
    value: str | None = None


def parse_element(written: str) -> Element:
    """Read one element. Raises `Invalid` with the column of the mistake."""
    if len(written) > MAX_ELEMENT_CHARS:
        problem = f"more than {MAX_ELEMENT_CHARS} characters"
        raise Invalid(problem, "shorten it", column=MAX_ELEMENT_CHARS + 1)
    at = _skip(written, 0)
    if written.startswith("- ", at):
        at = _skip(written, at + 1)
    line, written = written, _without_yaml_quotes(written, at)
    role, at = _role(written, _skip(written, at))
    name, pattern, at = _name(written, at)
    states, at = _states(written, at)
    value = None
    if written.startswith(":", at):
        value = scalar(written[at + 1 :].strip())
        at = len(written)
    if at < len(written):
        problem = f"{written[at : at + 20]!a} is not expected here"
        raise Invalid(problem, 'write it like: role "name" [state]: value', column=at + 1)
    if role is None and name is None and pattern is None and not states and value is None:
        raise Invalid("empty", 'write it like: button "Buy"', column=1)
    return Element(written=line, role=role, name=name, pattern=pattern, states=states, value=value)


def _without_yaml_quotes(line: str, at: int) -> str:
    """A snapshot quotes all of a line but its value where YAML needs it; blanks keep the columns of what is inside."""
    quoted = YAML_QUOTED.match(line, at)
    if quoted is None:
        return line
    return " " * (at + 1) + quoted[1].replace("''", "'") + line[quoted.end(1) + 1 :]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _role(text: str, at: int) -> tuple[str | None, int]:
    found = _ROLE.match(text, at)
    if found is None:
        return None, at
    if found[0] not in ROLES:
        close = difflib.get_close_matches(found[0].lower(), sorted(ROLES), n=1, cutoff=0.6)
        remedy = f"did you mean '{close[0]}'?" if close else "use a role as the page's snapshot shows it"
        raise Invalid(f"{found[0][:40]!r} is not a role", remedy, column=at + 1)
    return found[0], _skip(text, found.end())


def _name(text: str, at: int) -> tuple[str | None, Pattern | None, int]:
    if text.startswith('"', at):
        found = _NAME.match(text, at)
        if found is None:
            raise Invalid("the name has no closing quote", 'close it with "', column=at + 1)
        try:
            name: str = json.loads(found[0], strict=False)
        except ValueError:
            raise Invalid("the name has an unknown escape", 'write \\" and \\\\ only', column=at + 1) from None
        return name, None, _skip(text, found.end())
    if text.startswith("/", at):
        found = _PATTERN.match(text, at)
        if found is None:
            raise Invalid("the pattern has no closing slash", "close it with /", column=at + 1)
        try:
            return None, Pattern(found[1].replace("\\/", "/")), _skip(text, found.end())
        except Invalid as error:
            raise Invalid(error.problem, error.remedy, column=at + 1 + (error.column or 0)) from None
    return None, None, at


def _states(text: str, at: int) -> tuple[tuple[tuple[str, str], ...], int]:
    states: dict[str, str] = {}
    while text.startswith("[", at):
        found = _STATE.match(text, at)
        if found is None:
            raise Invalid("the state is not closed", "write it like [checked] or [checked=false]", column=at + 1)
        key = found[1]
        if key in ("ref", "box", "cursor"):
            raise Invalid(f"[{key}] differs from run to run", "remove it", column=at + 1)
        if key not in STATES:
            raise Invalid(f"{key[:40]!r} is not a state", did_you_mean(key, STATES), column=at + 2)
        value = (found[2] or "true").strip("\"'").lower()
        if states.setdefault(key, value) != value:
            raise Invalid(f"[{key}] has two values", "keep one", column=at + 1)
        if key == "level" and not (value.isascii() and value.isdigit()):
            raise Invalid(f"{value[:20]!a} is not a level", "write it like [level=2]", column=at + 1)
        if key != "level" and value not in ("true", "false", "mixed"):
            raise Invalid(f"{value[:20]!a} is not a value of a state", "use true, false or mixed", column=at + 1)
        at = _skip(text, found.end())
    return tuple(states.items()), at
