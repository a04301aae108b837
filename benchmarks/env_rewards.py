"""Do the rewards of a training environment equal the verdicts of `wabe run`? The same replies, played in both.

    python benchmarks/env_rewards.py [--tasks 10]

`wabe run` plays tasks of the demo by four agents: one that does them (the demo's reference script, in which some are
wrong on purpose), one that stops after its first action, one that only finishes, and one that acts at random. Then the
replies in its records are played again in sessions of an environment (`wabe.environments`), and each reward is compared
with the verdict. Exits with 1 if one differs, or has another place than the end of its episode.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tomli

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.scenario.copies import scenario_on_free_ports
from judge.environment.session import EnvironmentSession
from judge.store.layout import runs_in
from judge.trajectory.files import load_trajectory
from wabe import environments

WABE = Path(sys.executable).parent / "wabe"
SCRIPT = ROOT / "scenarios" / "demo" / "replay.toml"
SESSIONS = 2


class RecordedEpisode(NamedTuple):
    """What an agent replied to a task in a run, and the verdict on it."""

    agent: str
    task_id: str
    replies: tuple[str, ...]
    verdict: str


def recorded_episodes(agent: str, output_dir: Path) -> Iterator[RecordedEpisode]:
    """The attempts of the only run in a folder."""
    (run,) = runs_in(output_dir)
    for task in run.tasks():
        attempt = load_trajectory(task.folder).attempt
        replies = {step.of_reply: step.reply for step in attempt.steps if step.reply}
        yield RecordedEpisode(agent, task.name, tuple(replies[n] for n in sorted(replies)), attempt.outcome)


def hasty_script(folder: Path) -> Path:
    """The demo's script without what follows the first action of each task."""
    scripts = tomli.loads(SCRIPT.read_text())["scripts"]
    lines: list[str] = []
    for script in scripts:
        steps = [step for step in script["steps"] if step.get("tool", "finish") != "finish"][:1]
        steps += [{"tool": "finish", "params": {"answer": "That is all."}}]
        lines += ["[[scripts]]", *(f"{key} = {inline(script[key])}" for key in script if key != "steps")]
        lines += [f"steps = {inline(steps)}"]
    path = folder / "hasty.toml"
    path.write_text("\n".join(lines))
    return path


def inline(value: object) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {inline(item)}" for key, item in value.items()) + " }"
    return f"[{', '.join(map(inline, value))}]" if isinstance(value, list) else json.dumps(value)


def play_runs(scenario: Path, folder: Path, tasks: int) -> list[RecordedEpisode]:
    """The episodes of the four agents, as `wabe run` plays and judges them."""
    hasty = f"wabe participant replay --script {hasty_script(folder)} --host 127.0.0.1 --port {{port}}"
    agents = {"reference": "", "hasty": hasty, "idle": "idle", "random": "random"}
    found: list[RecordedEpisode] = []
    for agent, given in agents.items():
        output = folder / agent
        command = [WABE, "run", scenario, "--limit", str(tasks), "--output-dir", output, "--display", "none"]
        command += given
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        found += recorded_episodes(agent, output)
    return found


async def reward_of(session: EnvironmentSession, episode: RecordedEpisode) -> float:
    """The reward of the same replies. Raises if an answer before the last one has any."""
    answer = await session.reset(episode.task_id)
    for reply in episode.replies:
        if (answer.done, answer.reward) != (False, None):
            raise AssertionError(f"{episode.task_id}: ended before its last reply")
        answer = await session.step(reply)
    if not answer.done or answer.reward is None:
        raise AssertionError(f"{episode.task_id}: no end after its last reply")
    return answer.reward


async def play_again(scenario: Path, episodes: list[RecordedEpisode]) -> list[float]:
    """The rewards of the episodes, in order."""
    rewards: dict[int, float] = {}
    todo = iter(enumerate(episodes))

    async def play(session: EnvironmentSession) -> None:
        for number, episode in todo:
            rewards[number] = await reward_of(session, episode)

    async with environments(scenario, SESSIONS) as host:
        await asyncio.gather(*(play(host.session()) for _ in range(SESSIONS)))
    return [rewards[number] for number in range(len(episodes))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenario = scenario_on_free_ports("demo", folder)
        episodes = play_runs(scenario, folder, options.tasks)
        rewards = asyncio.run(play_again(scenario, episodes))
    expected = [float(each.verdict == "success") for each in episodes]
    pairs = list(zip(episodes, rewards, expected, strict=True))
    wrong = [each for each in pairs if each[1] != each[2] or each[0].verdict not in ("success", "failure")]
    for agent in dict.fromkeys(each.agent for each in episodes):
        found = Counter(reward for episode, reward, _ in pairs if episode.agent == agent)
        print(f"{agent:10} rewards: {found[1.0]} of 1, {found[0.0]} of 0")
    for episode, reward, _ in wrong:
        print(f"{episode.agent}, {episode.task_id}: reward {reward}, verdict {episode.verdict}")
    print(f"{len(episodes) - len(wrong)} of {len(episodes)} rewards equal the verdict of wabe run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
