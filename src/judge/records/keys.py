"""Names of keys as people write them, for Playwright: `Ctrl+K`, `Return`, `Cmd+A`. Pure."""

import re
from types import MappingProxyType

_MODIFIERS = MappingProxyType(
    {
        "ctrl": "ControlOrMeta",
        "cmd": "ControlOrMeta",
        "command": "ControlOrMeta",
        "⌘": "ControlOrMeta",
        "control": "Control",
        "controlormeta": "ControlOrMeta",
        "alt": "Alt",
        "option": "Alt",
        "opt": "Alt",
        "⌥": "Alt",
        "shift": "Shift",
        "⇧": "Shift",
        "meta": "Meta",
        "win": "Meta",
        "super": "Meta",
    }
)
_KEYS = MappingProxyType(
    {
        "return": "Enter",
        "esc": "Escape",
        "del": "Delete",
        "ins": "Insert",
        "spacebar": "Space",
        "pgup": "PageUp",
        "page_up": "PageUp",
        "pgdn": "PageDown",
        "pgdown": "PageDown",
        "page_down": "PageDown",
        **{side.lower(): f"Arrow{side}" for side in ("Up", "Down", "Left", "Right")},
        **{
            name.lower(): name
            for name in (
                *(
                    "Enter",
                    "Escape",
                    "Delete",
                    "Insert",
                    "Backspace",
                    "Tab",
                    "Space",
                    "Home",
                    "End",
                    "PageUp",
                    "PageDown",
                ),
                *("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "ContextMenu", "CapsLock"),
                *(f"F{number}" for number in range(1, 13)),
            )
        },
    }
)
_SPACED = re.compile(r"(?<=\w) *\+ *(?=[^\s+])")
# `Ctrl-K`: only after modifiers, because the hyphen is a key itself.
_HYPHENATED = re.compile(rf"(?i)((?:(?:{'|'.join(filter(str.isalpha, _MODIFIERS))})-)+)(?=.)")


def key_name(notation: str) -> str:
    """The key or combination for Playwright; unknown names are left as they are.

    A letter in a shortcut is the one on the key: `Ctrl+K` is not `Ctrl+Shift+K`.
    """
    text = _SPACED.sub("+", notation.strip() or notation)
    if match := _HYPHENATED.match(text):
        text = match[1].replace("-", "+") + text[match.end() :]
    *modifiers, last = _parts(text)
    names = [_MODIFIERS.get(each.lower(), each) for each in modifiers]
    # A single character is the key that writes it.
    key = last if len(last) == 1 else _KEYS.get(last.lower()) or _MODIFIERS.get(last.lower(), last)
    is_shortcut = any(name in ("Alt", "Control", "ControlOrMeta", "Meta") for name in names)
    return "+".join([*names, key.lower() if is_shortcut and len(key) == 1 and key.isascii() else key])


def _parts(text: str) -> list[str]:
    """The keys of a combination; a plus sign that separates nothing is a key."""
    parts, building = [], ""
    for character in text:
        if character == "+" and building:
            parts.append(building)
            building = ""
        else:
            building += character
    return [*parts, building]
