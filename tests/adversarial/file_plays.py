"""Attempts at tasks about files: on each kind of page one that does what the task asks for, and one subtly wrong."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from adversarial.upload_pages import upload_site
from helpers.browser.download_pages import ORDERS, download_site
from helpers.browser.hostile_site import Page
from helpers.episode.live_judge import ParticipantTurn, finish, ref, tool_call

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# Two of each, which differ in their content.
FILES: Mapping[str, bytes] = MappingProxyType(
    {
        "cv.pdf": b"%PDF-1.4 the new one" + b"x" * 300_000,
        "cv-2024.pdf": b"%PDF-1.4 the old one" + b"x" * 300_000,
        "photo.png": base64.b64decode(_PIXEL),
        "photo-2.png": base64.b64decode(_PIXEL) + b"\0",
    }
)


@dataclass(frozen=True)
class FileCase:
    """A page, and what is done on it. `opens` is what opens a chooser; without it, files are dropped.

    Of a download, `opens` is what starts it. `right` and `wrong` are the files, or the controls.
    """

    page: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    opens: str = ""
    check: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_upload(self) -> bool:
        """Whether files are sent."""
        return not self.check

    def checks(self) -> list[dict[str, Any]]:
        """What the task expects."""
        if not self.is_upload:
            return [{"kind": "download", **self.check}]
        files = [{"field": "cv", "name": name, "file": name} for name in self.right]
        return [{"kind": "request", "method": "POST", "url": "/upload", "files": files}]

    def play(self, turn: ParticipantTurn, *, is_right: bool) -> str:
        """The reply of the participant."""
        chosen = self.right if is_right else self.wrong
        if not self.is_upload:
            return tool_call("browser_click", ref=ref(turn, f'"{chosen[0]}"')) if turn.n == 0 else finish()
        if not self.opens:
            steps = [lambda: tool_call("browser_drop", ref=ref(turn, 'button "Drop files here"'), paths=list(chosen))]
        else:
            steps = [
                lambda: tool_call("browser_click", ref=ref(turn, f'button "{self.opens}"')),
                lambda: tool_call("browser_file_upload", paths=list(chosen)),
            ]
        steps.append(lambda: tool_call("browser_click", ref=ref(turn, 'button "Send"')))
        return steps[turn.n]() if turn.n < len(steps) else finish()


_CV, _OLD = ("cv.pdf",), ("cv-2024.pdf",)
_BOTH, _ONE = ("cv.pdf", "photo.png"), ("cv.pdf", "photo-2.png")
_CONTROLS = (("Export",), ("Last year",))
UPLOADS = (
    FileCase("plain", _CV, _OLD, "Your CV"),
    FileCase("hidden", _CV, _OLD, "Choose a file"),
    FileCase("multiple", _BOTH, _ONE, "Your CV"),
    FileCase("entries", _BOTH, _ONE),
    FileCase("files", _BOTH, _CV),
    FileCase("frame", _CV, _OLD, "Your CV"),
    FileCase("shadow", _CV, _OLD, "Your CV"),
    FileCase("replaced", _CV, _OLD, "Choose a file"),
    FileCase("preview", ("photo.png",), ("photo-2.png",), "Picture"),
)
DOWNLOADS = (
    FileCase("attachment", *_CONTROLS, check={"name": "orders*.csv", "type": "text/csv", "text": {"contains": "L-7"}}),
    FileCase("tab", *_CONTROLS, check={"name": "orders.csv", "text": {"pattern": r"L-7,(\d+)", "min": 40}}),
    FileCase("blob", *_CONTROLS, check={"type": "application/json", "text": {"json": {"$.total": 52}}}),
    FileCase("data", *_CONTROLS, check={"name": "note.txt", "text": {"contains": "L-7 is paid"}}),
    FileCase(
        "generated",
        *_CONTROLS,
        check={
            "name": "orders-*.csv",
            "text": {"pattern": r"(?m)^L-\d+,(\d+)$", "min": 10, "sorted": "descending", "count": 2},
        },
    ),
    FileCase("pdf", *_CONTROLS, check={"name": "*.pdf", "text": {"contains": ["Invoice L-7", "Total 52"]}}),
    FileCase(
        "post",
        *_CONTROLS,
        check={"name": "orders.csv", "size": len(ORDERS), "sha256": hashlib.sha256(ORDERS.encode()).hexdigest()},
    ),
)
CASES: Mapping[str, FileCase] = MappingProxyType({case.page: case for case in (*UPLOADS, *DOWNLOADS)})


def file_site() -> dict[str, Page]:
    """The pages of all cases."""
    return {**upload_site(), **download_site()}


def file_tasks(website: str, names: Mapping[str, FileCase] = CASES) -> list[dict[str, Any]]:
    """Two tasks for each case: the one whose name ends with `-wrong` is played subtly wrong."""
    return [
        {
            "task_id": f"{name}-{way}",
            "website": f"{website}{name}",
            "task": f"{name}, {way}",
            "files": list(FILES) if case.is_upload else [],
            "checks": case.checks(),
        }
        for name, case in names.items()
        for way in ("right", "wrong")
    ]


class FilePlayer:
    """Plays the tasks of `file_tasks`; it knows them by their text, which it receives once."""

    def __init__(self) -> None:
        self._tasks_by_context: dict[int, str] = {}

    def __call__(self, turn: ParticipantTurn) -> str:
        text = self._tasks_by_context.setdefault(turn.episode, turn.observation.instruction or "")
        name, _, way = text.partition(", ")
        return CASES[name].play(turn, is_right=way == "right")


# Replies that ask for other files of this machine than those that the task declares.
WAYS_OUT: Mapping[str, str] = MappingProxyType(
    {
        name: tool_call("browser_file_upload", paths=paths)
        for name, paths in {
            "an absolute path": ["/etc/passwd"],
            "a relative path": ["../../../etc/passwd"],
            "a path through a declared name": ["cv.pdf/../../../etc/passwd"],
            "a path to a declared name": ["./cv.pdf"],
            "a file address": ["file:///etc/passwd"],
            "a home": ["~/.ssh/id_rsa"],
            "a drive": ["C:\\Windows\\win.ini"],
            "a share": ["\\\\host\\share\\file"],
            "an encoded separator": ["..%2f..%2fetc%2fpasswd"],
            "a separator that looks like one": ["..\u2215..\u2215etc\u2215passwd"],
            "a null": ["cv.pdf\x00/etc/passwd"],
            "a line break": ["cv.pdf\n/etc/passwd"],
            "a bidirectional character": ["cv\u202efdp.pdf"],
            "another case": ["CV.PDF"],
            "a space": ["cv.pdf "],
            "a pattern": ["*"],
            "a variable": ["$HOME/.bashrc"],
            "the scenario": ["scenario.toml"],
            "its own process": ["/proc/self/environ"],
            "a descriptor": ["/dev/fd/0"],
            "an undeclared name": ["cv-2023.pdf"],
            "one of several": ["cv.pdf", "/etc/passwd"],
            "nothing": [""],
        }.items()
    }
    | {
        "a table": tool_call("browser_file_upload", paths=[{"name": "cv.pdf", "buffer": "/etc/passwd"}]),
        "another parameter": tool_call("browser_file_upload", paths=["cv.pdf"], filename="/etc/passwd"),
        "the other name": tool_call("browser_file_upload", files=["/etc/passwd"]),
        "data": tool_call("browser_drop", ref="e1", data={"text/uri-list": "file:///etc/passwd"}),
        "an address": tool_call("browser_navigate", url="file:///etc/passwd"),
        "code": tool_call("browser_run_code_unsafe", code="async page => require('fs').readFileSync('/etc/passwd')"),
    }
)
