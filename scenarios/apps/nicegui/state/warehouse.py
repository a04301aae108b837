"""A warehouse desk: `python warehouse.py PORT`. All its state is in this process."""

import asyncio
import sys

from nicegui import ui

ITEMS = [
    {"id": number, "name": name, "shelf": shelf, "stock": stock}
    for number, (name, shelf, stock) in enumerate(
        [
            ("Anchor chain", "A1", 12),
            ("Brass bell", "A2", 3),
            ("Compass", "B1", 40),
            ("Deck brush", "B2", 7),
            ("Engine oil", "C1", 25),
            ("Flag set", "C2", 5),
            ("Galley stove", "D1", 2),
            ("Hawser", "D2", 18),
        ],
        start=1,
    )
]
PLACES = [
    {"id": "Harbour", "children": [{"id": "Hall 1"}, {"id": "Hall 2", "children": [{"id": "Cold store"}]}]},
    {"id": "Northgate", "children": [{"id": "Yard"}]},
]


@ui.page("/")
def desk() -> None:
    """The only page."""
    ui.page_title("Warehouse desk")
    with ui.tabs() as tabs:
        stock, order, places = ui.tab("Stock"), ui.tab("Order"), ui.tab("Places")
    with ui.tab_panels(tabs, value=stock).classes("w-full"):
        with ui.tab_panel(stock):
            stock_panel()
        with ui.tab_panel(order):
            order_panel()
        with ui.tab_panel(places):
            places_panel()


def stock_panel() -> None:
    """A table with selection, a filter and an action."""
    columns = [
        {"name": key, "label": key.title(), "field": key, "sortable": True, "align": "left"}
        for key in ("name", "shelf", "stock")
    ]
    rows = [dict(item) for item in ITEMS]
    search = ui.input("Filter items")
    table = ui.table(columns=columns, rows=rows, row_key="id", selection="multiple", pagination=5)
    search.bind_value_to(table, "filter")
    done = ui.label("No delivery yet").props('role="status"')

    async def deliver() -> None:
        chosen = [row["name"] for row in table.selected]
        button.disable()
        # The lorry takes a while.
        await asyncio.sleep(0.8)
        done.set_text(f"Delivered: {', '.join(chosen) or 'nothing'}")
        ui.notify(f"{len(chosen)} items are on their way")
        button.enable()

    button = ui.button("Deliver selected", on_click=deliver)


def order_panel() -> None:
    """A form with Quasar's fields, and a dialog that confirms."""
    with ui.card():
        item = ui.select({one["id"]: one["name"] for one in ITEMS}, label="Item")
        amount = ui.number("Amount", value=1, min=1, max=99, format="%d")
        express = ui.switch("Express")
        wrap = ui.radio(["Paper", "Crate", "None"], value="None").props("inline")
        notes = ui.textarea("Notes")
        result = ui.label("Nothing ordered").props('role="status"')
        with ui.dialog() as dialog, ui.card():
            ui.label("Place this order?")
            with ui.row():
                ui.button("Confirm", on_click=lambda: dialog.submit(True))
                ui.button("Back", on_click=lambda: dialog.submit(False))

        async def place() -> None:
            if item.value is None:
                ui.notify("Choose an item first", type="negative")
                return
            if await dialog:
                name = ITEMS[item.value - 1]["name"]
                speed = "express" if express.value else "standard"
                result.set_text(
                    f"Ordered {int(amount.value)} × {name}, {speed}, wrapping: {wrap.value}, {notes.value!r}"
                )

        ui.button("Place order", on_click=place)


def places_panel() -> None:
    """A tree, a slider and a list of levels."""
    chosen = ui.label("No place chosen").props('role="status"')
    ui.tree(PLACES, label_key="id", on_select=lambda event: chosen.set_text(f"Place: {event.value}"))
    level = ui.label("Level 0")
    ui.slider(min=0, max=10, value=0, on_change=lambda event: level.set_text(f"Level {event.value}")).props(
        'aria-label="Level"'
    )
    with ui.expansion("Opening hours"):
        ui.label("Monday to Friday, 7 to 16")


ui.run(
    host="127.0.0.1",
    port=int(sys.argv[1]),
    reload=False,
    show=False,
    title="Warehouse desk",
    show_welcome_message=False,
)
