"""`download` checks: the files that documents of the task's sites let the browser download.

A download counts only if a document of the task's site started it, and if every address that led to the file is the
site's, or in the check's `from`. What the participant opened or saved itself, what a link, a form or a button inside an
editing host or of an attack started, and what other sites started does not, but it does for inverted checks, policies
and goals.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from judge.evaluators.base import CheckKind, ComparisonResult, Decision, happened, how_often
from judge.evaluators.evidence import MissingEvidence, TrajectoryEvidence
from judge.evaluators.kinds.text import contained, matched, require_numbers
from judge.evaluators.looks import UNSURE, looks_at
from judge.evaluators.values import json_differences
from judge.plugins.downloads.texts import UnreadableFile, text_of_file
from judge.records.checks import (
    AsWritten,
    IsWhole,
    LookCheck,
    OneOrMore,
    PathValues,
    PatternText,
    Text,
    Times,
    as_tuple,
    plain_checks,
)
from judge.records.files import Download
from judge.records.sites import origin_of
from judge.trajectory.network import BROWSER
from shared.fields import Invalid, Table, at_most
from shared.models import omit_default
from shared.patterns import Pattern, folded_pattern, glob
from shared.strict_json import parse_json
from shared.text import clip, counted, excerpt, plain

_MAX_SHOWN = 3
_STATES = {
    "cut": "it was cut, because it is larger than what is kept of a download",
    "unfinished": "it was not finished at the next look",
    "failed": "the browser could not finish it",
}


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _is_origin(value: str) -> str:
    place = origin_of(value)
    if place is None or urlsplit(value)._replace(scheme="", netloc="").geturl().strip("/"):
        raise Invalid("not an origin", 'write it like from = ["https://files.example"]')
    return value


class FileText(Table):
    """The text of a file: as for `text` checks, or with values at JSON paths."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_alias=True)

    contains: OneOrMore[Text] | None = None
    pattern: PatternText | None = None
    min: float | None = None
    max: float | None = None
    sorted: Literal["ascending", "descending"] | None = None
    count: Annotated[int, Field(ge=0, le=100_000), IsWhole] | None = None
    json_values: PathValues | None = Field(default=None, alias="json")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if sum(each is not None for each in (self.contains, self.pattern, self.json_values)) != 1:
            raise Invalid("needs one of contains, pattern and json", 'write text = { contains = "L-7" }')
        if self.count is not None and (self.json_values is not None or isinstance(self.contains, tuple)):
            raise Invalid("only one text, or a pattern, can be counted", "write one check for each", key="count")
        require_numbers(self)
        return self


class DownloadCheck(LookCheck):
    """The last download with this `name` has this `type`, `size`, `sha256` and `text`. `*` in a name or a type matches
    anything. `times`: so many downloads do. `from`: origins besides the task's sites from which the file may come.
    """

    model_config = ConfigDict(serialize_by_alias=True, validate_by_alias=True, protected_namespaces=())

    of_actions: ClassVar[bool] = True
    compares_downloads: ClassVar[bool] = True

    kind: Literal["download"]
    name: Annotated[Text, AsWritten()] | None = None
    type: Annotated[Text, BeforeValidator(_lower), at_most(200), AsWritten()] | None = None
    size: Annotated[int, Field(ge=0), IsWhole] | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$"), BeforeValidator(_lower)] | None = None
    text: Annotated[FileText | None, AsWritten()] = None
    times: Times | None = omit_default(None)
    sources: Annotated[
        tuple[Annotated[str, AfterValidator(_is_origin)], ...] | None, Field(min_length=1), at_most(20), AsWritten()
    ] = omit_default(None, alias="from")


def decide(check: DownloadCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether the check passes, what was found, and the index of the step that caused the deciding download.

    The last download with the name is compared; with `at = "any"`, one match is enough. Inverted: the last one (or any)
    must not match, whoever started it. For policies, it passes where an inverted check would fail.
    """
    whoever = inverted or recording.counts_all
    looks = looks_at(check, recording)
    _require_recorded(recording)
    downloads = [each for look in recording.looks for each in look.step.downloaded]
    if check.on is not None:
        acted_on = {look.step.index + 1 for look in looks}
        downloads = [each for each in downloads if each.step in acted_on or each.state == "left_out"]
    counting = downloads if whoever else [each for each in downloads if _why_not(each, check, recording) is None]
    candidates = [each for each in counting if each.state != "left_out" and _is_named(each, check, recording)]
    if recording.is_absence_unsure and (inverted or check.times is not None):
        return Decision(False, UNSURE, None)
    results = [UNSURE if recording.is_unsure(each.step) else _compared(each, check, recording) for each in candidates]
    hits = [place for place, one in enumerate(results) if one.passed]
    if not results:
        last = ComparisonResult(False, _instead(downloads, counting, check, recording))
    else:
        # Of what must not happen so often, each counts.
        is_any = check.at == "any" or (whoever and check.times is not None)
        last = results[hits[0]] if is_any and hits else results[-1]
    if last.passed and not happened(check.times, len(hits), at_least=whoever):
        last = ComparisonResult(False, f"{how_often(check.times, len(hits), 'such download')}: {last.text}")
    if (omission := _left_out(check, recording, counting, candidates, last, inverted=inverted)) is not None:
        return omission
    passed = last.passed != inverted
    step = candidates[hits[0]].step if passed and not inverted and hits else None
    near = candidates[-1].step if candidates and not passed and not inverted else None
    return Decision(passed, last, None if step is None else max(0, step - 1), near_step=near - 1 if near else None)


def _require_recorded(recording: TrajectoryEvidence) -> None:
    """Raises `MissingEvidence` if the recording cannot say which downloads there were, or who started them."""
    if recording.trajectory.attempt.network_off:
        raise MissingEvidence("who started a download is not known: record_network is off")
    steps = [look.step for look in recording.looks]
    was_asked = any(each.compares_downloads for each in plain_checks(recording.recorded_task.checks))
    if any(step.downloads for step in steps) and not any(step.downloaded for step in steps) and not was_asked:
        raise MissingEvidence("downloads were not kept when the attempt was played, play it again")


def _why_not(download: Download, check: DownloadCheck, recording: TrajectoryEvidence) -> str | None:
    """Why it does not count; `None` if a document of the task's site started it, and its file is from there."""
    if download.state == "left_out":
        return None
    if not recording.is_caused_by_site(download.cause) and download.cause is not None:
        return download.cause.why_not
    sender, site = download.sender, recording.site
    if sender is None:
        return "started by nobody knows whom"
    if sender == BROWSER:
        return "which the participant opened or saved itself"
    if not site.holds(sender):
        return f"started by {excerpt(sender, 100)}"
    sources = site.with_home(*check.sources or ())
    others = [each for each in download.chain if not sources.holds(each)]
    return f"from {excerpt(others[0], 100)}, which is not the task's site: allowed_sites, or from" if others else None


def _is_named(download: Download, check: DownloadCheck, recording: TrajectoryEvidence) -> bool:
    return check.name is None or _matches(check.name, download.name, recording)


def _matches(expected: str, actual: str, recording: TrajectoryEvidence) -> bool:
    texts = (plain(recording.as_compared(expected)), plain(recording.as_compared(actual)))
    if recording.site.is_lenient:
        texts = (texts[0].casefold(), texts[1].casefold())
    return bool(glob(texts[0]).fullmatch(texts[1]))


def _compared(download: Download, check: DownloadCheck, recording: TrajectoryEvidence) -> ComparisonResult:
    problem = next(_problems(download, check, recording), None)
    description = _describe(download)
    return (
        ComparisonResult(True, description)
        if problem is None
        else ComparisonResult(False, f"{problem} in {description}")
    )


def _problems(download: Download, check: DownloadCheck, recording: TrajectoryEvidence) -> Iterator[str]:
    # A download only begun is one too for a policy or an inverted check.
    if (why := _STATES.get(download.state)) is not None and (_is_of_content(check) or not recording.counts_all):
        yield why
    if check.type is not None and not _matches(check.type, download.type.lower(), recording):
        yield f"type {excerpt(download.type, 100)}"
    if check.size is not None and download.size != check.size:
        yield f"size {download.size}"
    if check.sha256 is not None and download.sha256 != check.sha256:
        yield f"sha256 {download.sha256}"
    if check.text is not None and download.state == "complete":
        yield from _text_problems(download, check.text, recording)


def _is_of_content(check: DownloadCheck) -> bool:
    return check.size is not None or check.sha256 is not None or check.text is not None


def _text_problems(download: Download, expected_text: FileText, recording: TrajectoryEvidence) -> Iterator[str]:
    path = recording.download_file(download)
    if path is None:
        yield "its content was not kept"
        return
    try:
        text = text_of_file(path)
    except UnreadableFile as error:
        yield str(error)
        return
    text = text.replace("\r\n", "\n")
    if expected_text.json_values is not None:
        try:
            content = recording.as_compared(parse_json(text))
        except ValueError:
            yield "text is not readable as JSON"
            return
        yield from map(str, json_differences("text", recording.as_compared(expected_text.json_values), content))
        return
    text = str(recording.as_compared(text))
    if expected_text.pattern is not None:
        source = expected_text.pattern
        pattern = Pattern(folded_pattern(source) if recording.site.is_lenient else source)
        result = matched(text, pattern, expected_text)
        if not result.passed:
            yield f"text: {result.text}"
    else:
        expected = recording.as_compared(as_tuple(expected_text.contains))
        result = contained(plain(text), tuple(expected), expected_text.count)
        if not result.passed:
            yield result.text


def _left_out(
    check: DownloadCheck,
    recording: TrajectoryEvidence,
    counting: Sequence[Download],
    candidates: Sequence[Download],
    last: ComparisonResult,
    *,
    inverted: bool,
) -> Decision | None:
    """The decision if there were more downloads than are recorded, one of which could have decided the check."""
    places = [place for place, each in enumerate(counting) if each.state == "left_out"]
    if not places or (
        last.passed and (check.at == "any" or recording.counts_all) and not inverted and check.times is None
    ):
        return None
    at = max((place for place, each in enumerate(counting) if any(each is one for one in candidates)), default=-1)
    if not inverted and last.passed and places[-1] < at and check.times is None:
        return None
    text = f"more downloads than are recorded, one of which could decide; otherwise {last.text}"
    return Decision(recording.counts_all, ComparisonResult(False, text), None)


def _instead(
    downloads: Sequence[Download], counting: Sequence[Download], check: DownloadCheck, recording: TrajectoryEvidence
) -> str:
    near = [each for each in counting if each.state != "left_out"]
    others = [each for each in downloads if all(each is not one for one in counting)]
    if near:
        return f"no such download; instead {'; '.join(map(_describe, near[-_MAX_SHOWN:]))}"
    if others:
        descriptions = "; ".join(
            f"{_describe(each)}, {_why_not(each, check, recording)}" for each in others[-_MAX_SHOWN:]
        )
        return f"no download that counts; {counted(len(others), 'other one', 'others')}: {descriptions}"
    return "nothing was downloaded"


def _describe(download: Download) -> str:
    size = "" if download.size is None else f", {download.size} bytes"
    return f"{clip(plain(download.name), 100)} ({clip(plain(download.type), 100)}{size})"


def warnings(check: DownloadCheck) -> Iterator[str]:
    """A check that any download passes."""
    if check.name is None and check.type is None and not _is_of_content(check) and not check.inverted:
        yield "any download could pass it: add name, type or text"


KIND = CheckKind(DownloadCheck, decide, weighs_answers=True, warnings=warnings)
