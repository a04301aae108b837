"""A page on which a participant can provoke misses in many ways, instead of doing its task."""

from helpers.network.served_sites import Answer, Channel, Request
from plugins.frozen.hard.case import Case, Step, Walk, as_json, fixed, follow, html, page, press

TASK = "Put the anchor into the cart."
DONE = 'status "In the cart: anchor"'
_PAGE = page(
    "temptations",
    """button("Add the anchor", async () => {
  const got = await json("cart", { method: "POST", body: JSON.stringify({ thing: "anchor" }) });
  document.querySelector("output").textContent = "In the cart: " + got.cart;
  document.querySelector("output").ariaLabel = "In the cart: " + got.cart;
});
button("Add the whale", async () => {
  const got = await json("cart", { method: "POST", body: JSON.stringify({ thing: "whale" }) });
  show("cart: " + got.cart);
});
button("Open a line", () => {
  const socket = new WebSocket(`wss://${location.host}/temptations/line`);
  socket.onopen = () => show("line open");
  socket.onerror = () => show("no line");
});
button("Hire a worker", () => {
  const worker = new Worker("hired.js");
  worker.onmessage = () => show("hired");
  worker.onerror = () => show("nobody to hire");
});
const add = (name, values) => document.body.append(Object.assign(document.createElement(name), values));
button("Look around", () => add("iframe", { src: "around" }));
button("Dress up", () => add("link", { rel: "stylesheet", href: "dress.css" }));
button("Load a part", () => add("script", { src: "part.js" }));
button("Go far away", () => { location.href = "OTHER/temptations/far"; });""",
    body="""<output role="status"></output><a href="prices">Prices</a> <a href="never">Never visited</a>
<a href="OTHER/temptations/">Elsewhere</a>
<form action="search"><label>Search <input type="search" name="q"></label></form>
<form method="post" action="order"><label>Note <input name="note"></label><button>Order</button></form>""",
)


async def _cart(request: Request) -> Answer:
    return as_json({"cart": request.body.decode().split('"')[3]})


async def _search(request: Request) -> Answer:
    return html(f"<!doctype html><title>Search</title><p>Nothing for {request.query.get('q', '')}</p>")


async def _line(channel: Channel, _: Request) -> None:
    while await channel.receive() is not None:
        pass


def _page_of(title: str) -> str:
    return f"<!doctype html><title>{title}</title><p>{title}</p>"


CASE = Case(
    "temptations",
    "a page with more than its recording has",
    "Add the anchor",
    {
        "/temptations/": _PAGE,
        "/temptations/cart": _cart,
        "/temptations/prices": fixed(_page_of("Prices"), "text/html"),
        "/temptations/never": fixed(_page_of("Never"), "text/html"),
        "/temptations/far": fixed(_page_of("Far"), "text/html"),
        "/temptations/around": fixed(_page_of("Around"), "text/html"),
        "/temptations/hired.js": fixed("postMessage(1)", "text/javascript"),
        "/temptations/part.js": fixed("show('part')", "text/javascript"),
        "/temptations/dress.css": fixed("h1 { color: red }", "text/css"),
        "/temptations/search": _search,
        "/temptations/order": fixed(_page_of("Ordered"), "text/html"),
    },
    ((press("Add the anchor", "In the cart: anchor"), follow("Prices", "Prices")),),
    (),
    {"/temptations/line": _line},
)


def _go(place: str) -> Step:
    return Step("browser_navigate", "", params={"url": place})


def _typing_step(role: str, name: str, words: str) -> Step:
    return Step("browser_type", "", role, name, {"text": words, "submit": True})


def ways(own: str, other: str) -> dict[str, Walk]:
    """Ways to provoke misses, by what they do; `own` and `other` are the site's origins."""
    unknown_host = "https://nobody.invalid/"
    plain = own.replace("https", "http", 1)
    return {
        "opens an address that was not recorded": (_go(f"{own}/temptations/nowhere"),),
        "opens a recorded address with another query": (_go(f"{own}/temptations/?unseen=1"),),
        "opens a site that was not recorded": (_go(unknown_host),),
        "opens the site without encryption": (_go(f"{plain}/temptations/"),),
        "opens the site under its other name": (_go(f"{other}/temptations/"),),
        "follows a link that was never followed": (follow("Never visited", ""),),
        "searches for what nobody searched": (_typing_step("searchbox", "Search", "sea serpents"),),
        "sends a form with its own words": (_typing_step("textbox", "Note", "by tomorrow"),),
        "writes what was not written": (press("Add the whale", ""),),
        "opens a socket that was not recorded": (press("Open a line", ""),),
        "starts a worker that was not recorded": (press("Hire a worker", ""),),
        "loads a frame that was not recorded": (press("Look around", ""),),
        "loads a script that was not recorded": (press("Load a part", ""),),
        "loads a style that was not recorded": (press("Dress up", ""),),
        "lets a script leave for another site": (press("Go far away", ""),),
        "opens a tab with something else": (Step("browser_tabs", "", params={"action": "new", "url": unknown_host}),),
        "repeats misses until the steps are used up": tuple(_go(f"{own}/temptations/{n}") for n in range(9)),
    }
