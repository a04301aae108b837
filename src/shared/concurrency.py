"""Concurrent work. If one piece fails, the others are cancelled and its error is raised, not wrapped in a group."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results, in order."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except ExceptionGroup as errors:
        # Callers expect a single error; later ones are usually consequences of the first.
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def for_each(items: Iterable[T], do: Callable[[T], Awaitable[None]], *, at_once: int) -> None:
    """`do` for every item, for at most `at_once` of them at a time."""
    todo = iter(items)

    async def work() -> None:
        # Workers share one iterator, so that only the items in progress are in memory.
        for item in todo:
            await do(item)

    await together(work() for _ in range(at_once))
