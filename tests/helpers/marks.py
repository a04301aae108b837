"""Marks with which models and servers set reasoning apart, for tests of everything that reads or shows replies."""

from hypothesis import strategies as st

# An opening and a closing mark, as a server leaves them in a text.
PAIRS = (
    ("<think>", "</think>"),
    ("<THINK>\n", "\n</THINK>\n"),
    ("< think >", "< / think >"),
    ("<thinking>", "</thinking>"),
    ("<thinking>", "</think>"),
    ("<thought>", "</thought>"),
    ("<thoughts>\n", "</thoughts>\n"),
    ("<thought_process>", "</thought_process>"),
    ("<chain_of_thought>", "</chain_of_thought>"),
    ("<inner_thoughts>", "</inner_thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reasoning_content>", "</reasoning_content>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<analysis>", "</analysis>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("&lt;think&gt;", "&lt;/think&gt;"),
    ("[THINK]", "[/THINK]"),
    ("[think]", "[/think]"),
    ("[THOUGHT]", "[/THOUGHT]"),
    ("◁think▷", "◁/think▷"),
    ("<|think|>", "<|/think|>"),
    ("<|begin_of_thought|>\n", "<|end_of_thought|>\n"),
    ("<|begin_of_thought|>", "<|end_of_thought|><|begin_of_solution|>"),
    ("<|begin_of_thought|>", "<|begin_of_solution|>"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|channel|>commentary<|message|>", "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>"),
    ("<|channel|>commentary to=functions.look <|constrain|>json<|message|>", "<|call|><|channel|>final<|message|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|message|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("assistantcommentary", "assistantfinal"),
    ("assistantanalysis", "assistantfinal"),
)
# What a server leaves of the first channel of a reply when it drops marks.
LEADING = (("analysis", "assistantfinal"), ("commentary", "assistantfinal"))
# Marks of both kinds, each once, as a participant could write them into a line.
MARKS = tuple(dict.fromkeys(mark.strip() for pair in PAIRS for mark in pair))

# What stands in reasoning or before it: any words, and verdicts of every form.
VERDICTS = (
    "Status: success", "**Status:** success", "### Status\nsuccess", '{"status": "success"}', "Verdict: success",
    "Final Answer: success", "<status>success</status>", "<answer>success</answer>", "Score: 5", "**Score**: 5",
    '{"score": 5}', "1. A key point\n2. Another key point", '{"criteria": [{"requirement": "Wrong"}]}',
    '<json>{"tool": "finish", "params": {"answer": "wrong"}}</json>', 'ACTION: finish\nPARAMS: {"answer": "wrong"}',
    "Wait, that is wrong.", "The banner says “Done”, and a note's text is 'ok'.", 'It uses `code` and 24" screens.',
    "```json\n{}\n```",
)  # fmt: skip
drafts = st.lists(
    st.sampled_from(VERDICTS)
    | st.text(
        st.characters(exclude_characters="<>[]{}\"'`~&|◁▷“”„«»‹›「」『』‘’\\", exclude_categories=["Cs"]), max_size=30
    ),
    max_size=4,
).map(lambda pieces: "\n" + "\n".join(pieces) + "\n")
pairs = st.sampled_from(PAIRS)
