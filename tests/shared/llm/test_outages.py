"""A model that cannot be reached."""

import asyncio

import pytest

from shared.errors import ModelUnavailable, ModelUnreached
from shared.llm.model import Completion, ModelRequest
from shared.llm.outages import LAST_PROBE_AFTER_S, PROBE_EVERY_S, ProbedModel

QUESTION = ModelRequest(system="", parts=("Done?",))


class Endpoint:
    """A model's endpoint. `fault` is what a call meets; `calls` counts them."""

    name = "test:model"

    def __init__(self) -> None:
        self.fault: Exception | None = ModelUnreached("test:model cannot be reached", remedy="check the network")
        self.calls = 0

    async def complete(self, request: ModelRequest) -> Completion:
        self.calls += 1
        await asyncio.sleep(0)
        if self.fault is not None:
            raise self.fault
        return Completion(text="yes", model=self.name)

    async def aclose(self) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


async def failed(model: ProbedModel) -> str:
    with pytest.raises(ModelUnreached) as caught:
        await model.complete(QUESTION)
    return str(caught.value)


async def test_after_a_call_without_a_connection_others_fail_at_once_until_the_next_probe() -> None:
    endpoint, clock = Endpoint(), Clock()
    model = ProbedModel(endpoint, clock)
    first = await failed(model)
    clock.now_s += PROBE_EVERY_S - 1
    assert (await failed(model), endpoint.calls) == (first, 1)
    clock.now_s += 1
    assert (await failed(model), endpoint.calls) == (first, 2)
    assert (await failed(model), endpoint.calls) == (first, 2)


async def test_calls_made_during_a_probe_wait_for_it_and_are_answered_if_it_is() -> None:
    endpoint, clock = Endpoint(), Clock()
    model = ProbedModel(endpoint, clock)
    await failed(model)
    clock.now_s += PROBE_EVERY_S
    endpoint.fault = None
    answers = await asyncio.gather(*(model.complete(QUESTION) for _ in range(3)))
    assert ([answer.text for answer in answers], endpoint.calls) == (["yes"] * 3, 4)


async def test_of_calls_made_during_a_probe_that_fails_none_is_sent() -> None:
    endpoint, clock = Endpoint(), Clock()
    model = ProbedModel(endpoint, clock)
    await failed(model)
    clock.now_s += PROBE_EVERY_S
    await asyncio.gather(*(failed(model) for _ in range(3)))
    assert endpoint.calls == 2


@pytest.mark.parametrize(("since_s", "sent"), [(LAST_PROBE_AFTER_S - 1, 0), (LAST_PROBE_AFTER_S, 1)])
async def test_a_probe_that_is_asked_for_is_sent_unless_one_has_only_just_failed(since_s: float, sent: int) -> None:
    endpoint, clock = Endpoint(), Clock()
    model = ProbedModel(endpoint, clock)
    await failed(model)
    clock.now_s += since_s
    model.probe()
    await failed(model)
    assert endpoint.calls == 1 + sent


async def test_an_endpoint_that_answers_with_errors_is_asked_every_time() -> None:
    endpoint = Endpoint()
    endpoint.fault = ModelUnavailable("test:model answered HTTP 500")
    model = ProbedModel(endpoint, Clock())
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="HTTP 500"):
            await model.complete(QUESTION)
    assert endpoint.calls == 2
