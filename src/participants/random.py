"""Acts at random on what the page offers: a baseline without a model, the same for the same seed."""

import hashlib
import random
from collections.abc import Iterator
from typing import Any

from participants.base import Decide, Observation, ParticipantOptions, per_attempt
from shared.models import Action
from shared.replies import FINISH
from shared.snapshot import Node, Snapshot, parse_snapshot

# Weight, tool and parameters of a possible action. A field has twice the weight of a link, because pages have far more
# links.
_Candidate = tuple[int, str, dict[str, Any]]
_CLICKED = frozenset(
    {"link", "button", "checkbox", "radio", "tab", "switch", "option", "treeitem"}
    | {"menuitem", "menuitemcheckbox", "menuitemradio"}
)
_TYPED = frozenset({"textbox", "searchbox"})
_KEYS = ("Enter", "Escape", "Tab", "PageDown", "PageUp")


def create(options: ParticipantOptions) -> Decide:
    """A participant whose choices depend on `options.seed`, the task and the pages."""
    return per_attempt(lambda first: RandomAgent(options.seed, first))


class RandomAgent:
    """One attempt. The same seed, task and pages give the same actions, regardless of what runs in parallel."""

    def __init__(self, seed: int, first: Observation) -> None:
        # Not `hash()`, which differs from process to process.
        key = f"{seed}\n{first.instruction}\n{first.website}"
        self._random = random.Random(hashlib.sha256(key.encode("utf-8", "replace")).digest())
        self._words = first.instruction.split() or ["hello"]

    async def __call__(self, observation: Observation) -> Action:
        """Any valid action, including giving up, so that attempts differ in length."""
        offered = {tool.name for tool in observation.tools}
        candidates = [candidate for candidate in self._candidates(observation) if candidate[1] in offered]
        if not candidates:
            return Action(tool=FINISH, params={"answer": "There is nothing to do here."})
        _, tool, params = self._random.choices(candidates, weights=[weight for weight, _, _ in candidates])[0]
        return Action(tool=tool, params=params, thought=f"At random: {tool}.")

    def _candidates(self, observation: Observation) -> Iterator[_Candidate]:
        if observation.page.dialog is not None:
            yield 1, "browser_handle_dialog", {"accept": True}
            yield 1, "browser_handle_dialog", {"accept": False}
            return
        snapshot = parse_snapshot(observation.page.snapshot)
        for node in snapshot.nodes:
            if node.ref is not None and "disabled" not in node.states:
                yield from self._candidates_on(node, snapshot)
        yield 4, "browser_scroll", {"direction": self._random.choice(("up", "down"))}
        yield 2, "browser_navigate_back", {}
        yield 2, "browser_press_key", {"key": self._random.choice(_KEYS)}
        yield 2, FINISH, {"answer": self._some_words()}

    def _candidates_on(self, node: Node, snapshot: Snapshot) -> Iterator[_Candidate]:
        target: dict[str, Any] = {"element": node.name or node.role, "target": node.ref}
        if node.role in _TYPED:
            yield 6, "browser_type", target | {"text": self._some_words(), "submit": self._random.random() < 0.5}
        elif node.role in ("combobox", "listbox"):
            options = [inner.name or inner.text for inner in snapshot.subtree(node) if inner.role == "option"]
            if option_names := [name for name in options if name]:
                yield 6, "browser_select_option", target | {"values": [self._random.choice(option_names)]}
            else:
                yield 3, "browser_click", target
        elif node.role in _CLICKED:
            yield 3, "browser_click", target

    def _some_words(self) -> str:
        start = self._random.randrange(len(self._words))
        return " ".join(self._words[start : start + self._random.randint(1, 3)])
