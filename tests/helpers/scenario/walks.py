"""Several scripts for each task of a scenario: each is played on a copy of its task."""

from collections.abc import Sequence

from judge.records.tasks import Task
from judge.scenario.models import Scenario
from participants.base import Decide, Observation, Reply, per_attempt
from participants.replay import Player, find_script, parse_scripts
from shared.text import plain


def walks(scenario: Scenario, scripts: str, task_ids: Sequence[str] = ()) -> tuple[Scenario, Decide]:
    """The scenario with a task for each of these scripts (of `task_ids` only), and the participant that plays them."""
    by_text = {plain(task.task): task for task in scenario.tasks}
    tasks: list[Task] = []
    book = {}
    for number, script in enumerate(parse_scripts(scripts, "scripts"), 1):
        task = by_text[plain(script.task)]
        if task_ids and task.task_id not in task_ids:
            continue
        # The texts differ, since a participant finds its script by the text.
        text = f"{task.task} ({number})"
        tasks.append(task.model_copy(update={"task_id": f"{task.task_id}-{number}", "task": text}))
        numbered = script.model_copy(update={"task": text})
        book[numbered.key] = numbered

    def begin(first: Observation) -> Decide:
        script = find_script(book, first.instruction, first.website)
        assert script is not None, first.instruction
        player = Player(script)

        async def decide(observation: Observation) -> Reply:
            return player.reply(observation.page.snapshot, observation.feedback, executed=observation.executed)

        return decide

    # Each begins on the sites as they were.
    config = scenario.config.model_copy(update={"site_resets": scenario.resets})
    ids = tuple(task.task_id for task in tasks)
    played = scenario.model_copy(update={"tasks": tuple(tasks), "task_ids": ids, "config": config})
    return played, per_attempt(begin)
