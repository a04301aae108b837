"""The meter of `wabe run --meter` against stand-ins for the providers: are its counts theirs, and what does it cost?

    python benchmarks/metering.py [--calls 1000] [--at-once 50]

Plays calls in all wire formats, streamed and not, some of which report no tokens, through a meter in a process of its
own; compares its ledger with the providers' own log call by call; and the time with the same calls without it.
"""

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("tests", "src")]

import httpx

from helpers.ports import free_ports
from plugins.metering.meters import Metered, metering_process
from plugins.metering.providers import Provider, providing, request_of

KINDS = (
    "chat",
    "chat-stream-included",
    "chat-stream",
    "chat-packed",
    "responses",
    "responses-stream",
    "embeddings",
    "messages",
    "messages-stream",
    "messages-stream-silent",
    "generate",
    "generate-stream",
    "generate-stream-list",
    "generate-silent",
)


async def call_times(models: list[str], address: dict[str, str], at_once: int) -> list[float]:
    """The seconds of each call."""
    seconds: list[float] = []
    waiting = iter(models)

    async def worker(client: httpx.AsyncClient) -> None:
        for model in waiting:
            path, body = request_of(model)
            began = time.perf_counter()
            async with client.stream("POST", address[path], json=body) as answer:
                async for _ in answer.aiter_raw():
                    pass
                assert answer.status_code == 200, answer.status_code
            seconds.append(time.perf_counter() - began)

    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=at_once)) as client:
        await asyncio.gather(*(worker(client) for _ in range(at_once)))
    return seconds


def compare(meter: Metered, provider: Provider, models: list[str]) -> bool:
    """Print how the ledger compares with the provider's log."""
    by_model = meter.by_model()
    equal = sum(by_model[name].end.tokens == provider.reported[name] for name in models if name in by_model)
    unknown = [name for name in models if provider.reported[name] is None]
    unreported = sum(by_model[name].end.unknown == "not_reported" for name in unknown if name in by_model)
    known = [tokens for tokens in (provider.reported[name] for name in models) if tokens]
    counted = [call.end.tokens for call in meter.calls() if call.end.tokens]
    print(f"calls in the ledger: {len(meter.calls())} of {len(models)}")
    print(f"tokens equal the provider's log: {equal} of {len(models)} calls")
    print(f"reported no tokens: {len(unknown)}, unknown in the ledger: {unreported}")
    for name in ("input", "cached", "output", "reasoning"):
        ours, theirs = (sum(getattr(each, name) for each in side) for side in (counted, known))
        print(f"  {name} tokens: {ours:,} metered, {theirs:,} reported")
    return equal == len(models) == len(meter.calls()) and unreported == len(unknown)


async def main(calls: int, at_once: int) -> int:
    models = [f"{kind}-{number:05}" for number, kind in zip(range(calls), itertools.cycle(KINDS), strict=False)]
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        async with providing() as provider, metering_process(Path(folder, "ledger"), provider.url, port) as meter:
            paths = {request_of(model)[0] for model in models}
            direct = {path: provider.url + path for path in paths}
            through = {path: meter.address(path) for path in paths}
            ok, seconds = True, {}
            began = time.perf_counter()
            await call_times(models, through, at_once)
            wall = time.perf_counter() - began
            ok = compare(meter, provider, models)
            began = time.perf_counter()
            await call_times(models, direct, at_once)
            print(f"wall time of all calls, {at_once} at once: {wall:.1f} s metered, ", end="")
            print(f"{time.perf_counter() - began:.1f} s direct")
            # One at a time, taken in turn, so that both see the same machine.
            few = models[:140]
            for _ in range(3):
                for name, address in (("direct", direct), ("metered", through)):
                    seconds.setdefault(name, []).extend(await call_times(few, address, 1))
            median = {name: 1000 * statistics.median(each) for name, each in seconds.items()}
            print(
                f"median call, one at a time: {median['direct']:.2f} ms direct, {median['metered']:.2f} ms metered, ",
                end="",
            )
            print(f"ratio {median['metered'] / median['direct']:.2f}, {median['metered'] - median['direct']:+.2f} ms")
            print(f"of a call of 2 s, that is {(median['metered'] - median['direct']) / 20:.2f} %")
    print("PASS" if ok else "FAIL")
    return 0 if ok else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=50)
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.calls, options.at_once)))
