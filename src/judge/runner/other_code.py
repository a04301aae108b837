"""Finds attempts of a run that were judged by other code. Resuming judges them again, because a run has one judge.

Other code is another version of the judging code or of the bundled prompts, with the same configuration.
"""

import contextlib

from judge.judges.code import code_checksum
from judge.judges.prompt_set import load_prompts
from judge.records.verdicts import OFFLINE, JudgeInfo
from judge.store.layout import RunStore, readable_verdicts
from judge.trajectory.files import read_attempt
from shared.errors import TrajectoryError
from shared.models import TokenUsage
from shared.text import counted, usd


def rejudging_note(store: RunStore, prompts: str | None) -> str | None:
    """The number of attempts that resuming will judge again, and the possible cost; `None` if there are none. Blocks.

    `prompts` is the folder of the run's prompts, if any. Raises `ConfigError` if they cannot be read.
    """
    model = (store.read_run() or {}).get("judge_model")
    checksum = load_prompts(prompts).checksum if model != OFFLINE else ""
    code = code_checksum()

    def is_other(judge: JudgeInfo | None) -> bool:
        if judge is None or judge.model not in (OFFLINE, model):
            return False
        return judge.code_checksum != code or (judge.model != OFFLINE and judge.prompt_checksum != checksum)

    attempts, used, cost = 0, TokenUsage(), 0.0
    for task in store.tasks():
        with contextlib.suppress(TrajectoryError, OSError):
            attempt = read_attempt(task.folder)
            if attempt.is_aborted or attempt.verdict is None or not is_other(attempt.verdict.judge):
                continue
            attempts += 1
            # A task may have verdicts of several judges, of which `result.json` states the one that counts.
            stored = readable_verdicts(task.folder).values()
            verdicts = [each for each in stored if is_other(each.judge) and each.token_usage.calls]
            used = sum((each.token_usage for each in verdicts), used)
            cost += sum(each.cost_usd or 0.0 for each in verdicts)
    if not attempts:
        return None
    line = f"{counted(attempts, 'attempt')} judged by other code will be judged again from the recordings"
    if not used.calls:
        return f"{line}, without model calls"
    before = f" ({usd(cost)} before)" if cost else ""
    calls = counted(used.calls, "model call")
    return f"{line}: up to {calls}{before}, within the run's budget; cached replies cost nothing"
