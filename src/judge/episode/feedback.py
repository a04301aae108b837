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
    """On one reply: a sentence on a failure, an action's own result, and the files that pages offered."""

    failure: str | None = None
    answer: str | None = None
    downloads: tuple[str, ...] = ()

    def fails(self, text: str) -> None:
        """The reply, or its action, failed."""
        self.failure, self.answer = text, None

    def answers(self, text: str) -> None:
        """An action whose effect is not on the page returned this."""
        self.answer = text.removeprefix(_RESULT_HEADING)

    def text(self, downloads: Sequence[str] = ()) -> str | None:
        """The line of the message; `downloads` began while the page was observed."""
        text = self.failure
        if text is None and self.answer is not None:
            text = RESULT + self.answer
        return _with_downloads(text, (*self.downloads, *downloads))


def _with_downloads(feedback: str | None, names: Sequence[str]) -> str | None:
    """The feedback with the files that the page began to download since the last observation."""
    if not names:
        return feedback
    more = f" and {len(names) - MAX_DOWNLOADS} more" if len(names) > MAX_DOWNLOADS else ""
    shown = ", ".join(excerpt(name, 100) for name in names[:MAX_DOWNLOADS]) + more
    said = f"the page offered {shown} for download; files cannot be downloaded here"
    return RESULT + said if feedback is None else f"{feedback} Also, {said}."
