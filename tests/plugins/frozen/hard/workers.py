"""Hard cases: workers of every kind."""

from plugins.frozen.hard.case import Case, fixed, javascript, page, press

_DEDICATED = page(
    "dedicated-worker",
    """const worker = new Worker("worker.js");
worker.onmessage = event => show(event.data);
button("Square", () => worker.postMessage({ square: 7 }));
button("Load", () => worker.postMessage({ load: "parts.json" }));""",
)
_WORKER = """importScripts("library.js");
onmessage = async ({ data }) => {
  if (data.square) postMessage("square " + squared(data.square));
  else postMessage("loaded " + (await (await fetch(data.load)).json()).length + " parts");
};
postMessage("worker ready");"""

_MODULE = page(
    "module-worker",
    """const worker = new Worker("worker.js", { type: "module" });
worker.onmessage = event => show(event.data);
button("Lazy", () => worker.postMessage("./lazy.js"));
button("Second", () => worker.postMessage("./second.js"));""",
)
_MODULE_WORKER = """import { greeting } from "./greeting.js";
onmessage = async ({ data }) => postMessage((await import(data)).word);
postMessage(greeting);"""

_SHARED = page(
    "shared-worker",
    """const shared = new SharedWorker("shared.js", "board");
shared.port.onmessage = event => show(event.data);
shared.port.start();
button("Count", () => shared.port.postMessage("count"));
button("Fetch", () => shared.port.postMessage("fetch"));""",
)
_SHARED_WORKER = """const board = fetch("board.json").then(answer => answer.json());
onconnect = ({ ports: [port] }) => {
  port.onmessage = async ({ data }) => {
    const notes = await board;
    if (data === "count") port.postMessage(`notes: ${notes.length}`);
    else port.postMessage("note: " + await (await fetch(`note?title=${notes[1]}`)).text());
  };
  port.postMessage("joined");
};"""

_SERVICE = page(
    "service-worker",
    """navigator.serviceWorker.addEventListener("message", event => show(event.data));
tried(async () => {
  await navigator.serviceWorker.register("worker.js", { scope: "./" });
  await navigator.serviceWorker.ready;
  if (!navigator.serviceWorker.controller) {
    await new Promise(done => navigator.serviceWorker.addEventListener("controllerchange", done, { once: true }));
  }
  show("controlled");
});
button("Invented", async () => show("invented: " + await text("invented")));
button("Changed", async () => show("changed: " + await text("changed")));
button("Stored", async () => show("stored: " + await text("stored.txt")));""",
)
_SERVICE_WORKER = """addEventListener("install", event => event.waitUntil((async () => {
  await (await caches.open("v1")).addAll(["stored.txt", "also.txt"]);
  await skipWaiting();
})()));
addEventListener("activate", event => event.waitUntil(clients.claim()));
const answer = async request => {
  const path = new URL(request.url).pathname;
  if (path.endsWith("/invented")) return new Response("by the worker");
  if (path.endsWith("/changed")) return new Response((await (await fetch(request)).text()).toUpperCase());
  return await caches.match(request) ?? fetch(request);
};
addEventListener("fetch", event => event.respondWith(answer(event.request)));"""

CASES = (
    Case(
        "dedicated-worker",
        "a worker with a library, which fetches",
        "worker ready",
        {
            "/dedicated-worker/": _DEDICATED,
            "/dedicated-worker/worker.js": javascript(_WORKER),
            "/dedicated-worker/library.js": javascript("const squared = n => n * n;"),
            "/dedicated-worker/parts.json": fixed('["wheel", "axle", "frame"]', "application/json"),
        },
        ((press("Square", "square 49"), press("Load", "loaded 3 parts")),),
        (press("Load", "loaded 3 parts"), press("Square", "square 49"), press("Load", "loaded 3 parts")),
        is_free=True,
    ),
    Case(
        "module-worker",
        "a worker of modules, which imports more of them later",
        "good morning",
        {
            "/module-worker/": _MODULE,
            "/module-worker/worker.js": javascript(_MODULE_WORKER),
            "/module-worker/greeting.js": javascript('export const greeting = "good morning";'),
            "/module-worker/lazy.js": javascript('export const word = "lazy word";'),
            "/module-worker/second.js": javascript('export { word } from "./third.js";'),
            "/module-worker/third.js": javascript('export const word = "third word";'),
        },
        ((press("Lazy", "lazy word"), press("Second", "third word")),),
        (press("Second", "third word"), press("Lazy", "lazy word")),
        is_free=True,
    ),
    Case(
        "shared-worker",
        "a shared worker, which fetches",
        "joined",
        {
            "/shared-worker/": _SHARED,
            "/shared-worker/shared.js": javascript(_SHARED_WORKER),
            "/shared-worker/board.json": fixed('["tea", "nails"]', "application/json"),
            "/shared-worker/note": fixed("a box of nails"),
        },
        ((press("Count", "notes: 2"), press("Fetch", "note: a box of nails")),),
        (press("Fetch", "note: a box of nails"), press("Count", "notes: 2")),
        is_free=True,
    ),
    Case(
        "service-worker",
        "a service worker with a cache, which answers by itself and changes answers",
        "controlled",
        {
            "/service-worker/": _SERVICE,
            "/service-worker/worker.js": javascript(_SERVICE_WORKER),
            "/service-worker/changed": fixed("from the server"),
            "/service-worker/stored.txt": fixed("kept since the installation"),
            "/service-worker/also.txt": fixed("kept too"),
        },
        (
            (
                press("Invented", "invented: by the worker"),
                press("Changed", "changed: FROM THE SERVER"),
                press("Stored", "stored: kept since the installation"),
            ),
        ),
        (
            press("Stored", "stored: kept since the installation"),
            press("Changed", "changed: FROM THE SERVER"),
            press("Invented", "invented: by the worker"),
        ),
        is_free=True,
    ),
)
