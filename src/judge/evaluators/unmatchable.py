"""Elements in checks that no snapshot can show, whatever the page does. Pure.

The roles of each state are as in Playwright's snapshots (`packages/injected/src/roleUtils.ts`, 1.65).
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from judge.records.elements import Element
from shared.text import plain

_NEVER_SHOWN = frozenset({"none", "presentation"})
_CHECKED = frozenset("checkbox menuitemcheckbox option radio switch menuitemradio treeitem".split())
_DISABLED = frozenset(
    """application button gridcell group link menuitem scrollbar separator tab checkbox columnheader combobox grid
    listbox menu menubar menuitemcheckbox menuitemradio option radio radiogroup row rowheader searchbox slider
    spinbutton switch tablist textbox toolbar tree treegrid treeitem""".split()
)
_EXPANDED = frozenset(
    """application button checkbox combobox gridcell link listbox menuitem row rowheader tab treeitem columnheader
    menuitemcheckbox menuitemradio switch""".split()
)
_INVALID = frozenset(
    """application checkbox columnheader combobox gridcell listbox radiogroup rowheader searchbox slider spinbutton
    switch textbox tree""".split()
)
_SELECTED = frozenset("gridcell option row tab rowheader columnheader treeitem".split())
_ROLES_OF: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "checked": _CHECKED,
        "disabled": _DISABLED,
        "expanded": _EXPANDED,
        "invalid": _INVALID,
        "level": frozenset({"heading", "listitem", "row", "treeitem"}),
        "pressed": frozenset({"button"}),
        "selected": _SELECTED,
    }
)


def unmatchable(elements: Iterable[Element]) -> Iterator[str]:
    """Why elements can never match, one sentence each."""
    for element in elements:
        if why := _why(element):
            yield f"{element.notation} can never match: {why}"


def _why(element: Element) -> str | None:
    if element.role in _NEVER_SHOWN:
        return f"snapshots show no element of the role {element.role}"
    for state, value in element.states:
        roles = _ROLES_OF.get(state)
        if element.role is not None and roles is not None and value != "false" and element.role not in roles:
            return f"{_with_article(element.role)} has no [{state}] (only {', '.join(sorted(roles))})"
    if element.value is not None and element.name is not None and plain(element.value) == plain(element.name):
        return "snapshots leave out a value that is the same as the name: remove the value"
    return None


def _with_article(role: str) -> str:
    return f"{'an' if role[0] in 'aeiou' else 'a'} {role}"
