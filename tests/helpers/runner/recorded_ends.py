"""How an assessment ended, as reported to the service that ran it."""

from shared.a2a.tasks import TaskSink


class RecordedEnds(TaskSink):
    """A sink that keeps the end of an assessment."""

    def __init__(self) -> None:
        self.ending: tuple[str, str | None] = ("none", None)

    def annotate(self, metadata: object, *, secrets: object = None) -> None: ...

    def update(self, text: str, facts: object = None) -> None: ...

    async def artifact(self, name: str, texts: list[str]) -> None: ...

    async def complete(self, text: str | None = None) -> None:
        self.ending = ("completed", text)

    async def fail(self, text: str, facts: object = None) -> None:
        self.ending = ("failed", text)

    async def reject(self, text: str, facts: object = None) -> None:
        self.ending = ("rejected", text)

    async def reply(self, text: str) -> None: ...
