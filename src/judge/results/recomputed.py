"""Recomputes stored verdicts that the recording alone decides: by checks, and of attempts that were not judged.

A verdict of a judge model, or of another program, cannot be recomputed; such verdicts are counted and reported.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from judge.config import CONFIG, RunConfig
from judge.judges.base import Judge
from judge.judges.checked import METHOD, ChecksJudge
from judge.judges.code import code_checksum
from judge.judges.edited import EditedJudge
from judge.judges.rescoring import RULES, WHY_ZERO, differences, recomputed, why_settled
from judge.records.edits import Edit, edit_in
from judge.records.steps import StopReason
from judge.records.verdicts import Verdict
from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError
from shared.fields import as_mapping
from shared.text import counted
from shared.validation import validated

# The settings that verdicts without a judge model depend on.
_DECIDING = ("allowed_sites", "off_site")


def deciding_config(record: Mapping[str, Any]) -> RunConfig:
    """The settings of a `run.json` that decide verdicts without a model; the others are the defaults.

    Raises `ConfigError`.
    """
    known = as_mapping(record.get("config"))
    return validated(CONFIG, {key: known[key] for key in _DECIDING if key in known}, "run.json: config")


def is_of_checks(judge_id: str) -> bool:
    """Whether a verdict file of this name holds a verdict of checks."""
    return judge_id.startswith(f"{METHOD}-")


class VerdictMismatch(NamedTuple):
    """A key of a stored verdict whose value is not the recomputed one."""

    file: str
    key: str
    stored: object
    recomputed: object


class Recomputation:
    """Compares the stored verdicts of a run's tasks with recomputed ones."""

    def __init__(self, config: RunConfig) -> None:
        own = ChecksJudge(config)
        self._off_site = config.off_site
        # A task's folder may also have been judged alone, without the run's configuration.
        self._own, self._any = (own,), (own, ChecksJudge(RunConfig()))

    def differences(
        self,
        stored: Mapping[str, Verdict],
        stop_reason: StopReason | None,
        judge_id: str | None,
        left_out: Counter[str],
        load: Callable[[], Trajectory],
    ) -> Iterator[VerdictMismatch]:
        """The differences in the `stored` verdicts on a trajectory. `judge_id` is the judge whose verdict counts.

        `left_out` counts the verdicts that cannot be recomputed, by cause. `load` gives the trajectory.
        """
        of_models = {name for name, verdict in stored.items() if _method_of(name, verdict) != METHOD}
        if len(of_models) == len(stored) and stop_reason not in WHY_ZERO and self._off_site != "fail":
            left_out.update(map(_by_model, stored, stored.values()))
            return
        try:
            trajectory = load()
            if trajectory.is_aborted:
                return
            for name, verdict in stored.items():
                is_own = name == judge_id
                is_settled = why_settled(trajectory, self._off_site if is_own else "flag") is not None
                if name in of_models and not is_settled:
                    left_out[_by_model(name, verdict)] += 1
                    continue
                edited = None if is_own else edit_in(verdict)
                mismatches = self._differing(verdict, trajectory, is_own=is_own, is_settled=is_settled, edited=edited)
                if _is_of_other_rules(verdict, mismatches):
                    version = str(mismatches[RULES][0])[:20]
                    left_out[f"by version {version} of the rules of checks, which is not installed"] += 1
                    continue
                for key, values in mismatches.items():
                    yield VerdictMismatch(f"verdicts/{name}.json", key, *values)
        except (TrajectoryError, OSError):
            left_out["on a recording that is damaged"] += len(stored)

    def corrected(self, name: str, verdict: Verdict, trajectory: Trajectory) -> Verdict:
        """The verdict of the judge `name`, which counts; if the recording gives another one, that one."""
        is_settled = why_settled(trajectory, self._off_site) is not None
        if _method_of(name, verdict) != METHOD and not is_settled:
            return verdict
        mismatches = self._differing(verdict, trajectory, is_own=True, is_settled=is_settled)
        if not mismatches or _is_of_other_rules(verdict, mismatches):
            return verdict
        return recomputed(*self._own, trajectory, self._off_site) or verdict

    def _differing(
        self,
        verdict: Verdict,
        trajectory: Trajectory,
        *,
        is_own: bool,
        is_settled: bool,
        edited: tuple[str, Edit] | None = None,
    ) -> dict[str, tuple[object, object]]:
        """The differences; `edited` are the scenario and checks with which the verdict says it was judged."""
        mismatches = []
        judges: tuple[Judge, ...] = self._own if is_own else self._any
        if edited is not None:
            scenario, edit = edited
            judges = tuple(EditedJudge(one, {trajectory.task.task_id: edit}, scenario) for one in judges)
        for judge in judges:
            recomputed_verdict = recomputed(judge, trajectory, self._off_site if is_own else "flag")
            values = {} if recomputed_verdict is None else differences(verdict, recomputed_verdict)
            if is_settled:
                # No rules of checks were applied.
                values.pop(RULES, None)
            if not values:
                return {}
            mismatches.append(values)
        code = verdict.judge.code_checksum if verdict.judge else None
        if code == code_checksum() or (code is None and not is_settled):
            return mismatches[0]
        # Other code with the same rules may word its findings differently.
        return {key: values for key, values in mismatches[0].items() if key in ("outcome", RULES)}


def notes_of(left_out: Counter[str]) -> list[str]:
    """The verdicts that were not recomputed, a line for each cause."""
    return [f"not recomputed: {counted(number, 'verdict')} {why}" for why, number in sorted(left_out.items())]


def _is_of_other_rules(verdict: Verdict, new_table: Mapping[str, Any]) -> bool:
    """Whether other code gave the verdict, by rules that the installed code does not have for this recording."""
    return RULES in new_table and verdict.judge is not None and verdict.judge.code_checksum != code_checksum()


def _by_model(name: str, verdict: Verdict) -> str:
    is_code = verdict.judge is not None and verdict.judge.is_ground_truth
    return f"by {_method_of(name, verdict) if is_code else 'a judge model'}"


def _method_of(name: str, verdict: Verdict) -> str:
    """The method of a verdict: its file's name, if that says checks, whatever the verdict says of itself."""
    return METHOD if is_of_checks(name) or verdict.judge is None else verdict.judge.method
