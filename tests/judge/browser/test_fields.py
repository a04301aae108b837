import pytest

from judge.browser.fields import count_differing

PAGE = """- textbox "Name" [ref=e1]: Ann
- textbox "Phone" [ref=e2]: (555) 010-99
- slider "Amount" [ref=e3]: "3"
- textbox "Password" [ref=e4]: •••
- textbox "Notes" [ref=e5]
- generic [ref=e6]: an editor"""


@pytest.mark.parametrize(
    ("typed", "count"),
    [
        ({"e1": "Ann"}, 0),
        ({"e1": " ann "}, 0),
        ({"e2": "55501099"}, 0),
        ({"e4": "abc"}, 0),
        ({"e5": ""}, 0),
        ({"e9": "gone"}, 0),
        ({"e6": "another text"}, 0),
        ({}, 0),
        ({"e1": "Anna"}, 1),
        ({"e3": "7", "e5": "more"}, 2),
    ],
)
def test_fields_that_do_not_contain_what_was_typed_are_counted(typed: dict[str, str], count: int) -> None:
    assert count_differing(PAGE, typed) == count


CODE = "def add(a, b):\n    return a + b\n\nprint(add(1, 2))"
LINES = [line for line in CODE.split("\n") if line]


def editor(lines: list[str], numbers: bool = False) -> str:
    """The lines as an editor draws them, below an element."""
    items = [f'    - generic [ref=e{number + 20}]: "{line}"' for number, line in enumerate(lines)]
    return "\n".join(f"    - text: {at}\n{line}" if numbers else line for at, line in enumerate(items, 1))


@pytest.mark.parametrize(
    ("page", "count"),
    [
        (f'- textbox "Code" [ref=e1]:\n{editor(LINES)}', 0),
        (f'- generic [ref=e9]:\n  - textbox "Code" [ref=e1]\n  - generic [ref=e10]:\n{editor(LINES)}', 0),
        (f'- generic [ref=e9]:\n  - textbox "Code" [ref=e1]\n  - generic [ref=e10]:\n{editor(LINES, numbers=True)}', 0),
        (f'- textbox "Code" [ref=e1]:\n{editor(LINES[:-1])}', 1),
        (f'- generic [ref=e9]:\n  - textbox "Code" [ref=e1]\n  - generic [ref=e10]:\n{editor(LINES[:-1])}', 1),
        ('- textbox "Code" [ref=e1]', 1),
    ],
    ids=["inside", "beside", "with numbers", "cut inside", "cut beside", "dropped"],
)
def test_an_editor_may_draw_its_text_inside_the_field_or_beside_it(page: str, count: int) -> None:
    assert count_differing(page, {"e1": CODE}) == count


def test_a_text_that_the_page_had_before_is_not_what_a_field_drew() -> None:
    page = '- textbox "Name" [ref=e1]: An\n- paragraph [ref=e2]: Anna'
    assert count_differing(page, {"e1": "Anna"}, before=page) == 1
    assert count_differing(page, {"e1": "Anna"}, before='- textbox "Name" [ref=e1]') == 0


def test_an_editor_may_draw_only_a_part_of_a_long_text() -> None:
    lines = [f"line number {number} of many" for number in range(300)]
    part = "- textbox [ref=e1]:\n" + editor(lines[:40])
    assert count_differing(part, {"e1": "\n".join(lines)}) == 0
    beside = "- textbox [ref=e1]\n- generic [ref=e2]:\n" + editor(lines[:40])
    assert count_differing(beside, {"e1": "\n".join(lines)}) == 0
