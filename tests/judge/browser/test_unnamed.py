import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.browser.action_lines import acted_on, action_line
from judge.browser.tools import CheckedAction
from shared.snapshot import parse_snapshot
from shared.text import split_line

PAGE = parse_snapshot(
    """
- heading "Files" [ref=e1]
- button [ref=e2]
- table [ref=e3]:
  - row "Name Size" [ref=e4]:
    - columnheader "Name" [ref=e5]
    - columnheader "Size" [ref=e6]
  - row [ref=e7]:
    - cell "sales.csv" [ref=e8]
    - cell [ref=e9]:
      - button [ref=e10]
  - row [ref=e11]:
    - cell [ref=e12]
    - cell [ref=e13]
- textbox [ref=e14]:
  - /placeholder: Search files
- list [ref=e15]:
  - listitem [ref=e16]:
    - text: first
    - link "Report" [ref=e17]
    - button [ref=e18]
- paragraph [ref=e19]: Quantity
- spinbutton [ref=e20]
- group "Zoom" [ref=e21]:
  - button [ref=e22]
- row [ref=e23]:
  - textbox "Name" [ref=e24]: typed
  - button [ref=e25]
- button "Close" [ref=e26]
- toolbar "Flow" [ref=e27]:
  - button "\uf0c9" [ref=e28]
""".strip()
)


def click(ref: str) -> CheckedAction:
    return CheckedAction(tool="browser_click", params={"target": ref})


@pytest.mark.parametrize(
    ("ref", "subject", "by"),
    [
        ("e2", 'button under heading "Files"', ["e1"]),
        ("e10", 'button in row "sales.csv" and column "Size"', ["e8", "e6"]),
        ("e12", 'cell in column "Name"', ["e5"]),
        ("e14", 'textbox with placeholder "Search files"', []),
        ("e18", 'button in item "Report"', ["e17"]),
        ("e20", 'spinbutton beside "Quantity"', ["e19"]),
        ("e22", 'button in group "Zoom"', ["e21"]),
        ("e26", "Close button", []),
        ("e28", 'button in toolbar "Flow"', ["e27"]),
    ],
)
def test_an_element_without_a_name_is_called_what_a_person_would_call_it(ref: str, subject: str, by: list[str]) -> None:
    assert action_line(click(ref), PAGE) == f"<{subject}> -> CLICK"
    assert acted_on(click(ref), PAGE) == (ref, *by)


def test_what_was_typed_names_nothing() -> None:
    assert "typed" not in action_line(click("e25"), PAGE)


@given(st.text(max_size=80))
def test_a_described_element_is_one_subject_of_a_line(name: str) -> None:
    text = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    page = parse_snapshot(f'- row [ref=e1]:\n  - cell "{text}" [ref=e2]\n  - button [ref=e3]')
    parts = split_line(action_line(click("e3"), page))
    assert parts is not None
    assert parts[0].startswith("button")
    assert parts[1:] == ("CLICK", None)
