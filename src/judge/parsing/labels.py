r"""Regular expressions for the labels with which replies state a score or a status. Pure.

Every quantifier is bounded, so that a search takes time linear in the reply, however hostile it is. Replies have
passed through `plain_text`, which normalises how labels are written.
"""

import re

from shared.quotations import quotation_at

# Punctuation at the start of a line (lists, headings, emphasis), but not `>`: quotes are not the judge's words.
_DECOR = r"[^\w\n>]"
QUALIFIER = (
    r"(?:the|my|a|final|overall|total|relevance|relevancy|usefulness|image|screenshot|snapshot|assigned|given|numeric"
    r"|suggested|updated|revised|corrected|adjusted|evaluation|assessment|judge?ment|task|completion|success|execution"
    r"|agent|attempt)(?: \d{1,2})?"
)
# The start of a line up to the label: "1. **Final relevance …"
_BEFORE_LABEL = r"(?:\d{1,2}[.)]|(?:(?:final[ _-]?)?answer|output|line \d)[*_]{0,3}:)"
LINE = rf"^{_DECOR}{{0,16}}(?:{_BEFORE_LABEL}{_DECOR}{{1,8}})?(?:{QUALIFIER}[ _-]){{0,3}}"
# Text allowed between a label and its value: "(1-5)", "on a scale of … to …", "for this image". `§` masks a range.
NOTE = (
    r"(?:[ \t]*[(\[][^)\]\n]{0,60}[)\]]|,?[ \t]*§{3,9}(?=[ \t]*[:=])"
    r"|[ \t]+(?:on|from|out of|in)\b[^:=\n\d]{0,40}(?=[:=])"
    r"|[ \t]+(?:of|for) (?:the|this) (?:image|screenshot|snapshot|task)\b)?"
)
# List marks and emphasis before a quotation, and words after it in the same line.
_DECOR_START = re.compile(r"[^\w\n>\"'“„«‹‘「『`&\\]{0,16}+(?:\d{1,2}[.)]\s)?")
_MORE = re.compile(r"[^\w\n]{0,8}\w")
# A letter outside Latin script: the reply is in a language for which there are no labels.
FOREIGN = r"[^\W\x00-\u036f]"
SPAN = r"[^.!?\n\d]"
HEDGE = re.compile(
    r"(?i)\b(?:not|never|cannot|\w+n['’]t|rather than|instead of|less than|more than|at least|if|unless|whether|unclear"
    r"|might)\b"
)
# Prose is searched only at the end of a reply, where the conclusion is.
PROSE_CHARS = 8_000


def last_line_start(text: str) -> int:
    """Where the last non-blank line begins."""
    return text.rfind("\n", 0, len(text.rstrip())) + 1


def is_quoted(text: str, match: re.Match[str]) -> bool:
    """Whether a statement is in a quotation at the start of a line that goes on: `"Score: 5" is on the page.`"""
    label = _DECOR_START.match(text, match.start())
    start = label.end() if label else match.start()
    end = quotation_at(text, start)
    return end > match.end("value") and _MORE.match(text, end) is not None


def last_clause(text: str, begin: int, end: int) -> str:
    """The clause that a statement at `begin` belongs to, from its start (at most 80 characters before) to `end`."""
    return re.split(r"[.!?\n;]", text[max(0, begin - 80) : end])[-1]
