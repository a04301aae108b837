"""The state that the shards of a run share: rate limits, a budget and the judge model's replies."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from pydantic import SecretStr

from shared.engines import ENGINES, opener_of
from shared.errors import ConfigError
from shared.llm.limits import Budget, Limiter, Spending
from shared.llm.model import Completion


class SharedReplies(Protocol):
    """Replies that one shard has paid for and all may use. `id` names them."""

    id: str

    async def once(self, name: str, ask: Callable[[], Awaitable[Completion]]) -> Completion:
        """The stored reply to the request `name`, the one that another shard is waiting for, or what `ask` returns.

        Errors are not stored: after one, the next waiting caller asks. Raises `SharedStateFault`.
        """
        ...

    async def payer(self, name: str, payer: str) -> str:
        """Which shard counts the reply to a request: the first one that claims it."""
        ...

    async def discard(self, name: str) -> None:
        """Forget the reply to a request."""
        ...

    async def aclose(self) -> None:
        """Release what is held."""
        ...


class SharedState(Protocol):
    """The shared state of one run. Created with the address and the run's id; raises `ConfigError` if unusable.

    If the store does not answer, a model call must fail before it is sent: there is no fallback to the limits of a
    single process.
    """

    async def check(self) -> None:
        """Raises `SharedStateFault` unless the store answers."""
        ...

    def limiter(self, name: str, per_minute: float, largest: float) -> Limiter:
        """A limiter of at most `per_minute` in any 60 s over all shards, for amounts up to `largest`."""
        ...

    def budget(
        self,
        shard: str,
        max_cost_usd: float | None,
        max_tokens: int | None,
        *,
        spending: Spending | None,
        call_timeout_s: float,
    ) -> Budget:
        """The budget of all shards. `spending` is what this shard alone has spent."""
        ...

    def replies(self) -> SharedReplies:
        """The replies of all shards."""
        ...

    async def aclose(self) -> None:
        """Release what is held."""
        ...


def open_state(url: SecretStr, run_id: str) -> SharedState:
    """The state of a run in the store at `url`. Raises `ConfigError`."""
    engine, address = opener_of(url.get_secret_value())
    if engine is None or engine.shared_state is None:
        known = ", ".join(f"{name}://" for name in ENGINES.names() if ENGINES.load(name).shared_state)
        # Without the address, which may contain a password.
        raise ConfigError(
            "WABE_REDIS_URL is not the address of a store that is installed", remedy=f"begin it with one of: {known}"
        )
    state: SharedState = engine.shared_state(SecretStr(address), run_id)
    return state
