import asyncio

import pytest

from shared.concurrency import for_each, together


async def test_results_come_in_the_order_of_the_work() -> None:
    second_is_done = asyncio.Event()

    async def first() -> int:
        await second_is_done.wait()
        return 1

    async def second() -> int:
        second_is_done.set()
        return 2

    assert await together([first(), second()]) == [1, 2]


async def test_an_error_is_raised_by_itself_and_cancels_the_rest() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def fails() -> None:
        # As where the reader of a pipe has closed it: such an error has an exit code of its own.
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await together([waits(), fails()])
    assert ended == ["cancelled"]


async def test_a_limited_number_of_items_is_processed_at_once() -> None:
    under_way: list[int] = []
    most: list[int] = []

    async def do(item: int) -> None:
        under_way.append(item)
        most.append(len(under_way))
        await asyncio.sleep(0)
        under_way.remove(item)

    await for_each(range(7), do, at_once=3)
    assert (len(most), max(most)) == (7, 3)
