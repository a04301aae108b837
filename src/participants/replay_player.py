"""Plays one script through one episode: from what is seen to the next reply. Pure and deterministic."""

from participants.replay_script import Script, ScriptStep, Wanted, fold
from shared.models import Action
from shared.snapshot import Node, Snapshot, parse_snapshot

MAX_WAITS = 4
WAIT_S = 1


class Player:
    """One episode's place in its script. An element that is not there yet is waited for, `MAX_WAITS` times."""

    def __init__(self, script: Script) -> None:
        self._steps = script.steps
        self._at = 0
        self._waits = 0
        self._failures = 0
        self._sent = False

    def reply(self, snapshot: str, feedback: str | None) -> Action | str:
        """The next reply: an action, or text sent as it is. `feedback` says that the last reply failed, and why."""
        if self._sent:
            step = self._steps[self._at]
            # An unreadable reply is meant to fail; an action is tried once more, on the new snapshot.
            if feedback is not None and step.tool is not None:
                self._failures += 1
                if self._failures > 1:
                    return _give_up(f"Step {self._at + 1} failed twice: {feedback}")
            else:
                self._at += 0 if step.repeat else 1
                self._failures = self._waits = 0
        self._sent = False
        if self._at >= len(self._steps):
            return _give_up("The script ends here.")
        return self._play(self._steps[self._at], snapshot)

    def _play(self, step: ScriptStep, snapshot: str) -> Action | str:
        seen = parse_snapshot(snapshot) if step.after is not None or step.element is not None else Snapshot()
        if step.after is not None and find_element(seen, step.after) is None:
            return self._wait(step.after)
        if step.say is not None:
            self._sent = True
            return step.say
        params = dict(step.params)
        if step.element is not None:
            node = find_element(seen, step.element)
            if node is None:
                return self._wait(step.element)
            params |= {"element": str(step.element), "target": node.ref}
        self._sent = True
        thought = step.thought or f"Next: {step.tool}" + (f" on {step.element}." if step.element else ".")
        return Action(tool=step.tool or "", params=params, thought=thought)

    def _wait(self, wanted: Wanted) -> Action:
        self._waits += 1
        if self._waits > MAX_WAITS:
            return _give_up(f"I could not find {wanted} on the page.")
        return Action(tool="browser_wait_for", params={"time": WAIT_S}, thought=f"{wanted} is not there yet.")


def find_element(snapshot: Snapshot, wanted: Wanted) -> Node | None:
    """An element with a reference: by its exact name, or else by a part of it whatever the case.

    An element without a name of its own goes by the text inside it.
    """
    nodes = [node for node in snapshot.nodes if node.ref is not None and wanted.role in (None, node.role)]
    if wanted.name is not None:
        name = fold(wanted.name)
        named = [(node, fold(node.name or snapshot.text_of(node))) for node in nodes]
        nodes = [node for node, own in named if own == name]
        nodes = nodes or [node for node, own in named if name.casefold() in own.casefold()]
    return nodes[wanted.nth] if -len(nodes) <= wanted.nth < len(nodes) else None


def _give_up(answer: str) -> Action:
    return Action(tool="finish", params={"answer": answer}, thought="There is nothing more I can do.")
