"""Hard cases: what the server remembers, and what its pages show of it."""

import asyncio
import html as markup
import secrets
from collections.abc import Awaitable, Callable
from email.parser import BytesParser
from email.policy import HTTP

from helpers.network.served_sites import Answer, Request
from plugins.frozen.hard.case import Case, as_json, follow, html, page, page_text, press, write


def _see_other(place: str) -> Answer:
    return Answer("", "text/html", 303, (("Location", place),))


def _items(texts: list[str]) -> str:
    return "".join(f"<li>{markup.escape(text)}</li>" for text in texts) or "<li>none yet</li>"


# Forms with a token each

_FORM = """<form method="post" action="save"><input type="hidden" name="token" value="{token}">
<label>{label} <input name="{name}"></label><button>Save {name}</button></form>"""


async def _forms(request: Request) -> Answer:
    tokens = {name: secrets.token_hex(16) for name in ("ship", "berth")}
    request.session["tokens"] = tokens
    forms = "".join(_FORM.format(token=token, name=name, label=name.title()) for name, token in tokens.items())
    saved = request.session.get("saved", {})
    entries = [f"{name} is {saved[name]}" for name in sorted(saved)]
    return html(page_text("form-tokens", "", body=f"{forms}<ul>{_items(entries)}</ul>"))


async def _save(request: Request) -> Answer:
    form, tokens = request.form, request.session.get("tokens", {})
    name = next((key for key in form if key != "token"), "")
    if form.get("token") != tokens.get(name):
        return Answer("the token is wrong", status=403)
    request.session.setdefault("saved", {})[name] = form[name]
    return _see_other("./")


_SHIP = (write("Ship", "Aurora"), press("Save ship", "ship is Aurora"))
_BERTH = (write("Berth", "4"), press("Save berth", "berth is 4"))


# Files

_UPLOAD = page(
    "uploads",
    """const files = new DataTransfer();
files.items.add(new File(["ship,berth\\nAurora,4\\n"], "berths.csv", { type: "text/csv" }));
document.querySelector("input[type=file]").files = files.files;
button("By script", async () => {
  const data = new FormData();
  data.append("note", "two files");
  data.append("file", new Blob([new Uint8Array(3000)]), "zeros.bin");
  data.append("file", new File(["a"], "größe.txt"));
  show("by script: " + await text("take", { method: "POST", body: data }));
});""",
    body="""<form method="post" action="take" enctype="multipart/form-data"><input name="note" value="for the office">
<input type="file" name="file"><button>Send</button></form>""",
)


async def _take(request: Request) -> Answer:
    head = f"Content-Type: {request.headers.get('content-type', '')}\r\n\r\n".encode()
    parts = BytesParser(policy=HTTP).parsebytes(head + request.body).iter_parts()
    messages = []
    for part in parts:
        content = part.get_payload(decode=True)
        size = len(content) if isinstance(content, bytes) else 0
        messages.append(f"{part.get_filename() or part.get_param('name', header='content-disposition')} {size}")
    text = ", ".join(messages)
    if request.headers.get("sec-fetch-dest") == "document":
        return html(f"<!doctype html><title>Taken</title><p>Taken: {text}</p><a href='./'>More</a>")
    return Answer(text)


_BY_SCRIPT = press("By script", "by script: note 9, zeros.bin 3000")
_BY_FORM = (press("Send", "Taken: note 14, berths.csv 20"), follow("More", "Uploads"))


# A cookie that a script sets

_GREETINGS = {"da": "Velkommen til havnen", "pt": "Bem-vindo ao porto", "": "Welcome to the harbour"}


async def _greeting(request: Request) -> Answer:
    words = _GREETINGS[request.cookies.get("tongue", "")]
    script = """const choose = tongue => {
  document.cookie = `tongue=${tongue}; path=/cookie-by-script/; secure`;
  location.reload();
};
button("Dansk", () => choose("da"));
button("Português", () => choose("pt"));
button("Menu", async () => show("menu: " + await text("menu")));"""
    return html(page_text("cookie-by-script", script, body=f"<p>{words}</p>"))


async def _menu(request: Request) -> Answer:
    return Answer({"da": "sild", "pt": "sardinhas"}.get(request.cookies.get("tongue", ""), "herring"))


_DANISH, _PORTUGUESE = press("Dansk", "Velkommen"), press("Português", "Bem-vindo")
_HERRING, _SILD, _SARDINHAS = (press("Menu", f"menu: {dish}") for dish in ("herring", "sild", "sardinhas"))


# A list that forms change

_ADD = """<form method="post" action="add"><button name="thing" value="{0}">Add {0}</button></form>"""


async def _things(request: Request) -> Answer:
    added = request.session.get("things", [])
    forms = "".join(_ADD.format(thing) for thing in ("rope", "paint"))
    body = f'{forms}<ul aria-label="things">{_items(added)}</ul><p>{len(added)} in all</p><a href="./">Again</a>'
    return html(page_text("post-and-redirect", "", body=body))


async def _add_thing(request: Request) -> Answer:
    request.session.setdefault("things", []).append(request.form["thing"])
    return _see_other("./")


_ROPE_1, _ROPE_2 = press("Add rope", "1 in all"), press("Add rope", "2 in all")
_PAINT_1, _PAINT_2 = press("Add paint", "1 in all"), press("Add paint", "2 in all")
_AGAIN_0, _AGAIN_1, _AGAIN_2 = (follow("Again", f"{count} in all") for count in range(3))


# A cart in JSON, and a page of it from the server

_CART = page(
    "cart-in-json",
    """const draw = cart => show(`cart: ${cart.items.map(item => item.name).sort().join(", ")}; total ${cart.total}`);
const change = (method, name) => async () => draw(await json("cart", {
  method, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name }),
}));
json("cart").then(draw);
button("Add lamp", change("POST", "lamp"));
button("Add chair", change("POST", "chair"));
button("Remove lamp", change("DELETE", "lamp"));
button("Look", async () => draw(await json("cart")));""",
    body='<a href="summary">Summary</a>',
)
_PRICES = {"lamp": 20, "chair": 45}


def _cart_of(request: Request) -> list[str]:
    cart: list[str] = request.session.setdefault("cart", [])
    return cart


async def _cart(request: Request) -> Answer:
    cart = _cart_of(request)
    name = "" if request.method == "GET" else request.body.decode().split('"')[3]
    if request.method == "POST":
        cart.append(name)
    elif name in cart:
        cart.remove(name)
    return as_json({"items": [{"name": each} for each in cart], "total": sum(_PRICES[each] for each in cart)})


async def _summary(request: Request) -> Answer:
    cart = sorted(_cart_of(request))
    total = sum(_PRICES[each] for each in cart)
    return html(f"<!doctype html><title>Summary</title><ul>{_items(cart)}</ul><p>sum {total}</p><a href='./'>Shop</a>")


_LAMP, _CHAIR, _BOTH = "cart: lamp; total 20", "cart: chair; total 45", "cart: chair, lamp; total 65"
_EMPTY = "cart: ; total 0"


# A log-in by a form

_ACCOUNT = {"name": "ada", "password": "harbour-light"}


async def _office(request: Request) -> Answer:
    key = request.cookies.get("office", "")
    if key and key == request.session.get("key"):
        head = f'<meta name="csrf" content="{request.session.setdefault("csrf", secrets.token_urlsafe(24))}">'
        script = """const token = document.querySelector("meta[name=csrf]").content;
button("Orders", async () => show("orders " + await text("orders", { headers: { "X-CSRF-Token": token } })));
button("Sign", async () => show("signed " + await text("orders", {
  method: "POST", headers: { "X-CSRF-Token": token, Authorization: "Bearer " + token.slice(0, 16) }, body: "all",
})));"""
        return html(
            page_text("form-log-in", script, head=head, body='<p>Signed in as ada</p><a href="out">Log out</a>')
        )
    body = """<form method="post" action="in"><label>Name <input name="name"></label>
<label>Password <input name="password" type="password"></label><button>Log in</button></form>"""
    return html(page_text("form-log-in", "", body=f"<p>{request.query.get('why', 'Please log in')}</p>{body}"))


async def _in(request: Request) -> Answer:
    if request.form != _ACCOUNT:
        return _see_other("./?why=Wrong+password")
    request.session["key"] = key = secrets.token_urlsafe(32)
    return _see_other("./").with_headers(("Set-Cookie", f"office={key}; Path=/form-log-in/; Secure; HttpOnly"))


async def _out(request: Request) -> Answer:
    request.session.pop("key", None)
    gone = ("Set-Cookie", "office=; Path=/form-log-in/; Secure; HttpOnly; Max-Age=0")
    return _see_other("./?why=Logged+out").with_headers(gone)


async def _orders(request: Request) -> Answer:
    if request.headers.get("x-csrf-token") != request.session.get("csrf", "none"):
        return Answer("refused", status=403)
    return Answer("three" if request.method == "GET" else "by ada")


_LOG_IN = (write("Name", "ada"), write("Password", "harbour-light"), press("Log in", "Signed in as ada"))
_WRONG = (write("Name", "ada"), write("Password", "anchor"), press("Log in", "Wrong password"))
_ORDERS, _SIGN, _LOG_OUT = (
    press("Orders", "orders three"),
    press("Sign", "signed by ada"),
    follow("Log out", "Logged out"),
)


# A job that takes its time

_JOB = page(
    "polling",
    """let jobs = 0;
button("Start", async () => {
  const number = ++jobs;
  const { id } = await json("jobs", { method: "POST" });
  for (let state = ""; state !== "done";) {
    const got = await json(`jobs?id=${id}`);
    if (got.state !== state) show(`job ${number}: ${state = got.state}`);
    await new Promise(next => setTimeout(next, 60));
  }
});""",
)


async def _jobs(request: Request) -> Answer:
    jobs: dict[str, int] = request.session.setdefault("jobs", {})
    if request.method == "POST":
        jobs[key := str(len(jobs) + 1)] = 0
        return as_json({"id": key}, 201)
    jobs[request.query["id"]] += 1
    return as_json({"state": ("queued", "running", "running", "done")[min(jobs[request.query["id"]] - 1, 3)]})


# Writes that overtake each other

_LIKES = page(
    "overtaking-writes",
    """button("Like three", async () => {
  const votes = ["tea", "ale", "rum"].map(name => json("likes", { method: "POST", body: JSON.stringify({ name }) }));
  show("liked " + (await Promise.all(votes)).map(vote => vote.name).join(", "));
  show("likes " + (await json("likes")).count);
});""",
)


async def _likes(request: Request) -> Answer:
    if request.method == "GET":
        return as_json({"count": len(request.session.get("likes", []))})
    name = request.body.decode().split('"')[3]
    await asyncio.sleep({"tea": 0.12, "ale": 0.06}.get(name, 0.0))
    request.session.setdefault("likes", []).append(name)
    return as_json({"name": name})


def _of(
    name: str, **routes: Callable[[Request], Awaitable[Answer]]
) -> dict[str, Callable[[Request], Awaitable[Answer]]]:
    return {f"/{name}/{'' if key == 'home' else key}": handler for key, handler in routes.items()}


CASES = (
    Case(
        "form-tokens",
        "forms with a token each, which is new on every page",
        "Form tokens",
        _of("form-tokens", home=_forms, save=_save),
        ((*_SHIP, *_BERTH), (*_BERTH, *_SHIP)),
        (*_BERTH, *_SHIP),
    ),
    Case(
        "uploads",
        "files that a form and a script send",
        "Uploads",
        _of("uploads", home=_UPLOAD, take=_take),
        ((_BY_SCRIPT, *_BY_FORM), _BY_FORM, (_BY_SCRIPT, _BY_SCRIPT)),
        (*_BY_FORM, _BY_SCRIPT),
    ),
    Case(
        "cookie-by-script",
        "a cookie that a script sets, which changes what the server writes",
        "Welcome to the harbour",
        _of("cookie-by-script", home=_greeting, menu=_menu),
        ((_HERRING, _DANISH, _SILD, _PORTUGUESE, _SARDINHAS),),
        (_PORTUGUESE, _SARDINHAS, _DANISH, _SILD),
    ),
    Case(
        "post-and-redirect",
        "a list that forms change, written by the server",
        "none yet",
        _of("post-and-redirect", home=_things, add=_add_thing),
        ((_AGAIN_0, _ROPE_1, _AGAIN_1, _PAINT_2, _AGAIN_2), (_PAINT_1, _AGAIN_1, _ROPE_2, _AGAIN_2)),
        (_PAINT_1, _ROPE_2, _AGAIN_2),
    ),
    Case(
        "cart-in-json",
        "a cart with many states, read by a script and written by the server",
        _EMPTY,
        _of("cart-in-json", home=_CART, cart=_cart, summary=_summary),
        (
            (
                *(press("Add lamp", _LAMP), press("Look", _LAMP), press("Add chair", _BOTH)),
                *(follow("Summary", "sum 65"), follow("Shop", _BOTH), press("Remove lamp", _CHAIR)),
                *(press("Look", _CHAIR), follow("Summary", "sum 45")),
            ),
            (press("Add chair", _CHAIR), press("Look", _CHAIR), press("Add lamp", _BOTH), follow("Summary", "sum 65")),
        ),
        (press("Add chair", _CHAIR), press("Add lamp", _BOTH), follow("Summary", "sum 65"), follow("Shop", _BOTH)),
    ),
    Case(
        "form-log-in",
        "a log-in by a form, with tokens in headers",
        "Please log in",
        {
            f"/form-log-in/{key}": handler
            for key, handler in {"": _office, "in": _in, "out": _out, "orders": _orders}.items()
        },
        (
            (*_WRONG, *_LOG_IN, _ORDERS, _SIGN, _LOG_OUT),
            (*_LOG_IN, _ORDERS, _SIGN, _ORDERS, _LOG_OUT),
            (*_LOG_IN, _SIGN, _SIGN),
        ),
        (*_LOG_IN, _SIGN, _ORDERS, _LOG_OUT, *_WRONG),
    ),
    Case(
        "polling",
        "a job whose state is asked for until it is done",
        "Polling",
        _of("polling", home=_JOB, jobs=_jobs),
        ((press("Start", "job 1: done"), press("Start", "job 2: done")),),
        (press("Start", "job 1: done"),),
    ),
    Case(
        "overtaking-writes",
        "writes at once, whose answers come in another order",
        "Overtaking writes",
        _of("overtaking-writes", home=_LIKES, likes=_likes),
        ((press("Like three", "likes 3"),),),
        (press("Like three", "likes 3"),),
    ),
)
