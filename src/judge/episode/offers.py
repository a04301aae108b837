"""What a task offers beside the browser: its files, and its user."""

from collections.abc import Sequence

from judge.browser.tools import asking_tool, file_tools
from judge.episode.part import Act, AttemptPart
from judge.records.steps import Outcome
from judge.records.tools import ASK_USER, PERMISSION
from judge.records.user import MAX_QUESTIONS, answered, permissions_of
from shared.models import Page, ToolSpec


class Files(AttemptPart):
    """The task's files."""

    def tools(self, offered: Sequence[ToolSpec], page: Page, *, is_named: bool) -> Sequence[ToolSpec]:
        """Those that take files, if there are any."""
        return (*offered, *file_tools(self.stage.task.files, self.stage.config.actions))


class User(AttemptPart):
    """The task's user, who answers questions."""

    def tools(self, offered: Sequence[ToolSpec], page: Page, *, is_named: bool) -> Sequence[ToolSpec]:
        """`ask_user`, if there is a user."""
        task = self.stage.task
        return (*offered, asking_tool(permissions_of(task.user_replies))) if task.has_user else offered

    def acting(self, act: Act) -> Outcome | None:
        """Answer a question."""
        if act.action.tool != ASK_USER:
            return None
        if sum(step.asked is not None for step in self.stage.steps) >= MAX_QUESTIONS:
            return Outcome(ok=False, message=f"The user answers at most {MAX_QUESTIONS} questions.")
        task, params = self.stage.task, act.action.params
        permission = params.get(PERMISSION)
        permission_name = None if permission is None else str(permission)
        exchange = answered(str(params["question"]), permission_name, task.user_replies, task.user_reply)
        act.draft.asked = exchange
        return Outcome(ok=True, message=exchange.reply, line=act.line)
