"""Work that runs at the same time. When a piece fails, the others are cancelled, and its error is raised by itself."""

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
        # Callers handle single errors; those after the first are usually its consequences.
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def for_each(items: Iterable[T], do: Callable[[T], Awaitable[None]], *, at_once: int) -> None:
    """`do` for every item, for at most `at_once` of them at a time."""
    todo = iter(items)

    async def work() -> None:
        # Workers share one iterator, so that memory holds only the items that are being worked on.
        for item in todo:
            await do(item)

    await together(work() for _ in range(at_once))
