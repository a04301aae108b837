"""A website with a log-in form whose sessions end when it is reset."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs

from helpers.browser.hostile_site import Handler, Page, Site, hostile_site

USER, PASSWORD = "emma", "correct-horse"
# A search form comes first on every page.
FORM = """<title>Sign in</title><form action=/search><input name=q></form>
<form method=post action=/login><input type=hidden name=token value=1><label>User <input name=user></label>
<input type=password name=password><button>Log in</button></form>"""
# The password is asked for once the user name is known, without a form element or a new page.
IN_TWO_STEPS = """<title>Sign in</title><input name=q aria-label=Search><input name=username id=user>
<input type=password id=secret hidden><script>
user.onkeydown = event => { if (event.key === "Enter") secret.hidden = false; };
secret.onkeydown = event => {
  if (event.key === "Enter" && user.value === "emma" && secret.value === "correct-horse") {
    localStorage.token = "token-1"; secret.remove();
  }
};</script>"""
ONLY_A_PASSWORD = """<title>Token</title><form method=post action=/token><input type=password name=password></form>"""


@contextmanager
def login_site() -> Iterator[Site]:
    """Serve the site: `/` greets who is logged in, a POST to `/reset` ends all sessions."""
    numbers = itertools.count(1)
    sessions: set[str] = set()

    def admitted(handler: Handler) -> None:
        session = f"session-{next(numbers)}"
        sessions.add(session)
        handler.send(b"", 302, Location="/", Set_Cookie=f"session={session}; Path=/; HttpOnly")

    def login(handler: Handler) -> None:
        if parse_qs(handler.body.decode()) == {"token": ["1"], "user": [USER], "password": [PASSWORD]}:
            admitted(handler)
        else:
            handler.send(FORM.encode())

    def token(handler: Handler) -> None:
        if not handler.body:
            handler.send(ONLY_A_PASSWORD.encode())
        elif parse_qs(handler.body.decode()) == {"password": [PASSWORD]}:
            admitted(handler)
        else:
            handler.send(b"<title>Forbidden</title>No", 403)

    def home(handler: Handler) -> None:
        known = handler.headers.get("Cookie", "").partition("session=")[2] in sessions
        handler.send(b"<title>Home</title><h1>Welcome, Emma</h1>" if known else b"<title>Home</title>Who are you?")

    def reset(handler: Handler) -> None:
        sessions.clear()
        handler.send(b"", 204)

    pages: dict[str, Page] = {"/": home, "/login": login, "/token": token, "/two": IN_TWO_STEPS, "/reset": reset}
    pages |= {"/empty": "<title>Nothing</title>", "/unkept": FORM.replace("action=/login", "action=/nothing")}
    with hostile_site(pages | {"/nothing": "<title>In</title>"}) as running:
        yield running
