"""What a server and its judges' processes say to each other: an order, and then calls over a socket of the machine.

Each session is a separate connection. It carries one call and its answer at a time, each as its length in four bytes
and JSON. A server that closes its side ends the session; the judge closes the other side when the browser is free.
"""

import asyncio
import base64
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from judge.environment.errors import Ending, EpisodeFault, NotReset
from judge.environment.host import HostSettings, TaskOffer
from judge.environment.session import SessionState, StepResult
from shared.errors import ConfigError
from shared.logs import LogFormat
from shared.models import ObservationMessage, Record

_LENGTH_BYTES = 4


class WorkerOrder(Record):
    """What a judge's process is to do: offer a scenario, at a socket in a folder.

    `closed` are addresses that no page may reach.
    """

    scenario: Path
    host: HostSettings
    folder: Path
    closed: tuple[str, ...] = ()
    verbose: bool = False
    log_format: LogFormat = "text"

    @property
    def socket(self) -> Path:
        """Where sessions are opened."""
        return self.folder / "sessions.sock"

    @property
    def scratch(self) -> Path:
        """The process's temporary files."""
        return self.folder / "tmp"


class WorkerReady(Record):
    """The process's first line: what it offers."""

    kind: Literal["ready"] = "ready"
    name: str
    version: str
    description: str
    tasks: tuple[TaskOffer, ...]


class Unusable(Record):
    """The process's first line if the scenario cannot be offered: the user's mistake."""

    kind: Literal["unusable"] = "unusable"
    problem: str
    key: str
    location: str
    message: str
    remedy: str

    @classmethod
    def of(cls, error: ConfigError) -> "Unusable":
        """The error as a record."""
        parts = {name: getattr(error, name) for name in ("problem", "key", "location", "message", "remedy")}
        return cls(**parts)

    def error(self) -> ConfigError:
        """The record as an error."""
        return ConfigError(self.problem, remedy=self.remedy, key=self.key, location=self.location, message=self.message)


FIRST_LINE: TypeAdapter[WorkerReady | Unusable] = TypeAdapter(
    Annotated[WorkerReady | Unusable, Field(discriminator="kind")]
)


class ResetCall(Record):
    """`EnvironmentSession.reset`."""

    kind: Literal["reset"] = "reset"
    task_id: str | None
    seed: int | None
    episode_id: str | None


class StepCall(Record):
    """`EnvironmentSession.step`, with the reply as text."""

    kind: Literal["step"] = "step"
    reply: str


SessionCall = ResetCall | StepCall
CALL: TypeAdapter[SessionCall] = TypeAdapter(Annotated[SessionCall, Field(discriminator="kind")])


class Seen(Record):
    """A `StepResult`, with the screenshot in base64."""

    kind: Literal["seen"] = "seen"
    message: ObservationMessage | None
    text: str
    screenshot: str | None
    media_type: str
    reward: float | None
    done: bool

    @classmethod
    def of(cls, result: StepResult) -> "Seen":
        """The result as a record."""
        message = result.message
        if message is not None:
            message = message.model_copy(update={"page": message.page.model_copy(update={"screenshot": None})})
        picture = None if result.screenshot is None else base64.b64encode(result.screenshot).decode()
        return cls(**result._asdict() | {"message": message, "screenshot": picture})

    def result(self) -> StepResult:
        """The record as a result."""
        picture = None if self.screenshot is None else base64.b64decode(self.screenshot)
        return StepResult(self.message, self.text, picture, self.media_type, self.reward, self.done)


class Fault(Record):
    """An `EpisodeFault`, or a call that did not fit the session."""

    kind: Literal["fault", "not_reset", "refused", "failed"]
    ending: Ending = "aborted"
    blame: str | None = None
    why: str = ""

    def error(self) -> Exception:
        """The record as the error that the session raised."""
        match self.kind:
            case "fault":
                return EpisodeFault(self.ending, self.blame, self.why)
            case "not_reset":
                return NotReset(self.why)
            case "refused":
                return ConfigError(self.why)
            case "failed":
                return EpisodeFault("aborted", "internal", self.why)


class Answer(Record):
    """The answer to a call, and the session's state after it."""

    found: Annotated[Seen | Fault, Field(discriminator="kind")]
    state: SessionState


ANSWER = TypeAdapter(Answer)


async def send(writer: asyncio.StreamWriter, record: Record) -> None:
    """Send a record."""
    data = record.model_dump_json().encode()
    writer.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
    await writer.drain()


async def receive(reader: asyncio.StreamReader) -> bytes | None:
    """The JSON of the next record; `None` if the other side has closed."""
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
