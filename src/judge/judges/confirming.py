"""Successes on frozen sites that the archive does not confirm: they rest on answers that it has not for certain.

Such a success is unscored, and stays so. A failure stays one, so that nobody escapes it by leaving the archive.
"""

from collections.abc import Callable
from types import MappingProxyType

from judge.records.ledger import CERTAIN, EVERYTHING, Coverage
from judge.records.reliance import Reliance
from judge.records.verdicts import OFF_ARCHIVE, UNCERTAIN_ARCHIVE, Verdict
from judge.trajectory.record import Trajectory
from shared.text import clip, counted

Accepted = frozenset[Coverage]
_MAX_NAMED = 3
_MAX_URL_CHARS = 200
# In this order: what is left out, what is accepted then, and what a success is called that needs more.
_TESTS: tuple[tuple[Coverage, Accepted, str], ...] = (
    ("off_archive", EVERYTHING - {"off_archive"}, OFF_ARCHIVE),
    ("uncertain", CERTAIN, UNCERTAIN_ARCHIVE),
)
_WHY = MappingProxyType({OFF_ARCHIVE: "does not have", UNCERTAIN_ARCHIVE: "does not have for certain"})


def confirmed(verdict: Verdict, trajectory: Trajectory, stands: Callable[[Accepted], bool]) -> Verdict:
    """The verdict; unscored if it is a success that does not stand on answers of the accepted kinds alone."""
    frozen = trajectory.attempt.frozen
    if verdict.outcome != "success" or frozen is None or frozen.coverage == "full":
        return verdict
    for coverage, accepted, code in _TESTS:
        if not stands(accepted):
            entries = [each for each in frozen.ledger if each.coverage == coverage]
            named = [f"{each.method} {clip(each.url, _MAX_URL_CHARS)} (step {each.step})" for each in entries]
            more = [f"{counted(len(named) - _MAX_NAMED, 'more request')}"] if len(named) > _MAX_NAMED else []
            reason = f"a success that rests on answers that the archive {_WHY[code]}: "
            reason += ", ".join([*named[:_MAX_NAMED], *more])
            return verdict.model_copy(update={"outcome": "unscored", "reason": reason, "reason_code": code})
    return verdict


def last_looks_stand(trajectory: Trajectory) -> Callable[[Accepted], bool]:
    """Whether the last look, and the one on which the participant ended the attempt, rest on accepted answers."""
    frozen, observations = trajectory.attempt.frozen, trajectory.observations
    reliance = Reliance.of(frozen, observations) if frozen else None
    decisive = {each.index for each in (*trajectory.attempt.steps[-1:], *observations[-1:])}

    def stand(accepted: Accepted) -> bool:
        return reliance is None or all(reliance.of_look(index) in accepted for index in decisive)

    return stand
