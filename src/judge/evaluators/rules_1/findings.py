"""Reads facts from the words of verdicts of older versions, which recorded no facts."""

import re

from judge.evaluators.nearest import CONTROLS
from judge.records.findings import Fact, NodeFound, NodesFound, NumbersFound, ValueFound

_NUMBERS = re.compile(r"(?:only until step \d+; at the end )?([-\d., ]*\d, [-\d., ]+)")
_QUERY = re.compile(r"(?:no )?query (\S+)")
# "no checkbox at all", "no group "Colour" on the page": the element was missing.
_ROLE = re.compile(rf"(?<!no )\b({'|'.join(sorted(CONTROLS))})\b")


def facts_in(message: str) -> tuple[Fact, ...]:
    """What the categories of failures need of a finding's words."""
    facts: list[Fact] = []
    if numbers := _NUMBERS.fullmatch(message):
        facts.append(NumbersFound(written=tuple(numbers[1].split(", "))))
    if query := _QUERY.match(message):
        facts.append(ValueFound(part="query", name=query[1], value=""))
    if roles := _ROLE.findall(message):
        facts.append(NodesFound(nodes=tuple(NodeFound(role=role) for role in roles)))
    return tuple(facts)
