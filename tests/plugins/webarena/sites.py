"""HAR files made by hand, and an imitation of WebArena-Verified's environment."""

from pathlib import Path
from typing import Any

from shared.settings import Settings

ABOUT: dict[str, Any] = {"version": "0", "evaluator_checksum": "0", "data_checksum": "0", "answer_schema": {}}


def entry(url: str, method: str = "GET", status: int = 200, body: str | None = None, **more: Any) -> dict[str, Any]:
    """One request for a page or, with a `body`, one that sends a form."""
    request: dict[str, Any] = {"method": method, "url": url, "headers": [{"name": "Accept", "value": "text/html"}]}
    if body is not None:
        request["postData"] = {"mimeType": "application/x-www-form-urlencoded", "text": body}
    return {"request": request, "response": {"status": status, "redirectURL": "", "headers": [], "content": {}}, **more}


def har(*entries: dict[str, Any]) -> dict[str, Any]:
    """A trace of these requests."""
    return {"log": {"version": "1.2", "entries": list(entries)}}


def imitation(folder: Path, *lines: str, then: str = "") -> Settings:
    """Settings with a Python that answers each request with one of the lines, and does something else at the end."""
    program = folder / "python"
    replies = "".join(f"read request && printf '%s\\n' '{line}'\n" for line in lines)
    program.write_text(f"#!/bin/sh\n{replies}{then}\n")
    program.chmod(0o755)
    return Settings(webarena_python=str(program))
