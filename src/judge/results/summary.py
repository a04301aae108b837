"""A run as a page of Markdown, such as a job's summary on a continuous integration service."""

from collections.abc import Collection, Sequence

from judge.results.identity import player
from judge.results.submission import counts_of, incomplete_note, rate_text
from judge.results.tables import AttemptRow
from shared.models import key_of
from shared.text import counted, one_line, without_surrogates

_ORDER = ("failure", "aborted", "unscored", "success")
_MAX_WHY_CHARS = 200
# A service refuses a summary of more than a megabyte.
_MAX_ROWS = 1000


def markdown(rows: Sequence[AttemptRow], missing: Collection[tuple[str, int]] = ()) -> str:
    """Who played what, the success rate, and a table of the attempts, those that did not succeed first.

    `missing` are the tasks and epochs of the run without a result: in the rate of all tasks they count as failures.
    """
    entries = [row.model_dump(include={"task_id", "epoch", "verdict", "stop_reason"}) for row in rows]
    counts = counts_of(entries + [{"task_id": task, "epoch": epoch, "verdict": "aborted"} for task, epoch in missing])
    lines = ["### WABE: " + (_code(rows[0].scenario or rows[0].run_id) if rows else "no results"), ""]
    if rows:
        first = rows[0]
        known = {"name": first.name, "card_name": first.agent, "card_version": first.agent_version}
        lines += [f"Participant: {_code(player({**known, 'model': first.model}, first.participant))}", ""]
    note = incomplete_note(counts)
    of_all = f"of all tasks: {counts['success_rate_of_all']} %"
    lines += [f"**{rate_text(counts)}**; {of_all}{f' ({note})' if note else ''}", ""]
    if missing:
        lines += [f"{len(missing)} of {counted(counts['attempts'], 'attempt')} without a result: see the run.", ""]
    lines += ["| verdict | task | level | steps | seconds | why |", "|---|---|---|--:|--:|---|"]
    for row in sorted(rows, key=lambda row: _ORDER.index(row.verdict))[:_MAX_ROWS]:
        why = "" if row.verdict == "success" else _code(row.reason or row.stop_reason)
        cells = (
            row.verdict,
            _code(key_of(row.task_id, row.epoch)),
            row.level or "",
            row.steps,
            f"{row.duration_s:.1f}",
            why,
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += [f"\n… {len(rows) - _MAX_ROWS} more"] if len(rows) > _MAX_ROWS else []
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """The text as a code span: no link, image, mention or HTML of a participant or a page takes effect."""
    # An escaped bar would not do: behind a backslash of the text it ends the cell.
    shown = one_line(without_surrogates(text), _MAX_WHY_CHARS).replace("`", "'").replace("|", "¦")
    return f"`{shown}`" if shown else ""
