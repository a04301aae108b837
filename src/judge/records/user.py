"""What the user of a task answers when the participant asks (`ask_user`): declared by the task, never by a model."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from judge.records.checks import PatternText
from judge.records.patterns import Pattern
from judge.records.policies import Policy
from shared.fields import AnyText, Name, Table, at_most, did_you_mean
from shared.models import Record, Recorded

MAX_QUESTIONS = 3
# The answer where no pattern fits and the task has no default.
NO_ANSWER = "The user has no answer to this question."

Answer = Annotated[AnyText, Field(min_length=1), at_most(2_000)]


class UserReply(Table):
    """One answer: `reply` to a question that matches `pattern`, which allows what the policies in `grants` forbid."""

    pattern: PatternText
    reply: Answer
    grants: Annotated[tuple[Name, ...], at_most(50)] = ()


class Asked(Record):
    """A question to the user and the answer: the place of the reply that fitted, if any, and what it grants."""

    question: Annotated[str, Recorded(3_000)]
    reply: Annotated[str, Recorded(12_000)]
    fitted: int | None = Field(default=None, ge=0)
    grants: Annotated[tuple[str, ...], Recorded(10_000)] = ()


def answered(question: str, replies: Sequence[UserReply], default: str | None) -> Asked:
    """The first reply whose pattern fits; otherwise the default, which grants nothing."""
    for place, each in enumerate(replies):
        if Pattern(each.pattern).search(question) is not None:
            return Asked(question=question, reply=each.reply, fitted=place, grants=each.grants)
    return Asked(question=question, reply=default or NO_ANSWER)


def impossible_grant(replies: Sequence[UserReply], policies: Sequence[Policy]) -> tuple[int, str, str] | None:
    """The place of the first reply that grants no policy, or one that nothing can allow; the problem and the remedy."""
    known = {policy.name: policy for policy in policies}
    for place, each in enumerate(replies):
        for name in each.grants:
            if name not in known:
                remedy = did_you_mean(name, known) if known else "declare the policy, or remove the grant"
                return place, f"'{name}' is not a policy of the task", remedy
            if not known[name].unless_granted:
                remedy = "add unless_granted = true to the policy, or remove the grant"
                return place, f"the policy '{name}' cannot be granted", remedy
    return None
