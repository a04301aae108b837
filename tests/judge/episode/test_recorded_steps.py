"""What a step records for checks, besides the page itself."""

from pathlib import Path
from typing import Any

import pytest

from helpers.browser.server_tools import SERVER_TOOLS
from helpers.episode.scripted import HOME, ScriptedBrowser, play_episode
from judge.browser.session import ToolResult
from judge.browser.tools import offered_tools
from shared.models import Action, Page, ToolSpec
from shared.protocol import is_result


class Downloading(ScriptedBrowser):
    """One download begins with each action, another while the page is observed."""

    async def observe(self) -> Page:
        return (await super().observe()).model_copy(update={"downloads": ("while observed.csv",)})

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        return ToolResult(ok=True, text="", downloads=("with the action.pdf",))


def test_a_step_records_downloads_tabs_and_viewport(tmp_path: Path) -> None:
    end = play_episode(tmp_path, Downloading(), Action(tool="browser_click"), viewport_width=1000, viewport_height=500)
    first, last = end.steps
    assert first.downloads == ("while observed.csv", "with the action.pdf")
    assert last.downloads == ("while observed.csv",)
    assert [(tab.url, tab.current) for tab in first.tabs] == [(HOME, True)]
    assert first.viewport == (1000, 500)


class Rebuilding(ScriptedBrowser):
    """Every element has to be found again."""

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        return ToolResult(ok=True, text="", found_again=True)


def test_a_step_says_that_its_element_was_found_again(tmp_path: Path) -> None:
    first, last = play_episode(tmp_path, Rebuilding(), Action(tool="browser_click")).steps
    assert first.flags == ("element_found_again",)
    assert last.flags == ()


class Boxed(ScriptedBrowser):
    """Its snapshot has a bounding box."""

    async def observe(self) -> Page:
        return (await super().observe()).model_copy(update={"snapshot": '- button "Go" [ref=e1] [box=1,2,3,4]'})


@pytest.mark.parametrize("is_sent", [False, True])
def test_boxes_are_recorded_and_sent_only_on_request(tmp_path: Path, is_sent: bool) -> None:
    messages: list[str] = []
    end = play_episode(tmp_path, Boxed(), messages=messages, snapshot_boxes=is_sent)
    assert end.steps[0].snapshot is not None
    recorded = next(tmp_path.rglob(Path(end.steps[0].snapshot).name)).read_text()
    assert "[box=1,2,3,4]" in recorded
    assert ("[box=1,2,3,4]" in messages[0]) == is_sent


class Pointed(ScriptedBrowser):
    """A button fills the page; only at its left edge is it not covered."""

    tools = offered_tools(SERVER_TOOLS, "coordinates")

    async def observe(self) -> Page:
        return (await super().observe()).model_copy(update={"snapshot": '- button "Go" [ref=e1] [box=0,0,900,400]'})

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        return ToolResult(ok=True, text="", hit=(((0, 0, 900, 400),) if params["x"] < 9 else (),))


def test_an_action_by_coordinates_is_recorded_by_what_was_hit_or_refused_with_the_viewports_size(
    tmp_path: Path,
) -> None:
    clicks = [Action(tool="browser_mouse_click_xy", params={"x": x, "y": 10}) for x in (5, 50, 1000)]
    *steps, _ = play_episode(tmp_path, Pointed(), *clicks, viewport_width=1000, viewport_height=500).steps
    outcomes = [step.outcome for step in steps if step.outcome]
    assert [outcome.line for outcome in outcomes] == ["<Go button> -> CLICK (5, 10)", "<page> -> CLICK (50, 10)", None]
    assert "the point (1000, 10) is outside the viewport, which is 1000 by 500 pixels" in outcomes[2].message


def test_downloads_are_in_the_action_line_and_in_the_feedback(tmp_path: Path) -> None:
    end = play_episode(tmp_path, Downloading(), Action(tool="browser_click"))
    first, last = end.steps
    assert first.outcome is not None
    assert first.outcome.line == "<page> -> CLICK (download: with the action.pdf)"
    names = '"with the action.pdf", "while observed.csv"'
    assert last.feedback == f"Result: the page started the download of {names}; files cannot be opened here"


def test_a_download_is_reported_once(tmp_path: Path) -> None:
    class DownloadingOnce(ScriptedBrowser):
        async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
            return ToolResult(ok=True, text="", downloads=("a.pdf",))

    unknown = Action(tool="browser_unknown")
    end = play_episode(tmp_path, DownloadingOnce(), Action(tool="browser_click"), unknown)
    assert [bool(step.feedback and "a.pdf" in step.feedback) for step in end.steps] == [False, True, False]


def test_a_failed_action_with_a_download_stays_a_complaint(tmp_path: Path) -> None:
    class Failing(ScriptedBrowser):
        async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
            return ToolResult(ok=False, text="It is covered.", downloads=('a"\n.pdf',))

    end = play_episode(tmp_path, Failing(), Action(tool="browser_click"))
    text = end.steps[1].feedback or ""
    assert text == "It is covered. Also, the page started the download of 'a\"\\n.pdf'; files cannot be opened here."
    assert not is_result(text)


def test_what_an_informational_tool_found_is_a_result(tmp_path: Path) -> None:
    class Finding(ScriptedBrowser):
        tools = (*ScriptedBrowser.tools, ToolSpec(name="browser_find", description="", parameters={"properties": {}}))

        async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
            return ToolResult(ok=True, text="### Result\n3 matches")

    find = Action(tool="browser_find", params={"text": "lamp"})
    end = play_episode(tmp_path, Finding(), find)
    assert end.steps[1].feedback == "Result: 3 matches"
