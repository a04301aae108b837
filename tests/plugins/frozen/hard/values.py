"""Hard cases: requests that are never the same twice."""

import json
import time
from hashlib import sha256

from helpers.network.served_sites import Answer, Request
from plugins.frozen.hard.case import Case, Step, as_json, fixed, html, page, page_text, press

_RANDOM = page(
    "random-parameters",
    """const ask = async (name, query) => show(name + ": " + await text(name + "?" + query));
button("Stamp", () => ask("stamp", "_=" + Date.now()));
button("Identity", () => ask("identity", "id=" + crypto.randomUUID() + "&page=2"));
button("Fraction", () => ask("fraction", "r=" + Math.random()));
button("Date", () => ask("date", "since=" + encodeURIComponent(new Date().toISOString())));
button("Two pages", async () => {
  for (const number of [1, 2]) await ask("numbered", `page=${number}&_=${Date.now()}`);
});""",
)


async def _numbered(request: Request) -> Answer:
    return Answer(f"page {request.query['page']}")


_DEVICE = page(
    "device-number",
    """const key = localStorage.device ??= crypto.randomUUID();
const send = async (name, event) => show(name + ": " + await text("events", {
  method: "POST",
  headers: { "X-Device": key, "Content-Type": "application/json" },
  body: JSON.stringify({
    event, device: key, at: Date.now(), when: new Date().toISOString(), trace: { id: crypto.randomUUID() },
  }),
}));
button("Opened", () => send("opened", "open"));
button("Moored", () => send("moored", "moor"));""",
)


async def _events(request: Request) -> Answer:
    return Answer(f"noted {json.loads(request.body)['event']}")


_GRAPH = page(
    "graphql",
    """const queries = {
  ships: "query Ships($limit: Int) { ships(limit: $limit) { name } }",
  berths: "query Berths($limit: Int) { berths(limit: $limit) { number } }",
};
const sha256 = words => crypto.subtle.digest("SHA-256", new TextEncoder().encode(words));
const digest = async words => [...new Uint8Array(await sha256(words))]
  .map(byte => byte.toString(16).padStart(2, "0")).join("");
const ask = async (name, limit) => {
  const post = body => json("graphql", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const base = {
    variables: { limit }, extensions: { persistedQuery: { version: 1, sha256Hash: await digest(queries[name]) } },
  };
  let answer = await post(base);
  if (answer.errors) {
    show("unknown query");
    answer = await post({ ...base, query: queries[name] });
  }
  show(name + " " + JSON.stringify(answer.data));
};
button("Ships", () => ask("ships", 2));
button("Berths", () => ask("berths", 2));
button("One ship", () => ask("ships", 1));""",
)


async def _graphql(request: Request) -> Answer:
    message = json.loads(request.body)
    known = request.session.setdefault("queries", {})
    key = message["extensions"]["persistedQuery"]["sha256Hash"]
    if "query" in message and sha256(message["query"].encode()).hexdigest() == key:
        known[key] = message["query"]
    if key not in known:
        return as_json({"errors": [{"message": "PersistedQueryNotFound"}]})
    limit = message["variables"]["limit"]
    if "berths" in known[key]:
        return as_json({"data": {"berths": [4, 7][:limit]}})
    return as_json({"data": {"ships": ["Aurora", "Borealis"][:limit]}})


def _as_json_lines(name: str, values: list[object]) -> str:
    return f'{name} {{"{name}":{json.dumps(values, separators=(",", ":"))}}}'.replace("{", r"\{").replace("[", r"\[")


def _graph(button: str, name: str, values: list[object]) -> Step:
    # The snapshot quotes what it has to.
    return press(button, _as_json_lines(name, values).replace('"', '\\\\?"'))


_SHIPS, _BERTHS = _graph("Ships", "ships", ["Aurora", "Borealis"]), _graph("Berths", "berths", [4, 7])
_ONE = _graph("One ship", "ships", ["Aurora"])

_LISTS = page(
    "unordered-lists",
    """const mixed = list => list
  .map(value => [Math.random(), value]).sort(([a], [b]) => a - b).map(([, value]) => value);
const post = async (name, value) => show(name + ": " + await text("lists", {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value),
}));
button("Numbers", () => post("numbers", { ids: mixed([1, 2, 3, 4, 5]), sort: ["name", "age"] }));
button("Records", () => post("records", { rows: mixed([{ id: 1, of: "a" }, { id: 2, of: "b" }, { id: 3, of: "c" }]) }));
button("Fields", () => post("fields", Object.fromEntries(mixed([["a", 1], ["b", 2], ["c", 3], ["d", 4]]))));
button("Others", () => post("others", { ids: mixed([6, 7, 8]), sort: ["name", "age"] }));""",
)


async def _lists(request: Request) -> Answer:
    message = json.loads(request.body)
    if "ids" in message:
        return Answer(f"sum {sum(message['ids'])} by {message['sort'][0]}")
    return Answer(f"rows {len(message['rows'])}" if "rows" in message else f"sum {sum(message.values())}")


_NUMBERS, _RECORDS = press("Numbers", "numbers: sum 15 by name"), press("Records", "records: rows 3")
_FIELDS, _OTHERS = press("Fields", "fields: sum 10"), press("Others", "others: sum 21 by name")


async def _clock(_: Request) -> Answer:
    script = f"""const issued = {time.time() * 1000:.0f}, hour = 3600000;
const verdict = now => Math.abs(now - issued) < hour / 2 ? "open" : "expired";
show("offer " + verdict(Date.now()));
button("Again", () => show("again " + verdict(Date.now())));
button("Ticking", () => {{
  const begin = Date.now(), began = performance.now();
  setTimeout(() => {{
    const passed = Date.now() - begin, measured = performance.now() - began;
    show("ticking " + (passed >= 200 && passed < 5000 && Math.abs(passed - measured) < 100));
  }}, 200);
}});
button("In a worker", () => new Promise(done => {{
  const worker = new Worker(URL.createObjectURL(new Blob(["postMessage(Date.now())"])));
  worker.onmessage = event => {{ show("worker " + verdict(event.data)); done(); }};
}}));
button("Paid", async () => show("paid " + await text("pay?until=" + (issued + hour))));"""
    return html(page_text("clock", script))


_AGAIN, _TICKING = press("Again", "again open"), press("Ticking", "ticking true")
_IN_WORKER = press("In a worker", "worker open")

_SCROLL = page(
    "endless-scroll",
    """let cursor = "", busy = false;
const more = async () => {
  if (busy || cursor === null) return;
  busy = true;
  const got = await json(`rows?after=${encodeURIComponent(cursor)}&limit=5`);
  for (const row of got.rows) {
    const line = document.createElement("p");
    line.style.height = "120px";
    line.textContent = row;
    document.querySelector("#rows").append(line);
  }
  cursor = got.next;
  busy = false;
  // An observer tells of a change only.
  watch.disconnect();
  watch.observe(end);
};
const end = document.querySelector("#end");
const look = seen => { if (seen.some(one => one.isIntersecting)) more(); };
const watch = new IntersectionObserver(look, { rootMargin: "200px" });
watch.observe(end);
button("Count", () => show("count " + document.querySelectorAll("#rows p").length));""",
    body='<div id="rows"></div><div id="end" style="height: 1px"></div>',
)


async def _rows(request: Request) -> Answer:
    first = int.from_bytes(bytes.fromhex(request.query["after"] or "00"), "big")
    rows = [f"row {number}" for number in range(first, min(first + 5, 23))]
    return as_json({"rows": rows, "next": f"{first + 5:04x}" if first + 5 < 23 else None})


def _down(shows: str, amount: int = 3000) -> Step:
    return Step("browser_scroll", shows, params={"direction": "down", "amount": amount})


_COUNT = press("Count", "count 23")

_VIEWS = page(
    "history-views",
    """const draw = async () => {
  const name = new URLSearchParams(location.search).get("view") ?? "start";
  show("view " + await text("view/" + name));
};
onpopstate = draw;
for (const name of ["quay", "yard"]) {
  button("To " + name, () => { history.pushState({}, "", "?view=" + name); return draw(); });
}
button("Back", () => history.back());
draw();""",
)


async def _view(request: Request) -> Answer:
    return Answer(request.path.rpartition("/")[2].upper())


_CACHES = page(
    "jsonp",
    """const load = name => new Promise(done => {
  const key = "callback_" + String(Math.random()).slice(2);
  window[key] = value => { show(name + ": " + value); done(); };
  const made = document.createElement("script");
  made.src = `data?name=${name}&callback=${key}&_=${Date.now()}`;
  document.body.append(made);
});
button("Wind", () => load("wind"));
button("Tide", () => load("tide"));""",
)


async def _jsonp(request: Request) -> Answer:
    value = {"wind": "south-west", "tide": "low"}[request.query["name"]]
    return Answer(f"{request.query['callback']}({json.dumps(value)});", "text/javascript")


_STAMP, _IDENTITY = press("Stamp", "stamp: fresh"), press("Identity", "identity: known")
_FRACTION, _DATE = press("Fraction", "fraction: small"), press("Date", "date: today")
_PAGES = press("Two pages", "numbered: page 2")

CASES = (
    Case(
        "random-parameters",
        "cache busters, UUIDs, fractions and dates in addresses",
        "Random parameters",
        {
            "/random-parameters/": _RANDOM,
            "/random-parameters/stamp": fixed("fresh"),
            "/random-parameters/identity": fixed("known"),
            "/random-parameters/fraction": fixed("small"),
            "/random-parameters/date": fixed("today"),
            "/random-parameters/numbered": _numbered,
        },
        ((_STAMP, _IDENTITY, _FRACTION, _DATE, _PAGES),),
        (_PAGES, _DATE, _FRACTION, _STAMP, _IDENTITY, press("Stamp", "stamp: fresh")),
        is_free=True,
    ),
    Case(
        "device-number",
        "a number of the device in headers and bodies, with times and traces",
        "Device number",
        {"/device-number/": _DEVICE, "/device-number/events": _events},
        ((press("Opened", "opened: noted open"), press("Moored", "moored: noted moor")),),
        (press("Moored", "moored: noted moor"), press("Opened", "opened: noted open")),
        is_free=True,
    ),
    Case(
        "graphql",
        "persisted queries by their digests, one address for all",
        "Graphql",
        {"/graphql/": _GRAPH, "/graphql/graphql": _graphql},
        ((_SHIPS, _BERTHS, _ONE),),
        (_BERTHS, _SHIPS, _ONE),
        is_free=True,
    ),
    Case(
        "unordered-lists",
        "bodies whose lists and fields are in no order",
        "Unordered lists",
        {"/unordered-lists/": _LISTS, "/unordered-lists/lists": _lists},
        ((_NUMBERS, _RECORDS, _FIELDS, _OTHERS),),
        (_OTHERS, _FIELDS, _RECORDS, _NUMBERS),
        is_free=True,
    ),
    Case(
        "clock",
        "a page that expires, by its clock and by its worker's",
        "offer open",
        {"/clock/": _clock, "/clock/pay": fixed("in time")},
        ((_AGAIN, _TICKING, _IN_WORKER, press("Paid", "paid in time")),),
        (_IN_WORKER, _TICKING, _AGAIN),
        is_free=True,
    ),
    Case(
        "endless-scroll",
        "rows that are loaded by cursors as the page is scrolled",
        "row 9",
        {"/endless-scroll/": _SCROLL, "/endless-scroll/rows": _rows},
        ((_down("row 14"), _down("row 19"), _down("row 22"), _COUNT),),
        (_down("row 14", 1500), _down("row 19", 1500), _down("row 22", 1500), _COUNT),
    ),
    Case(
        "history-views",
        "views of one document, with the browser's history",
        "view START",
        {"/history-views/": _VIEWS, "/history-views/view/*": _view},
        ((press("To quay", "view QUAY"), press("To yard", "view YARD"), press("Back", "view QUAY")),),
        (press("To yard", "view YARD"), press("To quay", "view QUAY")),
    ),
)
# What an archive cannot answer: the name of the function is in the address and in the body.
BEYOND = (
    Case(
        "jsonp",
        "scripts that call back under a random name",
        "Jsonp",
        {"/jsonp/": _CACHES, "/jsonp/data": _jsonp},
        ((press("Wind", "wind: south-west"), press("Tide", "tide: low")),),
        (press("Tide", "tide: low"), press("Wind", "wind: south-west")),
    ),
)
