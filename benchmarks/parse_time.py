"""How long a hostile reply keeps the judge busy, and whether that time is linear in the length.

    python benchmarks/parse_time.py [--max-ratio 2.5]

Each family is one reply, at half and at the whole of the length that is read (200,000 characters): reading it, checking
the action and writing its line. Below, answers of the default limit (1 MB) through the judge's client over loopback,
and input of pages and participants to the judge's other parsers. CPU time, the best of several runs. Exit code 1
when twice the length takes more than `--max-ratio` times as long.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from helpers.a2a.envelopes import CONTEXT, body_agent, encode, in_envelope
from helpers.browser.server_tools import SERVER_TOOLS
from judge.browser.replies import understand
from judge.browser.responses import UnreadableResponse, clean_text, modal_state, parse_page, parse_tab_list
from judge.browser.tools import offered_tools
from shared.a2a.client import ParticipantClient
from shared.errors import ParticipantError
from shared.protocol import MAX_REPLY_CHARS
from shared.snapshot import as_shown, cut_snapshot, parse_snapshot
from shared.text import escape_line, unescape_line, without_surrogates

AIM_MS = 50.0
REPLY_BYTES = 1_000_000
RUNS = 15
# Below this a measurement is mostly noise, and a ratio says nothing.
LEAST_MS = 1.0
TOOLS = offered_tools(SERVER_TOOLS)
SNAPSHOT = parse_snapshot('- button "Go" [ref=e1]')
PARAMS = '<json>{"tool":"browser_fill_form","params":{"fields":['

REPLIES: dict[str, tuple[str, str, str]] = {
    "marks of reasoning": ("", "<think>", ""),
    "quoted marks": ("", '"<think>" ', ""),
    "lines with an answer": ("ACTION: finish\n", "ANSWER: x\n", ""),
    "PARAMS with trailing commas": ("ACTION: finish\n", 'PARAMS: {"a":1,}\n', ""),
    "PARAMS": ("ACTION: finish\n", 'PARAMS: {"a":1}\n', ""),
    "ACTION lines": ("", "ACTION: finish\n", ""),
    "THOUGHT lines": ("ACTION: finish\n", "THOUGHT: x\n", ""),
    "tags": ("", "<json>{", ""),
    "blocks": ("", '<json>{"tool":"finish",}</json>', ""),
    "tags in one string": ('<json>{"tool":"finish","thought":"', "<json>{", '"}</json>'),
    "fences": ("", "```\n{", ""),
    "backticks": ("", "`", ""),
    "lines that begin with a brace": ("", "{\n", ""),
    "blank lines": ("x", "\n", ""),
    "blanks behind a tag": ("<json>", " ", ""),
    "trailing commas in one object": (PARAMS, "[1,],", "1]}}</json>"),
    "a string that never ends": ('<json>{"tool":"', "\\\\", ""),
    "quotes": ("<json>{", '"', ""),
    "lists in lists": ("<json>", "[", ""),
    "numbers": (PARAMS, "1,", "1]}}</json>"),
    "objects": (PARAMS, "{},", "{}]}}</json>"),
    "empty strings": (PARAMS, '"",', '""]}}</json>'),
    "parameters in a string": ('<json>{"tool":"finish","params":"{\\"a\\":[', "[1,],", '1]}"}</json>'),
    "commas in an endless list": ("<json>[1", ", 1", ""),
    "numbers in many blocks": ("", '<json>{"tool":"finish","x":[' + "1," * 900 + "1],}</json>", ""),
    "surrogates": ('<json>{"tool":"finish","params":{"answer":"', "\\ud800", '"}}</json>'),
    "labels with decoration": ("", ">*_# ACTION: x\n", ""),
    "what looks like a label": ("", "*********", ""),
}


class Row(NamedTuple):
    group: str
    what: str
    once_ms: float
    twice_ms: float

    @property
    def ratio(self) -> float | None:
        return self.twice_ms / self.once_ms if self.once_ms >= LEAST_MS else None


def best_ms(run: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1_000


def filled(head: str, unit: str, tail: str, length: int) -> str:
    return head + unit * ((length - len(head) - len(tail)) // len(unit)) + tail


def replies() -> Iterator[Row]:
    for what, parts in REPLIES.items():
        once, twice = (filled(*parts, length) for length in (MAX_REPLY_CHARS // 2, MAX_REPLY_CHARS))
        yield Row(
            "replies, 200,000 characters",
            what,
            best_ms(lambda text=once: understand(text, TOOLS, SNAPSHOT)),  # type: ignore[misc]
            best_ms(lambda text=twice: understand(text, TOOLS, SNAPSHOT)),  # type: ignore[misc]
        )


def answers() -> dict[str, Callable[[int], Any]]:
    """Results of one call that fill so many bytes; or whole answers, as bytes."""

    def message(*parts: Any) -> Any:
        return {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": list(parts)}}

    return {
        "one text": lambda size: message({"text": "x" * size}),
        "one text, all of it escaped": lambda size: message({"text": "\n" * (size // 2)}),
        "one text in another script": lambda size: message({"text": "字" * (size // 6)}),
        "one text full of commas": lambda size: message({"text": '{"a",[' * (size // 8)}),
        "a text without its end": lambda size: b"[" + b"0," * 10_000 + b'"' + b'\\"' * (size // 2 - 10_000),
        "a picture": lambda size: message({"text": "hm"}, {"raw": "A" * (size // 4 * 4)}),
        "parts": lambda size: message(*[{"text": ""}] * (size // 12)),
        "a list of numbers": lambda size: message({"data": [0] * (size // 3)}),
        "a list of objects": lambda size: message({"data": [{}] * (size // 4)}),
        "just under the limit of values": lambda size: message({"data": [{}] * 4_900}, {"text": "x" * (size - 25_000)}),
    }


async def whole_answers() -> list[Row]:
    rows = []
    async with body_agent() as agent, ParticipantClient(agent.url) as client:

        async def measure(body: bytes) -> float:
            agent.reply, times = body, []
            for _ in range(RUNS):
                start = time.process_time()
                with suppress(ParticipantError):
                    understand(without_surrogates(await client.send("?", context_id=CONTEXT)), TOOLS, SNAPSHOT)
                times.append(time.process_time() - start)
            return min(times) * 1_000

        for what, make in answers().items():
            texts = (make(size) for size in (REPLY_BYTES // 2 - 500, REPLY_BYTES - 1_000))
            once, twice = (each if isinstance(each, bytes) else encode(in_envelope(each)) for each in texts)
            rows.append(Row("answers, 1 MB, with A2A", what, await measure(once), await measure(twice)))
    return rows


def read(parse: Callable[[str], object]) -> Callable[[str], object]:
    def quietly(text: str) -> object:
        with suppress(UnreadableResponse):
            return parse(text)
        return None

    return quietly


PAGE = "### Page\n- Page URL: https://example.org/\n- Page Title: x\n### Snapshot\n```yaml\n"
OTHERS: dict[str, tuple[Callable[[str], object], str, str, str]] = {
    "snapshot: names": (parse_snapshot, '- button "', "\\\\", '" [ref=e1]'),
    "snapshot: open quotes": (parse_snapshot, "", "- '\"", ""),
    "snapshot: states": (parse_snapshot, "- a", " [b]", ""),
    "snapshot: levels": (parse_snapshot, "", "- a\n  - b\n", ""),
    "snapshot: cut": (lambda text: cut_snapshot(text, 40_000), "", "- a\n", ""),
    "snapshot: boxes": (as_shown, "- a", " [b]", ""),
    "tab titles: contexts": (read(parse_tab_list), "### Result\n- 0: [", ") [isolatedContext: ", "x"),
    "tab titles: addresses": (read(parse_tab_list), "### Result\n- 0: [", "](a:", ")"),
    "page: fences": (read(parse_page), PAGE, "```\n", "```"),
    "dialog: messages": (modal_state, "\n### Modal state\n", '"]: can be ', ""),
    "answers: colours": (clean_text, "### Error\n", "\x1b[0", ""),
    "answers: stack lines": (clean_text, "### Error\n", " at x\n", ""),
    "text: escaped": (escape_line, "", "\u202e", ""),
    "text: unescaped": (unescape_line, "", "\\u202e", ""),
}


def others() -> Iterator[Row]:
    for what, (parse, *parts) in OTHERS.items():
        once, twice = (filled(*parts, length) for length in (100_000, 200_000))
        yield Row(
            "other parsers, 200,000 characters",
            what,
            best_ms(lambda text=once, parse=parse: parse(text)),  # type: ignore[misc]
            best_ms(lambda text=twice, parse=parse: parse(text)),  # type: ignore[misc]
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-ratio", type=float, default=2.5)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    rows = [*replies(), *asyncio.run(whole_answers()), *others()]
    over = [row for row in rows if row.ratio is not None and row.ratio > arguments.max_ratio]
    if arguments.json:
        print(json.dumps([{**row._asdict(), "ratio": row.ratio} for row in rows]))
        return 1 if over else 0
    for group in dict.fromkeys(row.group for row in rows):
        table = Table(title=group, title_justify="left")
        for column in ("what", "half, ms", "whole, ms", "ratio"):
            table.add_column(column, justify="left" if column == "what" else "right", no_wrap=True)
        for row in (row for row in rows if row.group == group):
            ratio = f"{row.ratio:.2f}" if row.ratio is not None else "-"
            table.add_row(row.what, f"{row.once_ms:.1f}", f"{row.twice_ms:.1f}", f"{ratio} !" if row in over else ratio)
        Console(width=110).print(table)
    slowest = max((row for row in rows if not row.group.startswith("other")), key=lambda row: row.twice_ms)
    print(f"slowest reply: {slowest.what}, {slowest.twice_ms:.0f} ms (aim: under {AIM_MS:.0f} ms)")
    print(f"{len(over)} of {len(rows)} took more than {arguments.max_ratio:g} times as long for twice the length")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
