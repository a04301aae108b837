"""Scripts for MiniWoB++ tasks, found by the instruction. They know no seed: they read the instruction and the page."""

import operator
import re
from calendar import month_name

from participants.base import Decide, Observation, Reply, per_attempt
from plugins.miniwob.plays import (
    Moves,
    Play,
    Script,
    choose,
    click,
    fill,
    hover,
    in_other_case,
    neighbour,
    press,
    scroll,
    type_slowly,
)
from shared.models import Action
from shared.snapshot import Node

_SIGNS = {"+": operator.add, "-": operator.sub}


# --- Buttons, tabs, menus ---


def click_in_order(play: Play, first: str, second: str) -> Moves:
    for name in play.slip((first, second), (second, first)):
        yield click(play.node_named(name, "button"))


def click_one_of(role: str) -> Script:
    """Clicks the element of that role and name, or wrongly the one beside it."""

    def script(play: Play, name: str) -> Moves:
        elements = play.all(role)
        right = play.node_named("Close" if name == "x" else name, role)
        yield click(play.slip(right, neighbour(elements, right)))

    return script


def close_dialog(play: Play) -> Moves:
    yield play.slip(click(play.node_named("Close", "button")), press("Escape"))


def expand_section(play: Play) -> Moves:
    # A second click closes the section again.
    for _ in range(play.slip(1, 2)):
        yield click(play.all("tab")[0])
    yield from submit(play)


def click_in_menu(play: Play, path: str) -> Moves:
    *parents, leaf = path.split(">")
    for name in parents:
        yield hover(play.node_named(name, "menuitem"))
    yield _click_item(play, leaf)


def open_menu(play: Play, name: str) -> Moves:
    yield click(play.node_named("Menu", "button"))
    for item in play.all("menuitem"):
        if play.shows(name, "menuitem"):
            break
        yield hover(item)
    yield _click_item(play, name)


def _click_item(play: Play, name: str) -> Action:
    """Clicks that item, or wrongly the last other one of the same menu."""

    def menu(node: Node) -> Node | None:
        return next((around for around in play.page.parents(node) if around.role == "menu"), None)

    right = play.node_named(name, "menuitem")
    others = [node for node in play.all("menuitem") if menu(node) == menu(right) and node != right]
    return click(play.slip(right, others[-1]))


def navigate_tree(play: Play, name: str) -> Moves:
    opened: set[str | None] = set()
    while not play.shows(name, "generic"):
        # A folder has a handle before its name, which takes a reference; a file has none.
        folder = next(node for node in play.all("generic") if _is_folder(play, node) and node.ref not in opened)
        opened.add(folder.ref)
        yield click(folder)
    right = play.node_named(name, "generic")
    beside = [node for node in play.all("generic") if node.text]
    yield click(play.slip(right, neighbour(beside, right)))


def _is_folder(play: Play, node: Node) -> bool:
    around = next(play.page.parents(node), None)
    if around is None or around.role != "listitem" or not around.ref or not node.ref:
        return False
    return int(node.ref[1:]) - int(around.ref[1:]) > 1


# --- Choices ---


def select_boxes(play: Play, text: str) -> Moves:
    boxes = play.all("checkbox", "radio")
    right = [box for box in boxes if box.name in text.split(", ")]
    others = [box for box in boxes if box not in right]
    for box in play.slip(right, right[:-1] or others[:1]):
        yield click(box)
    yield from submit(play)


def choose_from_list(play: Play, text: str) -> Moves:
    options = [node.name for node in play.nodes() if node.role == "option"]
    right = text.split(", ")
    yield choose(play.all("combobox", "listbox")[0], play.slip(right, [*right[:-1], neighbour(options, right[-1])]))
    yield from submit(play)


def choose_and_press(play: Play, option: str, button: str) -> Moves:
    options = [node.name for node in play.nodes() if node.role == "option"]
    yield choose(play.all("combobox")[0], [play.slip(option, neighbour(options, option))])
    yield click(play.node_named(button, "button"))


def check_and_enter(play: Play, radio: str, number: str, field: str) -> Moves:
    yield click(play.all("radio")[int(radio) - 1])
    fields = play.all("textbox")
    right = fields[int(field) - 1]
    yield fill(play.slip(right, neighbour(fields, right)), number)
    yield from submit(play)


def mark_odd_or_even(play: Play) -> Moves:
    # Wrongly, the last number is taken for the next one.
    numbers = [node for node in play.all("generic") if re.fullmatch(r"-?\d+", node.text)]
    for number in numbers:
        value = int(number.text) + play.slip(0, number == numbers[-1])
        row = next(play.page.parents(number))
        name = "Odd" if value % 2 else "Even"
        yield click(next(node for node in play.page.subtree(row) if node.role == "button" and node.name == name))
    yield from submit(play)


def pick_greatest(play: Play) -> Moves:
    cards = sorted((node for node in play.all("generic") if node.text.isdigit()), key=lambda node: int(node.text))
    yield click(play.slip(cards[-1], cards[-2]))
    yield from submit(play)


# --- Text ---


def enter_text(play: Play, text: str) -> Moves:
    yield fill(play.all("textbox")[0], play.slip(text, in_other_case(text)))
    yield from submit(play)


def enter_in_case(play: Play, text: str, case: str) -> Moves:
    right = text.upper() if case == "upper" else text.lower()
    yield fill(play.all("textbox")[0], play.slip(right, text.capitalize()))
    yield from submit(play)


def enter_password(play: Play, password: str) -> Moves:
    for field, text in zip(play.all("textbox"), play.slip([password] * 2, [password, password[:-1]]), strict=True):
        yield fill(field, text)
    yield from submit(play)


def log_in(play: Play, name: str, password: str) -> Moves:
    for at, text in enumerate((name, play.slip(password, in_other_case(password)))):
        yield fill(play.all("textbox")[at], text)
        # Another question may come up when a field is entered, and empty it.
        if play.shows("Cancel", "button"):
            yield click(play.node_named("Cancel", "button"))
            yield fill(play.all("textbox")[at], text)
    yield from submit(play)


def enter_date(play: Play, month: str, day: str, year: str) -> Moves:
    yield fill(play.all("textbox")[0], f"{year}-{month}-{_day(play, day):02}")
    yield from submit(play)


def _day(play: Play, text: str) -> int:
    day = int(text)
    return play.slip(day, day - 1 if day > 1 else 2)


def enter_time(play: Play, hour: str, minute: str, half: str) -> Moves:
    is_afternoon = play.slip(half == "PM", half == "AM")
    yield fill(play.all("textbox")[0], f"{int(hour) % 12 + 12 * is_afternoon:02}:{minute}")
    yield from submit(play)


def pick_date(play: Play, month: str, day: str, year: str) -> Moves:
    yield from _pick(play, play.all("textbox")[0], f"{month_name[int(month)]} {year}", _day(play, day))
    yield from submit(play)


def _pick(play: Play, field: Node, month: str, day: int) -> Moves:
    yield click(field)
    while not play.shows(month, "generic"):
        yield click(play.node_named("Prev"))
    yield click(play.node_named(str(day), "link"))


def book_flight(play: Play, quality: str, start: str, end: str, month: str, day: str, year: str) -> Moves:
    for at, place in enumerate((start, end)):
        yield type_slowly(play.all("textbox")[at], place)
        items = [node for node in play.all("generic") if f"({place})" in node.text or f"{place} (" in node.text]
        yield click(items[0])
    yield from _pick(play, play.all("textbox")[2], f"{month_name[int(month)]} {year}", int(day))
    yield click(play.node_named("Search", "button"))
    yield from buy_ticket(play, quality)


def buy_ticket(play: Play, quality: str) -> Moves:
    """Books the offer that is best in this respect, or wrongly the second best."""
    offers = [node for node in play.all("button") if node.name.startswith("Book ")]
    durations = [node.text for node in play.all("generic") if re.fullmatch(r"\d+h \d+m", node.text)]
    values = durations if quality in ("shortest", "longest") else [offer.name for offer in offers]
    ranked = sorted(range(len(offers)), key=lambda at: [int(number) for number in re.findall(r"\d+", values[at])])
    if quality in ("longest", "most expensive"):
        ranked.reverse()
    yield click(offers[play.slip(ranked[0], ranked[1])])


def copy_text(play: Play) -> Moves:
    # Not typed: the text ends in a blank, which a snapshot does not show.
    source, target = sorted(play.all("textbox"), key=lambda field: not play.value(field))
    yield from _copy(source, target)
    for _ in range(play.slip(1, 2)):
        yield press("Control+v")
    yield from submit(play)


def copy_area(play: Play, number: str) -> Moves:
    *areas, target = play.all("textbox")
    right = areas[int(number) - 1]
    yield from _copy(play.slip(right, neighbour(areas, right)), target)
    yield press("Control+v")
    yield from submit(play)


def _copy(source: Node, target: Node) -> Moves:
    """Copy one field; the caret is in the other one then."""
    yield click(source)
    yield press("Control+a")
    yield press("Control+c")
    yield click(target)


def focus_field(play: Play, number: str) -> Moves:
    fields = play.all("textbox")
    right = fields[int(number) - 1]
    yield click(play.slip(right, neighbour(fields, right)))


def find_word(play: Play, number: str) -> Moves:
    words = [word.strip(".,") for word in play.all("paragraph")[0].text.split()]
    right = words[int(number) - 1]
    yield fill(play.all("textbox")[0], play.slip(right, neighbour(words, right)))
    yield from submit(play)


def enter_last_word(play: Play) -> Moves:
    area, field = play.all("textbox")
    words = [word.strip(".,") for word in play.value(area).split()]
    yield fill(field, play.slip(words[-1], words[-2]))
    yield from submit(play)


def scroll_to_end(play: Play, end: str) -> Moves:
    yield scroll(play.all("textbox")[0], "down" if end == play.slip("bottom", "top") else "up", 2000)
    yield from submit(play)


def repeat_letters(play: Play) -> Moves:
    text = "".join(node.text for node in play.all("generic"))
    yield fill(play.all("textbox")[0], play.slip(text, in_other_case(text)))
    yield from submit(play)


def complete_text(play: Play, start: str, end: str | None) -> Moves:
    field = play.all("textbox")[0]
    yield type_slowly(field, start)
    items = [node for node in play.all("generic") if node.text.startswith(start)]
    right = next(node for node in items if node.text.endswith(end or ""))
    others = [node for node in items if not node.text.endswith(end or "")]
    # Where there is no other item, the wrong text is too short.
    yield play.slip(click(right), click(others[0]) if others else fill(field, start[:-1]))
    # A list that is still open would cover the button.
    yield press("Escape")
    yield from submit(play)


# --- Numbers ---


def spin(play: Play, number: str) -> Moves:
    yield fill(play.all("spinbutton")[0], int(number) + play.slip(0, 1))
    yield from submit(play)


def do_sum(play: Play) -> Moves:
    match = _on_page(play, r"(\d+) ([-+]) (\d+) =")
    result = _SIGNS[match[2]](int(match[1]), int(match[3]))
    yield fill(play.all("textbox")[0], result + play.slip(0, 1))
    yield from submit(play)


def solve_equation(play: Play) -> Moves:
    match = _on_page(play, r"(\d+|x) ([-+]) (\d+|x) = (-?\d+)")
    x = next(
        x
        for x in range(-200, 200)
        if _SIGNS[match[2]](*(x if term == "x" else int(term) for term in match.group(1, 3))) == int(match[4])
    )
    yield fill(play.all("textbox")[0], x + play.slip(0, 1))
    yield from submit(play)


def _on_page(play: Play, pattern: str) -> re.Match[str]:
    return next(match for node in play.nodes() if (match := re.fullmatch(pattern, node.text)))


def generate_number(play: Play, relation: str | None, limit: str | None, parity: str | None) -> Moves:
    def fits(number: int) -> bool:
        if parity:
            return (number % 2 == 1) == (parity == "odd")
        return number < int(limit or 0) if relation == "less" else number > int(limit or 0)

    while True:
        yield click(play.node_named("Generate", "button"))
        text = next(node.text for node in play.all("generic") if node.text.isdigit())
        if play.slip(fits(int(text)), not fits(int(text))):
            break
    yield from submit(play)


def guess_number(play: Play, low: str, high: str) -> Moves:
    # The wrong search takes "lower" for "higher".
    numbers = list(range(int(low), int(high) + 1))
    while numbers:
        guess = numbers[len(numbers) // 2]
        yield fill(play.all("spinbutton")[0], guess)
        yield from submit(play)
        is_lower = any(node.text.startswith("The number is lower") for node in play.nodes())
        numbers = [each for each in numbers if each != guess and (each < guess) == play.slip(is_lower, not is_lower)]


# --- Tables and forms ---


def read_table(play: Play, label: str) -> Moves:
    values = _table(play)
    labels = list(values)
    yield fill(play.all("textbox")[0], values[play.slip(label, neighbour(labels, label))])
    yield from submit(play)


def fill_from_table(play: Play) -> Moves:
    values = _table(play)
    fields = play.all("textbox")
    texts = [values[play.label(field)] for field in fields]
    for field, text in zip(fields, play.slip(texts, texts[::-1]), strict=True):
        yield fill(field, text)
    yield from submit(play)


def _table(play: Play) -> dict[str, str]:
    cells = [node.name for node in play.all("cell")]
    return dict(zip(cells[::2], cells[1::2], strict=True))


def search_movies(play: Play, genre: str, director: str, year: str) -> Moves:
    values = {"genre": genre, "director": director, "year": str(int(year) + play.slip(0, 1))}
    values["date"] = values["year"]
    for field in play.all("textbox"):
        label = _label_around(play, field).casefold()
        yield fill(field, next(value for key, value in values.items() if key in label))
    yield from submit(play)


def _label_around(play: Play, field: Node) -> str:
    """The text that stands before or after an empty field, in the same part of the form."""
    for around in play.page.parents(field):
        inside = list(play.page.subtree(around))
        if sum(node.role == "textbox" for node in inside) > 1:
            break
        if text := play.page.text_of(around):
            return text
    return play.label(field) or field.placeholder or ""


def find_contact(play: Play, name: str, what: str) -> Moves:
    while not play.shows(name, "heading"):
        yield click(play.node_named(">", "link"))
    details = [node for node in play.all("generic") if play.label(node) in ("Phone", "Email", "Address")]
    right = next(node for node in details if play.label(node).casefold() == what.removesuffix(" number"))
    yield click(play.slip(right, neighbour(details, right)))


def search_web(play: Play, text: str, number: str) -> Moves:
    yield fill(play.all("textbox")[0], text)
    yield click(play.node_named("Search", "button"))
    per_page = len(_results(play))
    page, at = divmod(int(number) - 1, per_page)
    for _ in range(page):
        yield click(play.node_named(">", "link"))
    results = _results(play)
    yield click(play.slip(results[at], neighbour(results, results[at])))


def _results(play: Play) -> list[Node]:
    """The links but those to other pages."""
    return [node for node in play.all("link") if all(around.role != "list" for around in play.page.parents(node))]


# --- Mail and terminal ---


def delete_or_star_mail(play: Play, sender: str, icon: str) -> Moves:
    yield from _open_mail(play, play.slip(sender, neighbour(_senders(play), sender)))
    # The icons have no names: back, trash, star.
    yield click(_icons(play)[1 if icon == "trash" else 2])


def forward_mail(play: Play, sender: str, to: str) -> Moves:
    yield from _open_mail(play, play.slip(sender, neighbour(_senders(play), sender)))
    yield click(play.node_named("Forward"))
    yield fill(play.all("textbox")[0], to)
    yield click(_icons(play)[1])


def reply_to_mail(play: Play, sender: str, text: str) -> Moves:
    yield from _open_mail(play, sender)
    yield click(play.node_named("Reply"))
    yield fill(play.all("textbox")[0], play.slip(text, text.rstrip(".")))
    yield click(_icons(play)[1])


def _senders(play: Play) -> list[str]:
    """The first line of each mail in the list."""
    mails = [node for node in play.all("generic") if node.states.get("cursor") == "pointer"]
    return [play.page.nodes[mail.position + 1].text for mail in mails if not mail.text and _has_parts(play, mail)]


def _has_parts(play: Play, node: Node) -> bool:
    return len(list(play.page.subtree(node))) > 1


def _open_mail(play: Play, sender: str) -> Moves:
    yield click(play.node_named(sender))


def _icons(play: Play) -> list[Node]:
    pointed = [node for node in play.all("generic") if node.states.get("cursor") == "pointer" and not node.text]
    return [node for node in pointed if not _has_parts(play, node)]


def delete_file(play: Play, ending: str | None) -> Moves:
    before = {node.text for node in play.nodes()}
    yield type_slowly(play.all("textbox")[0], "ls", submit=True)
    files = next(node.text for node in play.all("generic") if node.text not in before and "user$" not in node.text)
    right = [name for name in files.split() if (name.endswith(ending) if ending else "." not in name)]
    wrong = [name for name in files.split() if name not in right]
    yield type_slowly(play.all("textbox")[0], f"rm {play.slip(right, wrong)[0]}", submit=True)


def submit(play: Play) -> Moves:
    names = ("Submit", "Login", "Go!", "Search", "Find", "OK")
    yield click(next(play.node_named(name) for name in names if play.shows(name)))


_DATE = r"(\d\d)/(\d\d)/(\d{4}) as the date and hit submit\."
# The first pattern that matches the whole instruction counts.
SCRIPTS: tuple[tuple[str, Script], ...] = (
    (r"Click button (\w+), then click button (\w+)\.", click_in_order),
    (r"Click button (\w+)\.", click_one_of("button")),
    (r'Click the button in the dialog box labeled "(.*)"\.', click_one_of("button")),
    (r"Click on (Tab #\d)\.", click_one_of("link")),
    (r'Close the dialog box by clicking the "x"\.', close_dialog),
    (r"Expand the section below and click submit\.", expand_section),
    (r'Click the "Menu" button, and then find and click on the item labeled "(.*)"\.', open_menu),
    (r'Navigate through the file tree\. Find and click on the folder or file named "(.*)"\.', navigate_tree),
    (r"Select (.*) from the (?:scroll )?list and click Submit\.", choose_from_list),
    (rf"Select {_DATE}", pick_date),
    (r"Select (-?\d+) with the spinner and hit Submit\.", spin),
    (r"Select (.*) and click Submit\.", select_boxes),
    (r"Select (\S+)", click_in_menu),
    (r'Choose (.*) from the dropdown, then click the button labeled "(.*)"\.', choose_and_press),
    (r'Check the (\d).. radio button and enter the number "(.*)" into the (\d).. textbox\.', check_and_enter),
    (r"Mark the numbers below as odd or even and press submit when done\.", mark_odd_or_even),
    (r"Find and pick the card with the greatest number, then press submit\.", pick_greatest),
    (r"Book the (cheapest|shortest) one-way flight from: (.+) to: (.+) on (\d\d)/(\d\d)/(\d{4})\.", book_flight),
    (r"Buy the ticket with the (cheapest|most expensive|shortest|longest) (?:cost|duration)\.", buy_ticket),
    (r'Enter "(.*)" into the text field and press Submit\.', enter_text),
    (r'Type "(.*)" in all (upper|lower) case letters in the text input and press Submit\.', enter_in_case),
    (r'Enter the password "(.*)" into both text fields and press submit\.', enter_password),
    (r'Enter the username "(.*)" and the password "(.*)" into the text fields and press login\.', log_in),
    (rf"Enter {_DATE}", enter_date),
    (r"Enter (\d+):(\d\d) (AM|PM) as the time and press submit\.", enter_time),
    (r"Copy the text in the textarea below, paste it into the textbox and press Submit\.", copy_text),
    (r"Copy the text from the (\d).. text area below and paste it .*", copy_area),
    (r"Focus into the (\d).. input textbox\.", focus_field),
    (r'Find the (\d+).. word in the paragraph, type that into the textbox and press "Submit"\.', find_word),
    (r"Find the last word in the text area, enter it into the text field and hit Submit\.", enter_last_word),
    (r"Scroll the textarea to the (top|bottom) of the text hit submit\.", scroll_to_end),
    (r"Type the text below into the text field and press Submit\.", repeat_letters),
    (r'Enter an item that starts with "(.*?)"(?: and ends with "(.*)")?\.', complete_text),
    (r"Solve the math problem and type your answer into the textbox\. Press submit when done\.", do_sum),
    (r"Solve for x and type your answer into the textbox\. Press Submit when done\.", solve_equation),
    (r"Generate an? (?:number (less|greater) than (\d+)|(odd|even) number), then press submit\.", generate_number),
    (r"Guess the number between (\d)-(\d) and press Submit\. .*", guess_number),
    (r"Enter the value of (.*) into the text field and press Submit\.", read_table),
    (r"Enter the value that corresponds with each label into the form and submit when done\.", fill_from_table),
    (r"Search for (\w+) movies directed by (\w+) from year (\d+)\.", search_movies),
    (r"Find (\w+) in the contact book and click on their (phone number|email|address)\.", find_contact),
    (
        r'Use the textbox to enter "(.*)" and press "Search", then find and click the (\d+).. search result\.',
        search_web,
    ),
    (r"Find the email by (\w+) and click the (trash|star) icon to .*\.", delete_or_star_mail),
    (r"Find the email by (\w+) and forward that email to (\w+)\.", forward_mail),
    (r'Find the email by (\w+) and reply to them with the text "(.*)"\.', reply_to_mail),
    (r"Use the terminal below to delete a file (?:that has no file extension\.|.* extension (\.\S+))", delete_file),
)


def participant(*, is_wrong: bool) -> Decide:
    """Plays the script for the instruction, rightly or wrongly."""

    def begin(first: Observation) -> Decide:
        play = Play(first.instruction, is_wrong=is_wrong)
        moves = _moves(play)

        async def decide(observation: Observation) -> Reply:
            play.see(observation.page.snapshot)
            return next(moves, Action(tool="finish", params={"answer": "done"}))

        return decide

    return per_attempt(begin)


def _moves(play: Play) -> Moves:
    for pattern, script in SCRIPTS:
        if match := re.fullmatch(pattern, play.instruction):
            return script(play, *match.groups())
    raise ValueError(f"there is no script for: {play.instruction}")
