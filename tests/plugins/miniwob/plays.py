"""What a MiniWoB++ script is made of: the page as it is now, actions on it, and the one slip of a wrong attempt."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from shared.models import Action
from shared.snapshot import Node, Snapshot, parse_snapshot

Moves = Iterator[Action]
Script = Callable[..., Moves]
"""A script gets a `Play` and the groups of the pattern that its instruction matched. Between two actions the play's
page becomes what the action led to."""
_T = TypeVar("_T")


class Play:
    """One attempt. A wrong one differs from a right one in what `slip` gives, and in nothing else."""

    def __init__(self, instruction: str, *, is_wrong: bool) -> None:
        self.instruction = " ".join(instruction.split())
        self._is_wrong = is_wrong
        self.page = Snapshot()

    def see(self, snapshot: str) -> None:
        """The page after the last action."""
        self.page = parse_snapshot(snapshot)

    def slip(self, right: _T, wrong: _T) -> _T:
        """`right`, or `wrong` in a wrong attempt. A script calls this once (in a loop: at one place)."""
        return wrong if self._is_wrong else right

    def all(self, *roles: str) -> list[Node]:
        """The elements with these roles that can be acted on, without the one that shows the instruction."""
        return [node for node in self.nodes() if node.role in roles and node.ref]

    def nodes(self) -> Iterator[Node]:
        """Everything on the page but the instruction."""
        return (node for node in self.page.nodes if " ".join(node.text.split()) != self.instruction)

    def node_named(self, name: str, *roles: str) -> Node:
        """The first element whose name or text is `name`, in any case if there is none with exactly this case."""
        result = self._nodes_named(name, roles)
        return next((node for node in result if self.name(node) == name), result[0])

    def shows(self, name: str, *roles: str) -> bool:
        """Whether there is an element of that name."""
        return bool(self._nodes_named(name, roles))

    def _nodes_named(self, name: str, roles: tuple[str, ...]) -> list[Node]:
        nodes = [node for node in self.nodes() if node.ref and (not roles or node.role in roles)]
        return [node for node in nodes if self.name(node).casefold() == name.casefold()]

    def name(self, node: Node) -> str:
        """A node's name, or its own text if it has none."""
        return node.name or node.text

    def label(self, field: Node) -> str:
        """The text that stands before a field."""
        before = [self.name(node) for node in self.nodes() if node.position < field.position]
        return next((text.rstrip(": ") for text in reversed(before) if text), "")

    def value(self, node: Node) -> str:
        """What a field holds."""
        return self.page.value_of(node)


def click(node: Node) -> Action:
    return _action("browser_click", target=node.ref)


def hover(node: Node) -> Action:
    return _action("browser_hover", target=node.ref)


def fill(node: Node, text: object) -> Action:
    return _action("browser_type", target=node.ref, text=str(text))


def type_slowly(node: Node, text: str, *, submit: bool = False) -> Action:
    """Key by key, for pages that react to keys."""
    return _action("browser_type", target=node.ref, text=text, slowly=True, submit=submit)


def choose(node: Node, names: Iterable[str]) -> Action:
    return _action("browser_select_option", target=node.ref, values=list(names))


def press(key: str) -> Action:
    return _action("browser_press_key", key=key)


def scroll(node: Node, direction: str, amount: int) -> Action:
    return _action("browser_scroll", target=node.ref, direction=direction, amount=amount)


def neighbour(items: Sequence[_T], item: _T) -> _T:
    """The item before `item`; for the first one, the one after it."""
    at = items.index(item)
    return items[at - 1 if at else 1]


def in_other_case(text: str) -> str:
    """`text` with its last letter in the other case."""
    at = max(at for at, letter in enumerate(text) if letter.isalpha())
    return text[:at] + text[at].swapcase() + text[at + 1 :]


def _action(tool: str, **params: Any) -> Action:
    return Action(tool=tool, params=params)
