r"""The labels by which replies state a score or a status, as regular expressions. Pure.

Every quantifier is bounded, so that a search takes time linear in the reply, however hostile it is. Replies arrive
through `plain_text`, which unifies how a label is written.
"""

import re

# Signs at the start of a line (lists, headings, emphasis), but not `>`: what is quoted is not the judge's own.
_DECOR = r"[^\w\n>]"
QUALIFIER = (
    r"(?:the|my|a|final|overall|total|relevance|relevancy|usefulness|image|screenshot|snapshot|assigned|given|numeric"
    r"|suggested|updated|revised|corrected|adjusted|evaluation|assessment|judge?ment|task|completion|success|execution"
    r"|agent|attempt)(?: \d{1,2})?"
)
# The start of a line up to its label: "1. **Final relevance …"
LINE = rf"^{_DECOR}{{0,16}}(?:(?:\d{{1,2}}[.)]|(?:answer|output|line \d):){_DECOR}{{1,8}})?(?:{QUALIFIER}[ _-]){{0,3}}"
# What may follow a label before its value: "(1-5)", "on a scale of … to …", "for this image". `§` is a masked range.
NOTE = (
    r"(?:[ \t]*[(\[][^)\]\n]{0,60}[)\]]|,?[ \t]*§{3,9}(?=[ \t]*[:=])"
    r"|[ \t]+(?:on|from|out of|in)\b[^:=\n\d]{0,40}(?=[:=])"
    r"|[ \t]+(?:of|for) (?:the|this) (?:image|screenshot|snapshot|task)\b)?"
)
# A letter of a script that none of our labels is written in: the reply is in another language.
FOREIGN = r"[^\W\x00-\u036f]"
SPAN = r"[^.!?\n\d]"
HEDGE = re.compile(
    r"(?i)\b(?:not|never|cannot|\w+n['’]t|rather than|instead of|less than|more than|at least|if|unless|whether|unclear"
    r"|might)\b"
)
# Prose is searched only at the end of a reply, where its conclusion is.
PROSE_CHARS = 8_000


def last_line_start(text: str) -> int:
    """Where the last line that is not blank begins."""
    return text.rfind("\n", 0, len(text.rstrip())) + 1


def last_clause(text: str, begin: int, end: int) -> str:
    """The clause that a statement at `begin` belongs to, from its start (at most 80 characters before) to `end`."""
    return re.split(r"[.!?\n;]", text[max(0, begin - 80) : end])[-1]
