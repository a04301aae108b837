"""What a hard case is: a page, what it asks its server for, and the steps of its walks."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from helpers.network.served_sites import Answer, Handler, Request, SocketHandler

# Each button runs a function, and each result is an item of a list: what happened can be read from the snapshot.
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}</head><body>
<h1>{title}</h1>{body}<ul id="results"></ul><script{nonce}>
const show = text => {{ const item = document.createElement("li"); item.textContent = text; results.append(item); }};
const tried = async work => {{ try {{ await work(); }} catch (error) {{ show("failed: " + error.name); }} }};
const button = (name, work) => {{
  const made = document.createElement("button");
  made.textContent = name;
  made.onclick = () => tried(work);
  results.before(made);
}};
const json = async (...args) => (await fetch(...args)).json();
const text = async (...args) => (await fetch(...args)).text();
{script}
</script></body></html>"""


class Step(NamedTuple):
    """One action, as a replay script writes it, and what the snapshot must show afterwards."""

    tool: str
    shows: str
    role: str | None = None
    name: str | None = None
    params: Mapping[str, Any] = {}


Walk = tuple[Step, ...]


def press(name: str, shows: str) -> Step:
    return Step("browser_click", shows, "button", name)


def follow(name: str, shows: str) -> Step:
    return Step("browser_click", shows, "link", name)


def write(field_name: str, words: str, shows: str = "") -> Step:
    return Step("browser_type", shows, "textbox", field_name, {"text": words})


def back(shows: str) -> Step:
    return Step("browser_navigate_back", shows)


@dataclass(frozen=True)
class Case:
    """`path` is the page's. `recorded` are one or more walks; `shuffled` takes other ways through the same states.

    `opens` is what the page shows once it is open. `is_free`: no step depends on another one.
    """

    name: str
    about: str
    opens: str
    handlers: Mapping[str, Handler]
    recorded: tuple[Walk, ...]
    shuffled: Walk
    sockets: Mapping[str, SocketHandler] = field(default_factory=dict)
    is_free: bool = False

    @property
    def path(self) -> str:
        return f"/{self.name}/"


def page_text(name: str, script: str, *, body: str = "", head: str = "", nonce: str = "") -> str:
    title = name.replace("-", " ").capitalize()
    mark = f' nonce="{nonce}"' if nonce else ""
    return _PAGE.format(title=title, head=head, body=body, script=script, nonce=mark)


def html(text: str) -> Answer:
    return Answer(text, "text/html; charset=utf-8")


def page(name: str, script: str, *, body: str = "", head: str = "") -> Handler:
    """A page that is always the same. In its text `OTHER` and `CLOSED` stand for the site's other origins."""

    async def handler(request: Request) -> Answer:
        text = page_text(name, script, body=body, head=head)
        return html(re.sub(r"\b(OTHER|CLOSED)\b", lambda mark: getattr(request.site, mark[0].lower()), text))

    return handler


def fixed(body: bytes | str, kind: str = "text/plain; charset=utf-8", *headers: tuple[str, str]) -> Handler:
    async def handler(_: Request) -> Answer:
        return Answer(body, kind, headers=headers)

    return handler


def as_json(value: object, status: int = 200, *headers: tuple[str, str]) -> Answer:
    return Answer(json.dumps(value), "application/json", status, headers)


def javascript(code: str) -> Handler:
    return fixed(code, "text/javascript")
