"""Parameters that an endpoint refuses, recognised by the text of its error.

Gateways pass the refusal of the model's endpoint on as text, each in its words, and leave its fields out.
"""

import re
from collections.abc import Collection

_MAX_TEXT = 4_000
# At most a clause between the name and the word that refuses it: a new sentence is about something else.
_GAP = r"(?:(?![.!?;]\s)[^\n]){0,80}?"
_REFUSES = (
    r"(?:un[- ]?supported|not (?:be )?(?:currently )?support\w*|n[o']t support\w*|no longer support\w*|un[- ]?known|"
    r"un[- ]?recogni[sz]ed|un[- ]?expected|not (?:permitted|allowed|accepted|recogni[sz]ed|valid|available|"
    r"implemented|known|applicable|compatible)|incompatible|deprecated|disallowed|forbidden|illegal|"
    r"extra[_ ]?(?:inputs?|fields?|forbidden|propert\w+|param\w+)|additional propert\w+|"
    r"(?:cannot|can't|can not) be (?:set|used|specified|changed)|does(?:n't| not) (?:accept|take|have|allow))"
)
# Of an option's value: another value would do, and leaving the option out means the default one.
_REFUSES_VALUE = r"(?:invalid|must(?: be)?|only (?:the )?(?:default|\d)|should be|is fixed|expected)"
# Of a limit: it is known, but too large or too small. Without it the request would not be the same.
_OUT_OF_RANGE = re.compile(
    r"too (?:large|high|small|low|many|big)|exceed|maximum|minimum|at (?:most|least)|greater|less than|between|"
    r"above|below|range|larger|up to|[<>]",
    re.IGNORECASE,
)


def refused_parameters(text: str, parameters: Collection[str], *, limits: Collection[str] = ()) -> set[str]:
    """The ones of `parameters` that an error's text refuses. `limits` are refused as unknown only."""
    text = text[:_MAX_TEXT]
    refused = set()
    for name in parameters:
        is_limit = name in limits
        if is_limit and _OUT_OF_RANGE.search(text):
            continue
        words = _REFUSES if is_limit else f"(?:{_REFUSES}|{_REFUSES_VALUE})"
        # `max_output_tokens` is `maxOutputTokens` on the wire.
        name_pattern = rf"(?<![a-z_]){name.replace('_', '_?')}(?![a-z_])"
        if re.search(rf"{words}{_GAP}{name_pattern}|{name_pattern}{_GAP}{words}", text, re.IGNORECASE):
            refused.add(name)
    return refused
