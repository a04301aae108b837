"""A participant that asks a model: its own memory of the task and its calls, and a readable reply every time.

A model's reply is read and checked here by the rules the judge goes by, so a slip costs another question to the model
and not a step of the episode.
"""

import asyncio
import json
import logging

from participants import base
from participants.model_prompt import MAX_PARAMS_CHARS, SYSTEM, Turn, render_state
from shared.errors import ModelError, ModelKeyRefused, ModelUnavailable
from shared.llm.model import ImagePart, Model, ModelRequest
from shared.models import Action, Observation
from shared.protocol import parse_reply
from shared.snapshot import parse_snapshot
from shared.text import clip

log = logging.getLogger(__name__)
MAX_QUESTIONS = 3
# A judge waits 120 s for a reply unless its scenario says otherwise; one call and all calls of a turn stay below.
CALL_TIMEOUT_S = 100.0
TURN_TIMEOUT_S = 105.0
MAX_LOST_TURNS = 3
WAIT_S = 3
_WAIT_TOOL = "browser_wait_for"


class ModelPlayer:
    """A `Decide` on one model for all episodes."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._decide = base.per_episode(lambda: ModelAgent(model).decide)

    async def __call__(self, observation: base.Observation) -> base.Reply:
        """The next action of the observation's episode."""
        return await self._decide(observation)

    async def aclose(self) -> None:
        """Close the model's connections."""
        await self._model.aclose()


class ModelAgent:
    """One episode played by a model. Raises `ModelError` when the model stays out of reach."""

    def __init__(self, model: Model, *, turn_timeout_s: float = TURN_TIMEOUT_S) -> None:
        self._model = model
        self._turn_timeout_s = turn_timeout_s
        self._task = ""
        self._website: str | None = None
        self._turns: list[Turn] = []
        self._snapshot: str | None = None
        self._lost = 0

    async def decide(self, observation: Observation) -> Action:
        """The next action. While the model is out of reach the agent waits on the page, a few turns long."""
        self._remember(observation)
        action, error = await self._ask_in_time(observation)
        if action is None:
            self._lost += 1
            if self._lost > MAX_LOST_TURNS and error is not None:
                raise error
            action = Action(tool=_WAIT_TOOL, params={"time": WAIT_S}, thought="I have no usable idea yet; I wait.")
        else:
            self._lost = 0
        params = clip(json.dumps(action.params, ensure_ascii=True), MAX_PARAMS_CHARS)
        self._turns.append(Turn(url=observation.page.url, call=f"{action.tool} {params}", thought=action.thought))
        self._snapshot = observation.page.snapshot
        return action

    def _remember(self, observation: Observation) -> None:
        """Keep the task, which is said once, and put what came of the last call beside it."""
        if observation.instruction is not None:
            self._task, self._website = observation.instruction, observation.website
            self._turns.clear()
            self._snapshot = None
        elif self._turns:
            result = "done"
            if observation.feedback is not None:
                # Why it failed, or what the page's text search and the like have found.
                result = f"the judge said: {observation.feedback}"
            elif observation.page.snapshot == self._snapshot:
                result = "done, but the page did not change"
            self._turns[-1] = self._turns[-1].model_copy(update={"result": result})

    async def _ask_in_time(self, observation: Observation) -> tuple[Action | None, ModelError | None]:
        try:
            async with asyncio.timeout(self._turn_timeout_s) as limit:
                return await self._ask(observation)
        except TimeoutError:
            if not limit.expired():
                raise
            return None, ModelUnavailable(f"{self._model.name} did not answer within {self._turn_timeout_s:g} s")

    async def _ask(self, observation: Observation) -> tuple[Action | None, ModelError | None]:
        """Ask until a reply can be used. What the last reply lacked is said; a refused picture is left out."""
        state = render_state(self._task, self._website, self._turns, observation)
        image = observation.page.screenshot
        note = ""
        error: ModelError | None = None
        for _ in range(MAX_QUESTIONS):
            parts: list[str | ImagePart] = [state]
            if image:
                parts.append(ImagePart(data=image, media_type=observation.page.media_type))
            if note:
                parts.append(note)
            try:
                completion = await self._model.complete(ModelRequest(system=SYSTEM, parts=tuple(parts)))
            except ModelKeyRefused:
                # No wait and no other question mends that.
                raise
            except ModelUnavailable as caught:
                # The adapter has tried again for as long as a reply may take.
                log.warning("%s", caught)
                return None, caught
            except ModelError as caught:
                log.warning("%s", caught)
                error, image = caught, None
                continue
            reply = parse_reply(completion.text)
            complaint = reply.complaint if reply.action is None else usable(reply.action, observation)
            if complaint is None:
                return reply.action, None
            note = f"Your last reply cannot be used: {complaint}. Reply again in the form you were told."
        return None, error


def usable(action: Action, observation: Observation) -> str | None:
    """Why the judge would refuse this action, or `None` when it can be sent."""
    spec = next((tool for tool in observation.tools if tool.name == action.tool), None)
    if spec is None:
        return (
            f"there is no tool {clip(action.tool, 60)!r}; one of: {', '.join(tool.name for tool in observation.tools)}"
        )
    given = {"target" if name == "ref" else name for name in action.params}
    missing = [name for name in spec.parameters.get("required", ()) if name not in given]
    if missing:
        return f"{action.tool} needs {', '.join(missing)}"
    target = action.params.get("target", action.params.get("ref"))
    if target is not None and not _is_on_page(target, observation.page.snapshot):
        return f"the current snapshot has no element {clip(str(target), 40)!r}"
    return None


def _is_on_page(target: object, snapshot: str) -> bool:
    # A snapshot that was cut ends in a note that no page can write; what was left out may hold the element.
    is_cut = snapshot.rpartition("\n")[2].startswith("# ")
    return isinstance(target, str) and (is_cut or parse_snapshot(snapshot).by_ref(target) is not None)
