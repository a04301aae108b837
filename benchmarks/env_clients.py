"""Do OpenEnv's real clients and verifiers' task set get the verdicts of `wabe run` as rewards?

    python benchmarks/env_clients.py [--tasks 10]

The episodes are those of `benchmarks/env_rewards.py`: the demo's tasks, played by `wabe run` with four agents (the
reference script, one that stops after its first action, one that only finishes, and one that acts at random). The
replies in its records are sent again to `wabe env serve` by three clients, each in an environment of its own: openenv
0.10.0, openenv 0.4.1, and verifiers 0.4.0. Exits with 1 if a reward differs from the verdict.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from env_rewards import RecordedEpisode, play_runs
from env_serving import served
from helpers.interop.environments import environment
from helpers.interop.programs import PROGRAMS, program
from helpers.scenario.copies import scenario_on_free_ports

Ask = Callable[..., dict[str, Any]]


def by_openenv(ask: Ask, url: str, episode: RecordedEpisode) -> float | None:
    """The reward that OpenEnv's client returns."""
    ask(name="c", do="open", url=url, timeout_s=60.0)
    answer = ask(name="c", do="reset", task_id=episode.task_id)
    for reply in episode.replies:
        if answer.get("reward") is not None or answer.get("done") is not False:
            raise AssertionError(f"{episode.task_id}: {answer}")
        answer = ask(name="c", do="step", action={"tool": reply})
    ask(name="c", do="close")
    return answer.get("reward")


def by_verifiers(ask: Ask, url: str, episode: RecordedEpisode) -> float | None:
    """The reward that verifiers records."""
    found = ask(url=url, reset={"task_id": episode.task_id}, replies=list(episode.replies))
    reward: float | None = found["rewards"].get("openenv_reward")
    return reward if found["error"] is None else None


CLIENTS = {
    "openenv 0.10.0": ("openenv", "openenv_client.py", by_openenv),
    "openenv 0.4.1": ("verifiers", "openenv_client.py", by_openenv),
    "verifiers 0.4.0": ("verifiers", "verifiers_tasks.py", by_verifiers),
}


def played(client: str, url: str, episodes: list[RecordedEpisode]) -> int:
    """How many rewards equal the verdict; prints the others."""
    name, file, play = CLIENTS[client]
    right = 0
    with program(environment(name), PROGRAMS / file) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def ask(**question: Any) -> dict[str, Any]:
            stdin.write(json.dumps(question) + "\n")
            stdin.flush()
            answer: dict[str, Any] = json.loads(stdout.readline())
            return answer

        for episode in episodes:
            reward = play(ask, url, episode)
            is_right = reward == float(episode.verdict == "success") and episode.verdict in ("success", "failure")
            right += is_right
            if not is_right:
                print(f"{client}, {episode.agent}, {episode.task_id}: reward {reward}, verdict {episode.verdict}")
    print(f"{client}: {right} of {len(episodes)} rewards equal the verdict of wabe run", flush=True)
    return right


async def compared(tasks: int) -> bool:
    with tempfile.TemporaryDirectory() as name:
        scenario = scenario_on_free_ports("demo", Path(name))
        episodes = await asyncio.to_thread(play_runs, scenario, Path(name), tasks)
        async with served(scenario) as (place, _):
            found = [await asyncio.to_thread(played, each, f"http://{place}", episodes) for each in CLIENTS]
    return all(right == len(episodes) for right in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10)
    return 0 if asyncio.run(compared(parser.parse_args().tasks)) else 1


if __name__ == "__main__":
    sys.exit(main())
