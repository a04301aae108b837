"""Whether the judge model and the participant's model are made by one provider: judges may prefer their family."""

from collections.abc import Mapping
from typing import Any

from judge.records.verdicts import OFFLINE
from judge.results.identity import identity_in
from judge.results.metering import MeteredUsage
from shared.llm.prices import maker_of


def shared_family(record: Mapping[str, Any], metered: MeteredUsage | None) -> str | None:
    """The provider that made the judge model of a run (`run.json`) and a model of its participant.

    The participant's models are those that were metered, and the one that it was declared to use. `None` if there is no
    such provider, or it is not known.
    """
    judge = record.get("judge_model")
    if not isinstance(judge, str) or judge == OFFLINE or (maker := maker_of(judge)) is None:
        return None
    declared = identity_in(record)["model"]
    used = [*(metered.models if metered else ()), *([declared] if declared else [])]
    return maker if any(maker_of(model) == maker for model in used) else None
