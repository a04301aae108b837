"""The steps of an attempt, each with one observation, one reply and one outcome; and how the attempt ended."""

from typing import Annotated, Literal

from judge.records.attacks import Inserted
from judge.records.files import Download
from judge.records.user import Asked
from shared.claims import ClaimedTrace
from shared.models import Action, Address, Notice, Record, RecordedLimit, Tab, Title, Vanished, omit_default

StopReason = Literal[
    "finished",  # the participant called `finish` or `browser_close`
    "ended_by_page",  # a probe with `ends` found a value
    "max_steps",  # over the step budget, no answer
    "task_timeout",  # over the time budget, no answer
    "participant_error",  # erred, timed out, disconnected
    "unreadable_replies",  # three unreadable replies in a row
    "environment_fault",  # browser, site or judge fault: aborted
    "site_blocked",  # a bot wall or CAPTCHA instead of the first page: aborted
    "cancelled",  # the assessment was stopped: aborted
    "excluded",  # excluded before the first attempt (`--exclude`): never played
]


# Who wrote a page that the judge shows in place of a site's, such as one that an archive does not have.
JUDGE = "judge"
# Of an attempt, as many as the configuration allows at most.
MAX_STEPS = 1000


class Outcome(Record):
    """The result of an action. `line` is the factual action line; only executed actions have one.

    `message` is the browser's text, bounded; the participant receives it as feedback if `ok` is false. `refs` are
    the references of the elements that the line names; an empty one is an element without a reference. An action
    that failed has some if it may have taken effect nevertheless, because it took too long or broke the browser;
    `attempted` is its line, recorded for tasks with policies. `own_line` is the line without what was typed into
    the names of elements, if that is another one. `value` is what the line does not say: the content of a field
    right afterwards where that is not what was typed into it (never of a field for secrets), and which of several
    options with the same label was chosen.
    """

    ok: bool
    message: Annotated[str, RecordedLimit(3_000)] = ""
    line: Annotated[str | None, RecordedLimit(3_000)] = None
    refs: tuple[str, ...] = omit_default(())
    attempted: Annotated[str | None, RecordedLimit(3_000)] = omit_default(None)
    own_line: Annotated[str | None, RecordedLimit(3_000)] = omit_default(None)
    value: Annotated[str | None, RecordedLimit(3_000)] = omit_default(None)


class Timings(Record):
    """Where a step's wall time went, in seconds. `settle_s` is part of `observe_s`; `page_s` is page time."""

    observe_s: float = 0.0
    reply_s: float = 0.0
    act_s: float = 0.0
    settle_s: float = 0.0
    page_s: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the time was recorded; other tools rarely do."""
        return self.observe_s + self.reply_s + self.act_s > 0


class Navigation(Record):
    """One request for a page or for a frame's document, and who led the browser there (`judge.episode.blame`).

    `cause`: the judge's browser opened the address or went back on request; otherwise a page navigated.
    """

    url: Address
    is_redirect: bool = False
    by: Literal["participant", "site"]
    in_frame: bool = omit_default(False)
    cause: Literal["goto", "back"] | None = omit_default(None)


class BlameFacts(Record):
    """The facts that decided whose fault it was that the browser's process was lost or the site was unreachable.

    For a lost browser: the `address` of the document that decided (of the participant's doing, if any was), whether it
    was in a frame and not on the task's site (`is_elsewhere`), whether the participant had named it (`is_named`),
    whether the task's site had led there before the participant wrote anything (`is_linked`), and whether it had
    (`has_written`). `is_incomplete`: too many documents to record. `is_killed`: another process killed the browser, so
    that no document decided; `address` is the front page's. For a site: whether the participant `has_acted` in
    every attempt, and whether the site `works_again` after another reset.
    """

    fault: Literal["browser_lost", "site_unreachable"]
    party: Literal["participant", "site"]
    address: str = ""
    in_frame: bool = False
    is_elsewhere: bool = False
    is_named: bool = False
    is_linked: bool = False
    has_written: bool = False
    is_incomplete: bool = omit_default(False)
    is_killed: bool = omit_default(False)
    has_acted: bool | None = omit_default(None)
    works_again: bool | None = omit_default(None)


class ProbeValue(Record):
    """The value that the judge read in the page for one expression, or why it could not be read."""

    value: bool | int | float | str | None = None
    error: Annotated[str | None, RecordedLimit(12_000)] = None


class Step(Record):
    """One observation, one action, one outcome. Paths are relative to the task's folder; `reply` is bounded text.

    Of a reply with several actions, each one that was executed, or failed, has a step; only the first step has the
    reply's text and thought. `reply_index` is the number of the reply, from 0, if it is not `index`.

    The digests are of the two files' bytes; other programs write none. `viewport` is width and height in CSS
    pixels. `downloads` (names of files that pages began to download) and `navigations` are those since the previous
    step, so they include the ones that led to this observation. `probes` are the values of the expressions that the
    task's checks name, in order. `origin` belongs to whoever wrote the main document, or `JUDGE`; the snapshot has
    the frames' origins (`judge.browser.provenance`). `notice`: why the page was not observed as usual.
    `downloaded` is what is known of the downloads in `downloads`.
    `asked`: the participant's question to the user, with the answer. `inserted`: what the snapshot shows of the attack.
    `site_tools` are the names of the tools that the page registered and the participant was offered.
    `claimed_trace` is what the participant says that it did for its reply.
    `is_loaded`, on frozen sites: the attempt has had one tab only, and a new document has taken the page's place in it.
    `vanished` is text where nothing else is known of it. `sent_lines` is how many lines of the snapshot the
    participant was sent, if not all of them.
    """

    index: int
    reply_index: int | None = omit_default(None)
    url: Address
    origin: str | None = omit_default(None)
    title: Title
    screenshot: str | None = None
    screenshot_sha256: str | None = None
    snapshot: str | None = None
    snapshot_sha256: str | None = None
    dialog: Annotated[str | None, RecordedLimit(1_500)] = None
    reply: Annotated[str, RecordedLimit(10_000)] = ""
    action: Action | None = None
    outcome: Outcome | None = None
    feedback: Annotated[str | None, RecordedLimit(3_000)] = None
    flags: Annotated[tuple[str, ...], RecordedLimit(500)] = ()
    refused: Annotated[tuple[str, ...], RecordedLimit(2_500)] = ()
    tabs: tuple[Tab, ...] = ()
    viewport: tuple[int, int] | None = None
    downloads: tuple[str, ...] = ()
    downloaded: tuple[Download, ...] = omit_default(())
    navigations: tuple[Navigation, ...] = ()
    vanished: tuple[Vanished | str, ...] = ()
    waited_for: tuple[str, ...] = ()
    probes: tuple[ProbeValue, ...] = ()
    notice: Notice | None = omit_default(None)
    asked: Asked | None = omit_default(None)
    inserted: Inserted | None = omit_default(None)
    site_tools: Annotated[tuple[str, ...], RecordedLimit(8_000)] = omit_default(())
    claimed_trace: ClaimedTrace | None = omit_default(None)
    sent_lines: int | None = omit_default(None)
    is_loaded: bool = omit_default(False)
    timings: Timings = Timings()

    @property
    def of_reply(self) -> int:
        """The number of the reply whose action this is, from 0."""
        return self.index if self.reply_index is None else self.reply_index

    @property
    def vanished_texts(self) -> tuple[str, ...]:
        """The texts that vanished, as the participant saw them."""
        return tuple(each if isinstance(each, str) else each.text for each in self.vanished)
