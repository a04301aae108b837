"""A scripted browser on the page on which people play. It is not a person, and its runs are not results of people."""

import re
from collections.abc import Awaitable, Mapping
from typing import Any

from playwright.async_api import Page, expect

from helpers.runner.commands import RunningCommand

# Five tasks of the demo, each with gestures of its own: suggestions, filters, a frame, a new tab, a dialog.
TASKS: Mapping[str, str] = {
    "product_by_suggestion": "The page of the Harbour Desk Lamp is open.",
    "oak_desks": "Three oak desks.",
    "lisbon_hours": "Monday to Saturday, 10:00 to 19:00.",
    "oak_care": "The care guide for oak is open.",
    "change_of_mind": "The cart is empty.",
}


def address_of_the_page(running: RunningCommand) -> str:
    """Where the command says that a person plays, once the participant is there."""
    assert running.process.stdout is not None
    page, text = "", ""
    for line in running.process.stdout:
        text += line
        page = match[1] if (match := re.search(r"open (http://\S+/play)", line)) else page
        if page and "Assessment" in line:
            return page
    raise AssertionError(text)


class Hand:
    """Does on the page what a hand can do, by the picture or by the list of elements."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def open(self, address: str) -> None:
        await self.page.goto(address)
        await self.turn()

    async def turn(self) -> None:
        """Wait until the page says that it is the person's turn."""
        await expect(self.page.locator("#status")).to_have_text("your turn")

    async def state(self) -> dict[str, Any]:
        """What the participant says to the page."""
        state = await self.page.evaluate("fetch('/play/state?seen=0').then(answer => answer.json())")
        return dict(state)

    async def acts(self, doing: Awaitable[Any]) -> None:
        """Do something, and wait until the judge has answered it."""
        before = (await self.state()).get("turn")
        await doing
        while (state := await self.state())["phase"] == "sent" or state.get("turn") == before:
            await self.page.wait_for_timeout(50)
        if state["phase"] == "play":
            await expect(self.page.locator("#play")).to_have_attribute("data-turn", str(state["turn"]))

    async def point(self, role: str, name: str) -> tuple[float, float]:
        """Where the middle of an element is on the picture, in pixels of this page; scrolls to it first."""
        picture = self.page.locator("#image")
        while True:
            await expect(picture).to_have_js_property("complete", True)
            state = await self.state()
            results = [each for each in state["view"]["elements"] if each["role"] == role and name in each["name"]]
            x, y, width, height = results[0]["box"]
            if y + height / 2 < await picture.evaluate("image => image.naturalHeight"):
                break
            await self.scroll("Down")
        await picture.scroll_into_view_if_needed()
        box = await picture.bounding_box()
        assert box is not None
        scale = box["width"] / await picture.evaluate("image => image.naturalWidth")
        return box["x"] + (x + width / 2) * scale, box["y"] + (y + height / 2) * scale

    async def click(self, role: str, name: str) -> None:
        """Click on the element on the picture."""
        await self.acts(self.page.mouse.click(*await self.point(role, name)))

    async def choose(self, role: str, name: str) -> None:
        """Select an element in the list, with the keyboard."""
        await self.page.locator("#search").fill(name)
        button = self.page.locator("#elements button").filter(has=self.page.get_by_text(role)).first
        await button.focus()
        await self.page.keyboard.press("Enter")

    async def press_act(self, role: str, name: str) -> None:
        """Select an element in the list and click it, all with the keyboard."""
        await self.choose(role, name)
        await self.acts(self.page.keyboard.press("Enter"))

    async def type(self, role: str, name: str, text: str, *, slowly: bool = False) -> None:
        """Click a field on the picture, which selects it, and type."""
        await self.page.mouse.click(*await self.point(role, name))
        await expect(self.page.locator("#type-where")).to_contain_text(name)
        if slowly:
            await self.page.locator("#slowly").check()
        await self.page.locator("#text").fill(text)
        await self.acts(self.page.locator("#text").press("Enter"))

    async def select(self, role: str, name: str, option: str) -> None:
        """Click a list on the picture, which selects it, and choose an option."""
        await self.page.mouse.click(*await self.point(role, name))
        await self.page.locator("#values").select_option(option)
        await self.acts(self.page.get_by_role("button", name="Choose").click())

    async def scroll(self, direction: str) -> None:
        await self.acts(self.page.get_by_role("button", name=direction, exact=True).click())

    async def answer_dialog(self) -> None:
        await self.acts(self.page.locator("#dialog").get_by_role("button", name="OK").click())

    async def finish(self, answer: str) -> None:
        await self.page.locator("#answer").fill(answer)
        await self.page.get_by_role("button", name="Finish the task").click()
        await self.acts(self.page.locator("#sure").get_by_role("button", name="Finish", exact=True).click())


async def play(hand: Hand, task_id: str) -> None:
    """Play one of `TASKS`, which is in front."""
    await hand.turn()
    if task_id == "product_by_suggestion":
        await hand.type("combobox", "Search the shop", "harbour", slowly=True)
        await hand.click("option", "Harbour Desk Lamp")
    elif task_id == "oak_desks":
        await hand.press_act("button", "Accept all")
        await hand.click("link", "Desks")
        await hand.click("checkbox", "Oak")
        await hand.type("spinbutton", "Highest price", "400")
        await hand.click("button", "Apply price")
        await hand.select("combobox", "Sort by", "Price: low to high")
    elif task_id == "lisbon_hours":
        await hand.click("link", "Stores")
        await hand.select("combobox", "City", "Lisbon")
    elif task_id == "oak_care":
        await hand.press_act("link", "Care guide")
    else:
        await hand.press_act("link", "Tide Wool Rug")
        await hand.click("button", "Add to cart")
        await hand.click("link", "Go to cart")
        await hand.click("button", "Empty cart")
        await hand.answer_dialog()
    await hand.finish(TASKS[task_id])
