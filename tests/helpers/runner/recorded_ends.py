"""How an assessment ended, as reported to the service that ran it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from shared.a2a.tasks import TaskSink


class RecordedEnds(TaskSink):
    """A sink that keeps what an assessment comes to, and the notes for its client."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, Any]] = []
        self.notes: list[str] = []
        self.facts: Mapping[str, str] = {}

    @property
    def ending(self) -> tuple[str, Any]:
        return self.ends[-1] if self.ends else ("none", None)

    def annotate(self, metadata: Mapping[str, str], *, secrets: Mapping[str, str] = MappingProxyType({})) -> None: ...

    def update(self, text: str, facts: object = None) -> None:
        self.notes += [text] if text.startswith("Note: ") else []

    async def artifact(self, name: str, texts: list[str]) -> None:
        self.ends.append((name, texts))

    async def complete(self, text: str | None = None) -> None:
        self.ends.append(("completed", text))

    async def fail(self, text: str, facts: Mapping[str, str] = MappingProxyType({})) -> None:
        self.ends.append(("failed", text))
        self.facts = facts

    async def reject(self, text: str, facts: Mapping[str, str] = MappingProxyType({})) -> None:
        self.ends.append(("rejected", text))

    async def reply(self, text: str) -> None:
        self.ends.append(("reply", text))
