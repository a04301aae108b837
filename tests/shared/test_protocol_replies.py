import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.marks import MARKS, drafts, pairs
from shared.models import Action, ToolSpec
from shared.protocol import MAX_REPLY_CHARS, MAX_THOUGHT_CHARS, REPLY_EXAMPLE, TOOL_NAME, parse_reply, render_reply
from shared.text import excerpt

CLICK = Action(tool="browser_click", params={"target": "e12"})
CLICK_JSON = '{"tool": "browser_click", "params": {"target": "e12"}}'


def action(text: str) -> Any:
    reply = parse_reply(text)
    assert reply.complaint is None
    assert reply.action is not None
    return reply.action


def complaint(text: str) -> Any:
    reply = parse_reply(text)
    assert reply.action is None
    assert reply.complaint is not None
    return reply.complaint


@pytest.mark.parametrize(
    "text",
    [
        f"<json>{CLICK_JSON}</json>",
        f"< json >{CLICK_JSON}< / json >",
        f"<json>{CLICK_JSON}",
        f"{CLICK_JSON}</json>",
        f"```json\n<json>{CLICK_JSON}</json>\n```",
        f"<json>```json\n{CLICK_JSON}\n```</json>",
        f"<json>\r\n```\r\n{CLICK_JSON}\r\n```\r\n</json>",
        f"<json>`{CLICK_JSON}`</json>",
        CLICK_JSON,
        f"`{CLICK_JSON}`",
        f"I will click.\n<answer>{CLICK_JSON}</answer>",
        f"<tool_call> {CLICK_JSON}\n</tool_call>",
        f"```json\n{CLICK_JSON}\n```",
        '<json>{"tool": "browser_click", "params": {"target": "e12",},}</json>',
        '<json>{"tool": " browser_click ", "params": "{\\"target\\": \\"e12\\"}"}</json>',
        '<json>{"tool": "browser_click", "params": {"target": "e12"}, "memory": [1]}</json>',
        '<json>{"tool": "finish"}</json> no: <json>' + CLICK_JSON + "</json>",
        "The <json> tag comes last.\n<json>" + CLICK_JSON + "</json>",
        "<json>" + CLICK_JSON + "</json> As the <json> tag says.",
        'ACTION: browser_click\nPARAMS: {"target": "e12"}',
        'Action: browser_click\nParams: {"target":\n  "e12",\n}\nthat is all',
        '**ACTION:** `browser_click`\n**PARAMS:**\n```json\n{"target": "e12"}\n```',
        'ACTION: finish\nPARAMS: {}\nno\nACTION: browser_click\nPARAMS: {"target": "e12"}',
    ],
)
def test_one_action_is_read_in_many_forms(text: str) -> None:
    assert action(text) == CLICK


@pytest.mark.parametrize(
    "text",
    [
        '<json>{"tool": "finish"}</json>',
        '<json>{"tool": "finish", "params": null}</json>',
        '<json>{"tool": "finish", "params": ""}</json>',
        '<json>{"tool": "finish", "params": " "}</json>',
        "ACTION: finish",
        "ACTION: finish\nPARAMS:",
        "ACTION: finish\nPARAMS: {}",
    ],
)
def test_without_parameters_there_are_none(text: str) -> None:
    assert action(text) == Action(tool="finish")


def test_thought_action_and_parameters_are_read_from_lines() -> None:
    text = 'THOUGHT: The field is\nempty.\nACTION: browser_type\nPARAMS: {"text": "ACTION: finish"}'
    expected = Action(tool="browser_type", params={"text": "ACTION: finish"}, thought="The field is\nempty.")
    assert action(text) == expected


def test_a_label_inside_a_string_over_lines_is_text() -> None:
    text = 'ACTION: browser_type\nPARAMS: {"text": "a\nACTION: finish\nb"}'
    assert action(text) == Action(tool="browser_type", params={"text": "a\nACTION: finish\nb"})


@pytest.mark.parametrize(
    "typed", ["</json>", "<json>{}</json>", ",}", "[1,]", "```", "a\nb", '<json>{"tool": "finish"}</json>']
)
def test_typed_text_is_never_mistaken_for_markup(typed: str) -> None:
    text = '<json>{"tool": "browser_type", "params": {"text": ' + json.dumps(typed) + ",}}</json>"
    assert action(text).params == {"text": typed}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("I am not sure", 'holds no <json>…</json> block and no ACTION: line (it begins with "I am not sure")'),
        ("Use the <json> tag", "has a <json> tag with no JSON object behind it"),
        ("<json>{'tool': 'finish'}</json>", "is not valid JSON: Expecting property name"),
        ('<json>{"tool": "finish", "params": {"answer": "a', "is not valid JSON: Unterminated string"),
        ('<json>{"tool": "finish"', "where the text ends"),
        (f"<json>{CLICK_JSON} {CLICK_JSON}</json>", "has more than one JSON object inside the <json> tags"),
        (f"{CLICK_JSON}\n{CLICK_JSON}", "holds more than one JSON object and no <json> tags"),
        (f"<json>[{CLICK_JSON}]</json>", "is a JSON list or value, not one JSON object"),
        ('<json>{"action": "click"}</json>', 'has no "tool" key (its keys: "action")'),
        ('<json>{"tool": 7}</json>', 'has as "tool" a int, which is not the name of a tool'),
        ('<json>{"tool": "click(e1)"}</json>', 'has as "tool" "click(e1)"'),
        ('<json>{"tool": "%s"}</json>' % ("a" * 65), "which is not the name of a tool"),
        ("ACTION: click the button", '"click the button", which is not the name of a tool'),
        ('<json>{"tool": "a", "arguments": {}}</json>', 'has "arguments" where "params" is meant'),
        ('<json>{"tool": "a", "params": [1]}</json>', 'has as "params" a list, not a JSON object'),
        ('<json>{"tool": "a", "params": "e12"}</json>', "is not valid JSON"),
        ('<json>{"tool": "a", "params": "{} {}"}</json>', 'has text after the JSON object in "params"'),
        ('<json>{"tool": "a", "tool": "b"}</json>', 'has the JSON key "tool" twice'),
        ('<json>{"tool": "a", "params": {"x": NaN}}</json>', "holds NaN, which is not a JSON number"),
        ('<json>{"tool": "a", "params": {"x": -Infinity}}</json>', "holds -Infinity, which is not a JSON number"),
        ('<json>{"tool": "a", "params": {"x": 1e999}}</json>', 'holds the number "1e999", which is too large'),
        ('<json>{"tool": "a", "params": {"x": 9007199254740993}}</json>', "which is too large"),
        ('<json>{"tool": "a", "params": {"x": "\\u0000"}}</json>', "holds a NUL character"),
        ('<json>{"tool": "a", "params": {"x": "\x00"}}</json>', "holds a NUL character"),
        ('<json>{"tool": "a", "params": %s}' % ("[" * 10_000), "nests JSON more than 16 levels deep"),
        ('<json>{"tool": "a", "params": ' + '{"a":' * 20 + "1" + "}" * 21, "nests JSON more than 16 levels deep"),
        ('<json>{"tool": "a", "params": "%s"}' % ("[" * 10_000), "nests JSON more than 16 levels deep"),
        ("<json>{}</json>" * 11, "holds more than 10 JSON blocks"),
        ("ACTION: a\n" + 'PARAMS: {"a":1,}\n' * 11, "holds more than 10 JSON blocks"),
        ('<json>{"tool": "a", "params": {"x": [%s1]}}</json>' % ("1," * 20_000), "holds more than 20000 JSON values"),
        ("x" * (MAX_REPLY_CHARS + 1), f"has {MAX_REPLY_CHARS + 1} characters"),
    ],
)
def test_a_complaint_says_what_was_wrong_and_what_to_send(text: str, message: str) -> None:
    sentence = complaint(text)
    assert sentence.startswith("Your reply ")
    assert message in sentence
    assert sentence.endswith(f"; send exactly one action, such as {REPLY_EXAMPLE}")


def test_commas_and_brackets_in_a_text_are_not_counted_as_values() -> None:
    assert action(render_reply(Action(tool="a", params={"x": ",[{" * 30_000}))).params == {"x": ",[{" * 30_000}


def test_a_long_thought_is_cut() -> None:
    assert len(action(render_reply(Action(tool="a", thought="x" * 9_999))).thought) == MAX_THOUGHT_CHARS


def test_a_thought_that_is_not_text_is_kept_as_json() -> None:
    assert action('<json>{"tool": "a", "thought": {"goal": "ä"}}</json>').thought == '{"goal": "ä"}'


def test_lone_surrogates_become_encodable() -> None:
    result = action('<json>{"tool": "a", "thought": "\\ud800", "params": {"\\udfff": ["\\ud83d"]}}</json>')
    result.model_dump_json().encode("utf-8")
    assert result.params == {"\ufffd": ["\ufffd"]}


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
actions = st.builds(
    Action,
    tool=st.from_regex(TOOL_NAME, fullmatch=True),
    params=st.dictionaries(texts, values, max_size=4),
    thought=texts,
)
noise = st.text(st.characters(exclude_characters="<{"), max_size=60)


@given(actions, noise, noise)
def test_any_action_survives_its_reply_with_any_text_around_it(original: Action, before: str, after: str) -> None:
    assert action(before + render_reply(original) + after) == original


@given(actions)
def test_any_action_survives_the_form_of_lines(original: Action) -> None:
    text = f"THOUGHT: x\nACTION: {original.tool}\nPARAMS: {json.dumps(original.params)}"
    assert action(text) == original.model_copy(update={"thought": "x"})


@given(actions)
def test_a_rendered_reply_is_one_line_of_ascii_with_one_pair_of_tags(an_action: Action) -> None:
    text = render_reply(an_action)
    assert text.isascii()
    assert text.isprintable()
    assert text.count("<") == 2


@pytest.mark.parametrize(("value", "error"), [(float("nan"), ValueError), (object(), TypeError)])
def test_parameters_that_json_cannot_hold_are_refused(value: Any, error: Any) -> None:
    with pytest.raises(error):
        render_reply(Action(tool="a", params={"x": value}))


pieces = st.sampled_from(
    [
        "<json>",
        "</json>",
        "```json\n",
        "```",
        "{",
        "}",
        "[",
        ",",
        '"',
        "\\",
        '"tool":',
        '"a"',
        '"params":',
        "ACTION: a\n",
        "PARAMS: ",
        "THOUGHT: ",
        "\n",
        "\x00",
        "\ud800",
        "\\ud800",
        "1e999",
        "NaN",
        CLICK_JSON,
    ]
)


@given(st.lists(pieces | st.text(max_size=4), max_size=25).map("".join))
def test_any_text_is_an_action_or_one_bounded_encodable_line(text: str) -> None:
    reply = parse_reply(text)
    assert (reply.action is None) != (reply.complaint is None)
    reply.model_dump_json().encode("utf-8")
    if reply.complaint is not None:
        assert len(reply.complaint) < 400
        assert len(reply.complaint.splitlines()) == 1


HOSTILE = [
    "<json>{", '<json>{"', '<json>{"a":', "<json>[", "PARAMS: {", 'ACTION: a\nPARAMS: {"', "ACTION: a\n", "```\n{",
    '"\\', ", ", "[ ", "`", "\n", "< json",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("start", ["", '<json>{"tool": "a", "params": {"x": "'])
def test_hostile_repetition_is_answered(start: str, piece: str) -> None:
    reply = parse_reply((start + piece * MAX_REPLY_CHARS)[:MAX_REPLY_CHARS])
    assert (reply.action is None) != (reply.complaint is None)


def with_tools(text: str) -> Any:
    return parse_reply(text, TOOLS)


TOOLS = (
    ToolSpec(
        name="browser_click",
        description="Click",
        parameters={"type": "object", "properties": {"target": {"type": "string"}, "element": {"type": "string"}}},
    ),
    ToolSpec(
        name="browser_scroll",
        description="Scroll",
        parameters={"type": "object", "properties": {"direction": {"type": "string"}}},
    ),
)
FORMS = ("{}", "<json>{}</json>", "```json\n{}\n```", "Done.\n{}")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            '{"tool": "finish", "answer": "42"}',
            'has "answer" beside "params" instead of inside it; an answer is given as',
        ),
        ('{"tool": "finish", "params": {}, "answer": "42"}', 'has "answer" beside "params"'),
        ('{"tool": "finish", "Answer": ["a"]}', 'has "Answer" beside "params"'),
        ('{"tool": "finish", "final_answer": "42"}', 'has "final_answer" beside "params"'),
        ('{"tool": "finish", "result": {"a": 1}}', 'has "result" beside "params"'),
        ('{"tool": "finish", "text": "42"}', 'has "text" beside "params"'),
        ('{"tool": "finish", "arguments": {"answer": "42"}}', 'has "arguments" where "params" is meant'),
        ('{"tool": "finish", "params": {}, "args": {"answer": "42"}}', 'has "args" where "params" is meant'),
        ('{"tool": "finish", "action_input": {"answer": "42"}}', 'has "action_input" where "params" is meant'),
        ('{"tool": "finish", "toolInput": "42"}', 'has "toolInput" where "params" is meant'),
        ('{"tool": "finish", "Params": {"answer": "42"}}', 'has "Params" where "params" is meant'),
        (
            '{"tool": "browser_close", "answer": "42"}',
            "gives an answer, which browser_close does not take; finish does",
        ),
        ('{"tool": "browser_click", "target": "e12"}', 'has "target" beside "params" instead of inside it; send'),
        ('{"tool": "browser_click", "ref": "e12", "params": {}}', 'has "ref" beside "params" instead of inside it'),
        ('{"tool": "browser_click", "element": "a", "params": {"target": "e1"}}', 'has "element" beside "params"'),
        ('{"tool": "browser_scroll", "direction": "up"}', 'has "direction" beside "params" instead of inside it'),
    ],
)
def test_a_parameter_outside_of_params_is_refused_by_name(body: str, message: str) -> None:
    for form in FORMS:
        reply = with_tools(form.format(body))
        assert reply.action is None, form
        assert message in reply.complaint, form


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "ACTION: finish\nANSWER: 42",
            'has a line "ANSWER:"; an answer is given as {"tool": "finish", "params": {"answer"',
        ),
        ("Action: finish\n**Final Answer:** 42", 'has a line "Final Answer:"'),
        ('{"tool": "finish"}\nANSWER: 42', 'has a line "ANSWER:"'),
        ('Answer: 42\n<json>{"tool": "finish", "params": {}}</json>', 'has a line "Answer:"'),
        ("ACTION: browser_close\nANSWER: 42", "gives an answer, which browser_close does not take"),
        ('Action: finish\nAction Input: {"answer": "42"}', 'has a line "Action Input:" where PARAMS: is meant'),
        ("Action: finish\nAction Input: 42", 'has a line "Action Input:" where PARAMS: is meant'),
        ('Action: browser_click\nAction Input: {"target": "e1"}', 'has a line "Action Input:"'),
        ('ACTION: browser_click\nParameters: {"target": "e1"}', 'has a line "Parameters:" where PARAMS: is meant'),
        ('ACTION: browser_click\nARGS: {"target": "e1"}', 'has a line "ARGS:" where PARAMS: is meant'),
        ('ACTION: browser_click\n- tool_input: {"target": "e1"}', 'has a line "tool_input:" where PARAMS: is meant'),
        ("ACTION: finish\nThe price is 42.", "has text after ACTION: finish and no PARAMS: line with the answer"),
        ("ACTION: finish 42", 'has as "tool" "finish 42", which is not the name of a tool'),
        ('Action: finish("42")', 'has as "tool" \'finish("42")\', which is not the name of a tool'),
    ],
)
def test_a_label_that_is_not_read_is_refused_by_name(text: str, message: str) -> None:
    for before in ("", "THOUGHT: It is shown.\n"):
        reply = with_tools(before + text)
        assert reply.action is None, before
        assert message in reply.complaint, before


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "finish", "params": {"answer": "42"}, "answer": "42"}',
        '{"tool": "finish", "params": {"answer": "42"}}\nANSWER: 42',
        'ACTION: finish\nPARAMS: {"answer": "42"}\nANSWER: 43',
    ],
)
def test_an_answer_in_params_is_the_answer(text: str) -> None:
    assert with_tools(text).action.params == {"answer": "42"}


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "browser_navigate_back", "memory": "x", "result": "y"}',
        "ACTION: browser_navigate_back\nAction Input: {}",
        "Action: browser_navigate_back\nAction Input: None",
        "ACTION: browser_navigate_back\nANSWER: none yet",
        "ACTION: browser_navigate_back\nI go back.",
        '{"tool": "finish", "memory": "x", "answer": null}',
        "```\nACTION: finish\n```",
        '{"tool": "browser_close", "message": "bye"}',
    ],
)
def test_nothing_is_refused_where_nothing_is_lost(text: str) -> None:
    result = with_tools(text)
    assert result.complaint is None
    assert result.action.params == {}


def test_an_answer_may_look_like_a_label() -> None:
    answer = "a\nANSWER: 42\nAction Input: {}"
    assert action(render_reply(Action(tool="finish", params={"answer": answer}))).params == {"answer": answer}


@given(pairs, drafts, drafts, st.sampled_from(["", "<json>", "\n```json\n", "<answer>", "<|begin_of_box|>"]))
def test_no_action_is_read_from_reasoning(marks: tuple[str, str], before: str, inside: str, lead_in: str) -> None:
    opening, closing = marks
    assert action(f"{before}{opening}{inside}{closing}{lead_in}{CLICK_JSON}") == CLICK
    assert action(f'{opening}{inside}{closing}ACTION: browser_click\nPARAMS: {{"target": "e12"}}') == CLICK
    refused = complaint(f"{before}{opening}{inside}<json>{CLICK_JSON}</json>")
    assert "ends inside its reasoning, which" in refused
    assert "holds nothing after its reasoning" in complaint(f"<json>{CLICK_JSON}</json>{opening}{inside}{closing}\n")


@given(st.sampled_from(MARKS), st.sampled_from(["{}", "a {} b", "\n{}\n", '"{}" said', "ACTION: finish\n{}"]))
def test_a_mark_in_an_action_is_part_of_it(mark: str, text: str) -> None:
    typed = text.format(mark)
    body = json.dumps({"thought": typed, "tool": "browser_type", "params": {"text": typed}}, ensure_ascii=False)
    expected = Action(tool="browser_type", params={"text": typed}, thought=typed)
    # Raw line breaks are accepted in strings.
    for spelling in (body, body.replace("\\n", "\n"), body[:-1] + ",}"):
        for form in FORMS:
            assert action(form.format(spelling)) == expected
        assert action(f"<think>Type it.</think>{spelling}") == expected
    assert action(f"ACTION: browser_type\nPARAMS: {json.dumps({'text': typed})}").params == {"text": typed}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"tool": "a" "b"}', "near '\"b\"}'"),
        ("{'tool': 'a'}", "near \"'tool': 'a'}\""),
        ('{"tool": "a", "params": {"text": "C:\\dir"}}', "near '\\dir\"}}'"),
        ("Ich wähle „Größe“ … 🙂", 'begins with "Ich wähle „Größe“ … 🙂"'),
        ("no\tbreaks\nhere\u202e", 'begins with "no\\tbreaks\\nhere\\u202e"'),
        ("a \"b\" 'c' `d`", "begins with «a \"b\" 'c' `d`»"),
    ],
)
def test_a_complaint_shows_the_participants_own_characters(text: str, expected: str) -> None:
    assert expected in complaint(text)
    assert len(complaint(text).splitlines()) == 1


@given(st.text(max_size=200), st.integers(2, 80))
def test_an_excerpt_is_bounded_and_one_line(text: str, limit: int) -> None:
    escaped = excerpt(text, limit)
    assert len(escaped) <= limit + 2
    assert len(escaped.splitlines()) == 1
    inner = escaped[1:-1]
    if text.isprintable() and text.isascii() and len(text) <= limit and not set("\"'`") <= set(text):
        assert inner == text


@pytest.mark.parametrize("form", ["<json>{}</json>", "{}", "ACTION: browser_click\nPARAMS: {}"])
@pytest.mark.parametrize(
    "marks",
    [
        *(
            f"<{name}{attributes}>\n{{}}\n</{name}>"
            for name in ("details", "cot", "plan")
            for attributes in ("", ' type="reasoning"')
        ),
        *(f"{fence}{name}\n{{}}\n{fence}" for fence in ("```", "~~~") for name in ("", "json", "thinking")),
        "[cot]\n{}\n[/cot]",
        "Here is my thought process:\n{}\nHere is my response:",
    ],
)
def test_marks_that_only_judges_replies_lose_do_not_hide_an_action(marks: str, form: str) -> None:
    arguments = '{"target": "e12"}'
    text = marks.replace("{}", form.replace("{}", arguments if form.startswith("ACTION") else CLICK_JSON))
    assert action(text) == CLICK
    assert action(f"{text}\nThis opens the page.") == CLICK
