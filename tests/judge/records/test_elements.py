import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records.elements import MAX_ELEMENT_CHARS, ROLES, STATES, parse_element
from shared.fields import Invalid

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize(
    ("notation", "role", "name", "states", "value"),
    [
        ('checkbox "Oak" [checked]', "checkbox", "Oak", {"checked": "true"}, None),
        ('- link "A \\"b\\""', "link", 'A "b"', {}, None),
        ('"Oak"', None, "Oak", {}, None),
        ("alert", "alert", None, {}, None),
        ('heading "x" [level=2]', "heading", "x", {"level": "2"}, None),
        ('textbox "Name": Ada: the first', "textbox", "Name", {}, "Ada: the first"),
        ('switch "On" [checked=false] [disabled]', "switch", "On", {"checked": "false", "disabled": "true"}, None),
        ('status "Out": "Total: 5"', "status", "Out", {}, "Total: 5"),
        ("- 'heading \"it''s: b\" [level=1]': x", "heading", "it's: b", {"level": "1"}, "x"),
        ("checkbox [pressed=mixed]", "checkbox", None, {"pressed": "mixed"}, None),
    ],
)
def test_an_element_is_read_like_a_snapshot_line(
    notation: str, role: str | None, name: str | None, states: dict[str, str], value: str | None
) -> None:
    element = parse_element(notation)
    assert (element.role, element.name, dict(element.states), element.value) == (role, name, states, value)


def test_a_pattern_may_stand_for_the_name() -> None:
    element = parse_element(r"link /^a\/b \d+$/ [active]")
    assert element.pattern is not None
    assert element.pattern.search("a/b 12") == (0, 6)


@pytest.mark.parametrize(
    ("notation", "column", "message"),
    [
        ("", 1, "empty"),
        ('buton "x"', 1, "button"),
        ('button "x', 8, "quote"),
        ("button /x", 8, "slash"),
        ("button /a(b/", 10, "regular expression"),
        ('button "x" [cheked]', 13, "checked"),
        ("'button \"a: b\" [cheked]'", 17, "checked"),
        ('button "x" [checked', 12, "write it like"),
        ('button "x" [checked=maybe]', 12, "mixed"),
        ('button "x" [ref=e3]', 12, "remove"),
        ('button "x" here', 12, "write it like"),
        ("a" * (MAX_ELEMENT_CHARS + 1), MAX_ELEMENT_CHARS + 1, "shorten"),
    ],
)
def test_a_mistake_is_reported_with_its_column_and_a_remedy(notation: str, column: int, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_element(notation)
    assert caught.value.column == column
    assert message in f"{caught.value.problem} {caught.value.remedy}"


@given(
    st.sampled_from(sorted(ROLES)),
    NAMES,
    st.dictionaries(st.sampled_from([s for s in STATES if s != "level"]), st.sampled_from(["true", "false", "mixed"])),
    NAMES,
)
def test_what_is_written_comes_back(role: str, name: str, states: dict[str, str], value: str) -> None:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    text = f'{role} "{quoted}"' + "".join(f" [{key}={state}]" for key, state in states.items()) + f": {value}"
    element = parse_element(text)
    assert (element.role, element.name, dict(element.states)) == (role, name, states)
    assert element.value == value.strip()


@given(st.text(st.sampled_from('ab "\\/[]=:-()*+button checkedlevel\n'), max_size=60))
def test_any_text_is_an_element_or_a_mistake_inside_it(notation: str) -> None:
    mistake = None
    try:
        parse_element(notation)
    except Invalid as error:
        mistake = error
    assert mistake is None or (1 <= (mistake.column or 0) <= len(notation) + 2 and mistake.remedy)
