"""A browser environment for TRL's `environment_factory`, which plays tasks of a `wabe env serve` over the network.

    GRPOTrainer(…, environment_factory=functools.partial(BrowserEnvironment, "ws://127.0.0.1:8000/ws"))

This file needs `websockets` and nothing of WABE or TRL, so it can be copied. TRL makes an instance for each rollout of
a batch and uses it again: `reset` gets the columns of the example (`task_id` or `seed` choose the task), `act` is the
model's tool, and `get_reward` is called once at the end.

**An episode without a score has the reward `None`**, which TRL leaves out (NaN). It never becomes 0, and a fault is not
raised: from `reset` it would end the training, and from a tool the model would read it and go on.
"""

import contextlib
import json
import logging
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

_log = logging.getLogger(__name__)
_OVER = "The episode is over."
_UNAVAILABLE = "The browser is not available. Stop."
_CONNECT_S = 60.0
_ANSWER_S = 60.0


class BrowserEnvironment:
    """One rollout's browser. `headers` are sent when connecting, such as `{"Authorization": "Bearer …"}`."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self._url = url
        self._headers = headers
        self._socket: ClientConnection | None = None
        self._open = contextlib.ExitStack()
        self._reward: float | None = None

    def reset(self, task_id: str | None = None, seed: int | None = None, **columns: Any) -> str:
        """Begin an episode; returns the first page, which TRL appends to the prompt.

        Raises `ValueError` for a task that the server does not have, which is a mistake in the data set.
        """
        del columns
        self._leave()
        self._reward = None
        chosen = {"task_id": task_id, "seed": seed}
        try:
            dialled = connect(self._url, additional_headers=self._headers, open_timeout=_CONNECT_S, max_size=None)
            self._socket = self._open.enter_context(dialled)
            return self._ask("reset", {name: value for name, value in chosen.items() if value is not None})
        except (OSError, WebSocketException, _EpisodeLost) as error:
            return self._lost(error)

    def act(self, tool: str, params: dict[str, Any] | None = None) -> str:
        """Execute one action in the browser, and look at the page after it.

        Args:
            tool: The name of the tool, as the first page lists them.
            params: The parameters of the tool.

        Returns:
            The page after the action.
        """
        if self._socket is None:
            return _OVER
        try:
            return self._ask("step", {"tool": tool, "params": params or {}})
        except (OSError, WebSocketException, _EpisodeLost) as error:
            return self._lost(error)

    def get_reward(self) -> float | None:
        """The reward of the episode, which ends here if the model has left it open; `None` if it has no score."""
        if self._socket is not None:
            # It has no answer, because the environment does not see what the model wrote last.
            self.act("finish")
        self._leave()
        return self._reward

    def _ask(self, kind: str, data: dict[str, Any]) -> str:
        assert self._socket is not None
        self._socket.send(json.dumps({"type": kind, "data": data}))
        answer = json.loads(self._socket.recv(timeout=_ANSWER_S))
        found = answer["data"]
        if answer["type"] == "error":
            if found["code"] == "VALIDATION_ERROR":
                self._leave()
                raise ValueError(found["message"])
            raise _EpisodeLost(f"{found['message']} ({found['code']})")
        if found["done"]:
            self._reward = found["reward"]
            self._leave()
            return _OVER
        return str(found["observation"]["text"])

    def _lost(self, error: Exception) -> str:
        """The episode has no score. Why is for people only: the model could learn from it."""
        _log.warning("an episode is lost: %s", error)
        self._leave()
        return _UNAVAILABLE

    def _leave(self) -> None:
        self._socket = None
        self._open.close()


class _EpisodeLost(Exception):
    """The server ended the episode without a score, or has no free session."""
