"""The records that judge, participants and model clients exchange: frozen, plain, validated once.

The judge's records (tasks, steps, verdicts) are in `judge.records`.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

D = TypeVar("D")


class Record(BaseModel):
    """A frozen record; unknown keys are errors, so that a typo is not silently ignored."""

    # Validators are built at first use: a command pays for the few records it reads, not for all of them.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


@dataclass(frozen=True)
class RecordedLimit:
    """On a field: the maximum number of bytes when recorded. Longer values are cut (`judge.store.bounds`)."""

    max_bytes: int


def omit_default(default: D, **options: Any) -> D:
    """A field not written while it has its default: records of older versions do not have it either."""
    field: D = Field(default=default, exclude_if=lambda value: value == default, **options)
    return field


Title = Annotated[str, RecordedLimit(1_000)]
Address = Annotated[str, RecordedLimit(3_000)]


class ToolSpec(Record):
    """A tool offered to the participant; `parameters` is its JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class Tab(Record):
    """One open browser tab; `index` is what `browser_tabs` takes."""

    index: int
    title: Title
    url: Address
    current: bool = False


class SettleTime(Record):
    """How long the judge waited before it observed a page, in seconds of real time and of the page's clock.

    `waited_for` are the reasons: `requests`, `changes`, `timer`, `busy` (a loading indicator), `moving`.
    """

    real_s: float = 0.0
    page_s: float = 0.0
    waited_for: tuple[str, ...] = ()


NoticeCode = Literal[
    "cannot_be_shown",  # a document without a snapshot; `kind` says which
    "loading_stopped",  # it did not end within `seconds`
    "keeps_changing",  # it was never at rest long enough to be recorded
    "no_snapshot",  # the browser gave none
    "no_screenshot",  # the browser gave none
    "script_stopped",  # after `seconds` of CPU time
    "not_as_typed",  # `count` fields do not contain what was typed into them
    "nothing_changed",  # neither snapshot nor screenshot, after a drag or a long press
    "file_chooser_cancelled",  # one that the page opened
    "file_chooser_open",  # one that the page opened, for a task with files
    "tabs_closed",  # `count` of those that pages opened
    "tab_crashed",  # an empty tab has taken its place
    "tab_flooded",  # by console messages or navigations; an empty tab has taken its place
    "tab_busy",  # its script let nothing through; an empty tab has taken its place
    "tab_took_too_long",  # more than `seconds`; an empty tab has taken its place
]
DocumentKind = Literal["svg", "xml", "empty"]


class Notice(Record):
    """A fact about the page that the judge tells the participant beside it."""

    code: NoticeCode
    kind: DocumentKind | None = omit_default(None)
    seconds: float | None = omit_default(None)
    count: int | None = omit_default(None)


class Vanished(Record):
    """A text that appeared on a page and vanished before the page was observed, such as a notification.

    `snapshot` is the element around it, with who wrote it, in the notation of a page's snapshot; `None` if it was there
    too briefly, or was too large, to be described. `origin` belongs to whoever wrote the main document, and `url` that
    document's address, at that time; `None` if it was in a frame. `at_ms` is when it appeared on the page's clock,
    in milliseconds since 1970; `stood_s` is how long it was there, in seconds of page time.
    """

    text: str
    snapshot: str | None = omit_default(None)
    origin: str | None = omit_default(None)
    url: Address | None = omit_default(None)
    at_ms: int
    stood_s: float


class Page(Record):
    """What the browser shows at one moment. `screenshot` is the JPEG from the browser.

    `notice`: the page cannot be observed, or not as usual; then the snapshot may be empty, and the screenshot missing.

    Since the last observation: `refused` are the network addresses that the guard blocked, `downloads` the names of
    files that pages began to download, `vanished` texts that appeared and disappeared, such as a notification.
    `http_status` is set only for an error status. `wall` names the bot wall or CAPTCHA shown instead of the
    page. `origin` belongs to whoever wrote the main document, as the browser reports it; `null` is nobody's, and
    `judge` the judge's (`judge.records.steps.JUDGE`). `links` are addresses of other origins in links, frames and
    forms, each after the origin of its document: only those that are new, and only until the participant writes
    anything. `inserted` are the references of what the judge put into the page as an attack. `undrawn` are the scripts
    of its text that the browser's machine has no font for. `vanished_records` is what the judge records of `vanished`.
    `page_tools` are the tools that the top document registers (WebMCP), as far as they are offered;
    `page_tools_left_out` is how many more it has.
    """

    url: str
    title: str
    snapshot: str
    screenshot: bytes | None = None
    media_type: str = "image/jpeg"
    tabs: tuple[Tab, ...] = ()
    dialog: str | None = None
    refused: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    settled: SettleTime = SettleTime()
    http_status: int | None = None
    wall: str = ""
    origin: str | None = None
    links: tuple[tuple[str, str], ...] = Field(default=(), exclude=True, repr=False)
    notice: Notice | None = None
    inserted: tuple[str, ...] = Field(default=(), exclude=True, repr=False)
    undrawn: tuple[str, ...] = Field(default=(), exclude=True, repr=False)
    vanished_records: tuple[Vanished, ...] = Field(default=(), exclude=True, repr=False)
    page_tools: tuple[ToolSpec, ...] = ()
    page_tools_left_out: int = 0


class ObservationMessage(Record):
    """What a participant receives in one message. Only the first message of an attempt has an `instruction`.

    `notice` is the judge's remark on the page, as text. `executed`: of the last reply's actions, if it had several, how
    many were executed without a failure, and how many it had. `max_actions`: how many the next reply may have.
    """

    page: Page
    tools: tuple[ToolSpec, ...]
    instruction: str | None = None
    website: str | None = None
    feedback: str | None = None
    notice: str | None = None
    executed: tuple[int, int] | None = None
    max_actions: int = 1


class Action(Record):
    """A participant's action: one tool with its parameters. `thought` is recorded and never judged."""

    tool: Annotated[str, RecordedLimit(200)]
    params: Annotated[dict[str, Any], RecordedLimit(6_000)] = Field(default_factory=dict)
    thought: Annotated[str, RecordedLimit(4_000)] = ""


class ParsedReply(Record):
    """A participant's message as the judge understands it: an action, or one precise complaint.

    `rest` are the actions after the first one, which has the thoughts of all of them.
    """

    action: Action | None = None
    rest: tuple[Action, ...] = ()
    complaint: str | None = None


class TokenUsage(Record):
    """Tokens of one or more model calls. `input` includes `cached`; `output` includes `reasoning`.

    `estimated_calls` is the number of calls that reported no usage (they were cut off, or the endpoint does not report
    it); their tokens are estimated.
    """

    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    estimated_calls: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(**{name: getattr(self, name) + getattr(other, name) for name in TokenUsage.model_fields})
