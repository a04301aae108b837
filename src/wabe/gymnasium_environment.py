"""A scenario's tasks as a Gymnasium environment, for programs written for one (BrowserGym's, for example).

Observations and actions are texts: a participant's messages and replies. Gymnasium wants a reward with every step: it
is 0.0 until the last one, which has the episode's.
"""

import asyncio
import threading
import weakref
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from shared.errors import ConfigError
from shared.images import opened_image, require_pillow
from shared.imports import optional_package

with optional_package("a Gymnasium environment needs gymnasium", "gymnasium"):
    import gymnasium
    import numpy as np
    from gymnasium import spaces

from judge.config import RewardKind, RunConfig
from judge.environment.session import EnvironmentSession, StepResult
from wabe.training import environments

_MAX_CHARS = 4_000_000
_STOPS_S = 60.0
T = TypeVar("T")


class UnicodeText(spaces.Text):
    """Texts of any characters: a page may contain all of them. Samples are letters and digits."""

    def contains(self, x: Any) -> bool:
        """Whether it is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length


class GymnasiumEnvironment(gymnasium.Env[dict[str, Any], str]):
    """One session on a scenario, which is open until `close`; it runs in a separate thread.

    An observation has the message's `text`, the `goal` (the task's instruction) and the page's `url`; with `images`
    also its `screenshot`, as RGB. At the end of an episode they are empty. `reset` takes a `seed`, which chooses the
    task, or `options={"task_id": …}`. The other arguments are `wabe.environment`'s.
    An episode that a fault ended raises `EpisodeFault`: it has no reward, and the next call is `reset`.
    """

    # Not a class variable to the type checker, because Gymnasium's is none.
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(
        self,
        scenario: Path | str,
        *,
        render_mode: str | None = None,
        images: bool = False,
        reward: RewardKind | None = None,
        idle_s: float = 600.0,
        record: Path | str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"unknown render_mode {render_mode!r}", remedy="use rgb_array, or leave it out")
        self.render_mode = render_mode
        if images or render_mode:
            require_pillow("screenshots", "gymnasium")
        self._has_images = images
        self._picture: bytes | None = None
        self._goal = ""
        options = {"reward": reward, "idle_s": idle_s, "record": record, "config": config}
        self._thread = _Thread(scenario, {**options, "images": images or render_mode is not None})
        self._finalizer = weakref.finalize(self, self._thread.stop)
        self._session, first = self._thread.started.result()
        self._size = first.viewport_height, first.viewport_width, 3
        text = UnicodeText(_MAX_CHARS, min_length=0)
        parts: dict[str, spaces.Space[Any]] = {"text": text, "goal": text, "url": text}
        if images:
            parts["screenshot"] = spaces.Box(0, 255, self._size, np.uint8)
        self.observation_space = spaces.Dict(parts)
        self.action_space = UnicodeText(100)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode. Raises `ConfigError` for a task not on offer, and `EpisodeFault`."""
        super().reset(seed=seed)
        self._goal = ""
        answer = self._thread.call(self._session.reset((options or {}).get("task_id"), seed=seed))
        return self._observation(answer), self._info()

    def step(self, action: str | Mapping[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Answer with a participant's reply, or with an action as a mapping. Raises `EpisodeFault`."""
        answer = self._thread.call(self._session.step(action))
        return self._observation(answer), answer.reward or 0.0, answer.done, False, self._info()

    def render(self) -> Any:
        """The last screenshot as RGB; `None` without a render mode."""
        return self._pixels() if self.render_mode else None

    def close(self) -> None:
        """Stop the browser and the sites."""
        self._finalizer()

    def _observation(self, answer: StepResult) -> dict[str, Any]:
        message = answer.message
        self._picture = answer.screenshot
        if message is not None and message.instruction is not None:
            self._goal = message.instruction
        url = message.page.url if message else ""
        fields: dict[str, Any] = {"text": answer.text, "goal": self._goal, "url": url}
        return {**fields, "screenshot": self._pixels()} if self._has_images else fields

    def _pixels(self) -> Any:
        """The screenshot, on a black ground of the viewport's size: a page that cannot be drawn has none."""
        ground = np.zeros(self._size, np.uint8)
        if self._picture is not None and (image := opened_image(self._picture)) is not None:
            pixels = np.asarray(image.convert("RGB"), np.uint8)[: self._size[0], : self._size[1]]
            ground[: pixels.shape[0], : pixels.shape[1]] = pixels
        return ground

    def _info(self) -> dict[str, Any]:
        # Without the episode's id, which is random, so that the same seed gives the same.
        return self._session.state().model_dump(exclude={"episode_id"})


class _Thread:
    """A thread with an event loop, in which the session lives until `stop`."""

    def __init__(self, scenario: Path | str, options: Mapping[str, Any]) -> None:
        self.started: Future[tuple[EnvironmentSession, RunConfig]] = Future()
        self._scenario = scenario
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="wabe environment", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine in the thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        """Close the session and wait for the thread's end."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(_STOPS_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._lives())
            # Whoever opens the environment gets it.
            except BaseException as error:
                if self.started.done():
                    raise
                self.started.set_exception(error)

    async def _lives(self) -> None:
        async with environments(self._scenario, 1, **self._options) as host:
            self.started.set_result((host.session(), host.config))
            await self._stopping.wait()
