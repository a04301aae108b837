"""What the participant learns of its last reply, beside the page: why it failed, or what its actions answered."""

from collections.abc import Sequence
from dataclasses import dataclass

from judge.browser.action_lines import MAX_DOWNLOADS
from shared.protocol import RESULT
from shared.text import excerpt

# The heading with which the browser's server begins an answer.
_RESULT_HEADING = "### Result\n"


@dataclass
class Feedback:
    """On one reply: what failed or was not executed, the actions' own results, and the files that pages offered."""

    problem: str | None = None
    results: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()

    def fails(self, problem: str) -> None:
        """The reply, or one of its actions, failed, or was not executed. `problem` is one or more sentences."""
        self.problem = problem if self.problem is None else f"{self.problem} {problem}"

    def answers(self, text: str, *, number: int | None = None) -> None:
        """An action whose effect is not on the page returned this. `number`: of an action in a list."""
        result = text.removeprefix(_RESULT_HEADING)
        self.results += (result if number is None else f"action {number}: {result}",)

    def text(self, downloads: Sequence[str] = ()) -> str | None:
        """The line of the message; `downloads` began while the page was observed."""
        results = "; ".join(self.results)
        text = RESULT + results if results else None
        if self.problem is not None:
            text = f"{self.problem} Results of the others: {results}" if results else self.problem
        return _with_downloads(text, (*self.downloads, *downloads))


def _with_downloads(feedback: str | None, names: Sequence[str]) -> str | None:
    """The feedback with the files that the page began to download since the last observation."""
    if not names:
        return feedback
    more = f" and {len(names) - MAX_DOWNLOADS} more" if len(names) > MAX_DOWNLOADS else ""
    names_text = ", ".join(excerpt(name, 100) for name in names[:MAX_DOWNLOADS]) + more
    note = f"the page started the download of {names_text}; files cannot be opened here"
    return RESULT + note if feedback is None else f"{feedback} Also, {note}."
