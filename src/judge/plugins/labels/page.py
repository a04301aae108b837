"""The page on which a person labels attempts: one attempt at a time, by its place in the session.

Blind, it has no verdict, no check, nothing of a judge, and neither the agent nor the run: what it does not show is not
in its source either. What attempts contain is data, escaped as in reports.
"""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from judge.plugins.labels.corrections import LabelledRun
from judge.plugins.labels.label_files import MAX_NOTE_CHARS, LabelWord
from judge.plugins.labels.labelling import Labelling
from judge.records.steps import Step
from judge.report.pages import Renderer
from judge.results.identity import identity_in, player
from judge.trajectory.paths import inside
from judge.trajectory.record import Trajectory
from shared.a2a.local_pages import LocalPages
from shared.errors import ConfigError, TrajectoryError
from shared.files import read_file, read_text
from shared.images import image_size, media_type
from shared.models import Record
from shared.pages import HtmlPage

_REFUSAL = "The page for labelling is shown on its own machine only, at a loopback address or the named host.\n"
_MAX_IMAGE_BYTES = 32_000_000
_MAX_SNAPSHOT_CHARS = 20_000


class LabelChange(Record):
    """What the page sends: the attempt's place, the label, or `None` to take it back, and the note."""

    place: Annotated[int, Field(ge=0)]
    label: LabelWord | None
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS)] = ""
    seconds: Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)] = 0.0


class UndoChange(Record):
    """A request to take back the last label."""


class _ShownStep(NamedTuple):
    """A step: its action line, the page on which it was taken, and its picture's size if there is one."""

    number: int
    words: str
    url: str
    title: str
    size: tuple[int, int] | None
    has_image: bool
    snapshot: str


class _Unblinded(NamedTuple):
    """What a blind page does not have."""

    run: str
    player: str
    verdict: str
    reason: str


def label_routes(session: Labelling, *, host: str = "") -> list[Route]:
    """The session at `/`, its attempts by place from 1, their pictures, and the changes.

    They answer requests from this machine only, at a loopback name or at the host `host`.
    """
    local = LocalPages(_REFUSAL, host)
    page = _LabelPage(session, local.token)
    return [
        *local.shows(
            {
                "/": page.front,
                "/attempt/{number:int}": page.attempt,
                "/image/{number:int}/{step:int}": page.image,
                "/done": page.done,
            }
        ),
        local.takes("/label", LabelChange, page.keep),
        local.takes("/undo", UndoChange, page.undo),
    ]


class _LabelPage:
    def __init__(self, session: Labelling, token: str) -> None:
        self._session = session
        self._token = token
        self._renderer = Renderer()
        # The attempt shown last, whose pictures follow; it is read again when it is labelled.
        self._current: tuple[int, Trajectory] | None = None

    def front(self, _: Request) -> Response:
        """To the first attempt without a label, or to the end."""
        return RedirectResponse(self._address(self._session.next_open()))

    def attempt(self, request: Request) -> HtmlPage | None:
        place = request.path_params["number"] - 1
        if not 0 <= place < len(self._session.places):
            return None
        session, trajectory = self._session, self._session.trajectory(place)
        self._current = (place, trajectory)
        record = session.latest.get(place)
        return self._page(
            place=place,
            steps=[_step_view(trajectory, step, number) for number, step in enumerate(_steps(trajectory), 1)],
            task=trajectory.task.task,
            website=trajectory.task.website,
            answer=trajectory.attempt.final_answer,
            label=session.label_of(place),
            note=record.note if record else "",
            others=session.others(place) if session.adjudicates else {},
            unblinded=None if session.is_blind else self._unblinded(place, trajectory),
        )

    def image(self, request: Request) -> Response | None:
        place, number = request.path_params["number"] - 1, request.path_params["step"]
        if not 0 <= place < len(self._session.places) or number < 1:
            return None
        current = self._current
        try:
            trajectory = current[1] if current and current[0] == place else self._session.trajectory(place)
            data = read_file(_picture(trajectory, _steps(trajectory)[number - 1]), max_bytes=_MAX_IMAGE_BYTES)
        except (ConfigError, TrajectoryError, OSError, ValueError, IndexError):
            return None
        kind = media_type(data)
        # Anything else could be a page of somebody's.
        return None if kind is None else Response(data, media_type=kind)

    def done(self, _: Request) -> HtmlPage:
        session = self._session
        runs = list({place.run.run_id: place.run for place in session.places}.values())
        corrections = [LabelledRun(run).correction for run in runs]
        known = [each for each in corrections if each is not None]
        missing = sum(each.missing for each in known)
        stuck = next((each.why_absent for each in known if each.is_stuck), "")
        return self._page(place=None, runs=len(runs), missing=missing, is_enough=not missing, stuck=stuck)

    def keep(self, change: LabelChange) -> dict[str, Any]:
        if change.place >= len(self._session.places):
            raise ConfigError("no such attempt in this session", remedy="reload the page")
        self._session.say(change.place, change.label, change.note, change.seconds)
        return {"next": self._address(self._session.next_open(change.place)), "labelled": self._session.labelled}

    def undo(self, _: UndoChange) -> dict[str, Any]:
        place = self._session.undo()
        return {"next": None if place is None else self._address(place), "labelled": self._session.labelled}

    def _page(self, **values: Any) -> HtmlPage:
        session = self._session
        return self._renderer.of_server(
            "label.html",
            package="judge.plugins.labels",
            token=self._token,
            session=session,
            total=len(session.places),
            max_note_chars=MAX_NOTE_CHARS,
            **values,
        )

    def _unblinded(self, place: int, trajectory: Trajectory) -> _Unblinded:
        run, attempt = self._session.places[place]
        record = run.read_run() or {}
        role = next(iter(record.get("participants") or ()), "")
        verdict = trajectory.attempt.verdict
        reason = verdict.reason if verdict else ""
        return _Unblinded(run.run_id, player(identity_in(record), str(role)), attempt.verdict, reason)

    @staticmethod
    def _address(place: int | None) -> str:
        return "/done" if place is None else f"/attempt/{place + 1}"


def _steps(trajectory: Trajectory) -> list[Step]:
    """The steps, and the page after the attempt had ended."""
    attempt = trajectory.attempt
    return [*attempt.steps, *([attempt.final_look] if attempt.final_look else [])]


def _picture(trajectory: Trajectory, step: Step) -> Path:
    if not step.screenshot:
        raise ConfigError("no picture")
    return inside(trajectory.folder, step.screenshot)


def _step_view(trajectory: Trajectory, step: Step, number: int) -> _ShownStep:
    is_final = step is trajectory.attempt.final_look
    words = "the final page" if is_final else (step.outcome.line if step.outcome and step.outcome.line else "no action")
    size, has_image, snapshot = None, False, ""
    try:
        data = read_file(_picture(trajectory, step), max_bytes=_MAX_IMAGE_BYTES)
        has_image, size = media_type(data) is not None, image_size(data)
    except (ConfigError, TrajectoryError, OSError, ValueError):
        pass
    if not has_image and step.snapshot:
        try:
            snapshot = read_text(inside(trajectory.folder, step.snapshot))[:_MAX_SNAPSHOT_CHARS]
        except (TrajectoryError, OSError, ValueError):
            snapshot = ""
    return _ShownStep(number, words, step.url, step.title, size, has_image, snapshot)
