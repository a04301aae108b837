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
