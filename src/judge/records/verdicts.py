"""Verdicts: what checks or a judge method decided on one trajectory, and who judged."""

from typing import Annotated, Any, Literal

from pydantic import Field

from judge.records.result_keys import ResultKey
from shared.fields import as_mapping
from shared.models import Record, RecordedLimit, TokenUsage, omit_default
from shared.seams import PluginInfo

VerdictOutcome = Literal["success", "failure", "unscored"]
# How a task is decided: by its checks, a judge model, or another method without a model, which is named instead.
CHECKS, JUDGE = "checks", "judge"
TaskOutcome = Literal["success", "failure", "unscored", "aborted"]


class ImageScore(Record):
    """The judge's score for one screenshot's relevance; `Score` is `None` if the reply contained none.

    With `fidelity = "published"` it is 0 instead, as in the published evaluator, unless the provider refused to answer.
    """

    # Named as in Online-Mind2Web's result files.
    Response: Annotated[str, RecordedLimit(4_000)]
    Score: int | None = Field(default=None, ge=0, le=5)


# The prompt set of a judge of code alone.
NO_PROMPTS = "none"


class JudgeInfo(Record):
    """Who judged: enough to repeat the judgement. `code_checksum` covers the judging code.

    `fidelity` says how unreadable replies were treated: `strict` (unscored) or as the `published` evaluator does (0).
    """

    method: str
    model: str
    prompt_set: str
    prompt_version: str
    prompt_checksum: str
    threshold: int
    package_version: str
    code_checksum: str
    fidelity: str = omit_default("strict")
    note: str | None = None
    # The plug-ins that took part.
    plugins: tuple[PluginInfo, ...] = omit_default((), max_length=100)

    @property
    def is_ground_truth(self) -> bool:
        """Whether code alone decided, without a model."""
        return self.prompt_set == NO_PROMPTS


# The `reason_code` of a verdict that a budget prevented, for which the judge model could not be reached, that a refused
# question decided, for a task without checks where only checks decide, for an attempt that left the task's site, and of
# one that could not be given. An attempt whose end settles it has its stop reason as the code.
BUDGET_SPENT = "budget_spent"
MODEL_UNREACHED = "model_unreached"
WITHHELD_EVIDENCE = "withheld_evidence"
WITHOUT_CHECKS = "no_checks"
OFF_SITE_PLAY = "off_site"
INTERNAL_ERROR = "internal_error"
# Of a verdict on a task that nobody could do as it is written.
INVALID_TASK = "invalid_task"
# Of a success on a frozen site that rests on answers that the archive does not have, or not for certain: unscored, and
# final, because nothing that is played or judged again adds them.
OFF_ARCHIVE = "off_archive"
UNCERTAIN_ARCHIVE = "uncertain_archive"
UNCONFIRMED = frozenset({OFF_ARCHIVE, UNCERTAIN_ARCHIVE})
# Models of judges that ask none, and the model of another program's evaluator.
OFFLINE = "offline"
NO_MODEL = frozenset({OFFLINE, "none", ""})
UNKNOWN_MODEL = "unknown"


class Verdict(Record):
    """The result of checks or of a judge method for one trajectory: `unscored` if there is no usable answer.

    It is valid only for the trajectory whose digest is `trajectory_sha256`. `reason_code` is the reason in a form for
    programs, where there is one, such as `withheld_evidence`. `flags` contains
    `suspected_injection` if the evidence includes text addressed to the judge.
    """

    outcome: Annotated[VerdictOutcome, ResultKey("verdict_of_judge")]
    reason: Annotated[str, RecordedLimit(12_000), ResultKey()]
    reason_code: Annotated[str | None, ResultKey(after="judge")] = omit_default(None)
    flags: Annotated[tuple[str, ...], RecordedLimit(500)] = omit_default(())
    trajectory_sha256: str | None = None
    judge: Annotated[JudgeInfo | None, ResultKey()] = None
    key_points: Annotated[tuple[str, ...], RecordedLimit(200_000), ResultKey()] = ()
    image_judge_record: Annotated[tuple[ImageScore, ...], ResultKey()] = ()
    evidence: Annotated[dict[str, Any], RecordedLimit(40_000_000)] = Field(default_factory=dict)
    token_usage: Annotated[TokenUsage, ResultKey(after="participant_usage")] = TokenUsage()
    cost_usd: Annotated[float | None, ResultKey(after="token_usage")] = None
    # The date of the price data, where calls were paid for.
    price_date: Annotated[str | None, ResultKey(after="reason_code")] = omit_default(None, max_length=40)

    @property
    def wrong_action(self) -> int | None:
        """The number of the action, from 1, at which the attempt went wrong, if the judge names one."""
        action = as_mapping(as_mapping(self.evidence.get("rubric")).get("first_failure")).get("action")
        return action if isinstance(action, int) and not isinstance(action, bool) else None

    @property
    def cost(self) -> float | None:
        """What judging cost in US dollars: 0 if no model was asked, `None` if that or the price is unknown."""
        if self.token_usage.calls:
            return self.cost_usd
        model = self.judge.model if self.judge else ""
        may_have_asked = model == UNKNOWN_MODEL or (self.reason_code == INTERNAL_ERROR and model not in NO_MODEL)
        return None if may_have_asked and self.cost_usd is None else 0.0


def is_unconfirmed(outcome: str, reason_code: str | None) -> bool:
    """Whether an attempt is unscored because a frozen site does not confirm its success."""
    return outcome == "unscored" and reason_code in UNCONFIRMED


def method_of(judge_id: str) -> str:
    """The method in a judge's id, `<method>-<digest>`."""
    return judge_id.rpartition("-")[0]
