// Records where the browser goes: every request for a document of a page or frame (redirects included) at the moment it is
// sent, and which of them became the shown document. Loaded by Playwright's MCP server into its own process (option
// `browser.initPage`), where no page has access. Read by `requests.py`, and judged by `judge.episode.blame`.
//
// It appends to a file in the working folder, so the evidence includes documents that never arrive, and survives a hanging
// tab and a killed browser or server.

"use strict";
const fs = require("fs");
const { createHash } = require("crypto");

const LOG = "navigations.jsonl";
const MAX_URL_CHARS = 2000;
// After this many lines only changes of a frame's origin are recorded, so that a page that reloads itself cannot fill the
// disk; after the second limit nothing more, and a line says so.
const MAX_LINES = 2000;
const MAX_LINES_IN_ALL = 20000;

// How long to wait for the status of a dead browser.
const EXIT_MS = 1000;

// When the browser dies, its tabs, frames and requests end as well. That it is gone is known by then.
const DEATH_MS = 250;

const recorded = new WeakMap();
const watched = new WeakSet();
// By browser: those before its current context.
const killsBefore = new WeakMap();

// Without the fragment, which is not requested. Different addresses are never treated as equal.
function address(url) {
  const whole = url.split("#", 1)[0];
  if (whole.length <= MAX_URL_CHARS) return whole;
  return `${whole.slice(0, MAX_URL_CHARS)}#${createHash("sha256").update(whole).digest("hex")}`;
}

const origin = url => url.split("/", 3).join("/");

function frameOf(request) {
  try {
    return request.frame();
  } catch {
    // The first request of a new tab has no frame yet, and belongs to a main frame by definition.
    return null;
  }
}

// How many processes the kernel of this machine has killed because memory ran out; null if it does not say.
function memoryKills() {
  try {
    return Number(/^oom_kill (\d+)$/m.exec(fs.readFileSync("/proc/vmstat", "latin1"))[1]);
  } catch {
    return null;
  }
}

// Whether SIGKILL ended the browser's process; false if it was not started here, or is not known to have ended.
async function wasKilled() {
  const browser = globalThis[Symbol.for("wabe.browser")];
  if (!browser) return false;
  if (browser.exitCode === null && browser.signalCode === null) {
    await new Promise(resolve => {
      browser.once("exit", resolve);
      setTimeout(resolve, EXIT_MS).unref();
    });
  }
  // The process may be a shell script that has started the browser, and reports its end in the usual way: 128 + 9.
  return browser.signalCode === "SIGKILL" || browser.exitCode === 137;
}

class Recorder {
  constructor(context) {
    this.context = context;
    this.lines = 0;
    this.count = 0;
    this.ids = new WeakMap();
    this.unplaced = new WeakMap();
    // Navigations that the server was asked to make, by page.
    this.leads = new WeakMap();
    // The address of a frame's answered request, which is about to become its document.
    this.answered = new WeakMap();
    this.origins = new WeakMap();
    this.muted = new WeakSet();
    // Nothing may be written into the file of the next context.
    context.on("close", () => { this.isClosed = true; });
    context.on("request", request => request.isNavigationRequest() && this.requested(request));
    context.on("response", response => {
      const frame = response.request().isNavigationRequest() && frameOf(response.request());
      if (frame) this.answered.set(frame, address(response.url()));
    });
    context.on("requestfailed", request => request.isNavigationRequest() && this.failed(request));
    context.on("serviceworker", worker => {
      this.append({ event: "worker", frame: this.id(worker), url: address(worker.url()) });
      worker.on("close", () => this.ended({ event: "gone", frame: this.id(worker) }));
    });
  }

  id(object) {
    if (!this.ids.has(object)) this.ids.set(object, ++this.count);
    return this.ids.get(object);
  }

  append(part) {
    if (this.isClosed || this.lines > MAX_LINES_IN_ALL) return;
    this.lines += 1;
    const line = this.lines > MAX_LINES_IN_ALL ? { event: "overflow" } : part;
    fs.appendFileSync(LOG, JSON.stringify(line) + "\n");
  }

  // Whatever ended with the browser was still open when it died, and that is what matters here.
  ended(part) {
    const write = () => this.context.browser().isConnected() && this.append(part);
    // The second step, because a busy machine may run the first one before it has read that the browser is gone.
    setTimeout(() => setImmediate(write), DEATH_MS);
  }

  attach(page) {
    // What the server does on behalf of the judge or the participant is marked here, where pages cannot do the same.
    this.mark(page, "goto", ([url]) => ({ cause: "goto", url: address(new URL(url).href) }));
    this.mark(page, "goBack", () => ({ cause: "back" }));
    page.on("framenavigated", frame => this.navigated(page, frame));
    page.on("framedetached", frame => this.ids.has(frame) && this.ended({ event: "gone", frame: this.id(frame) }));
    page.on("close", () => this.ended({ event: "closed", tab: this.id(page) }));
    // A new tab whose document arrived before this.
    if (/^https?:/.test(page.url())) this.shown(page, page.mainFrame(), page.url());
  }

  mark(page, method, lead) {
    const go = page[method];
    page[method] = async (...values) => {
      try {
        this.leads.set(page, lead(values));
        if (method === "goto") this.append({ event: "goto", tab: this.id(page), ...this.leads.get(page) });
      } catch {
        // Not an address.
      }
      try {
        return await go.apply(page, values);
      } finally {
        this.leads.delete(page);
      }
    };
  }

  requested(request) {
    const frame = frameOf(request);
    const previous = request.redirectedFrom();
    const url = address(request.url());
    // A separate number for the redirects of a new tab's first request.
    let id = previous ? this.unplaced.get(previous) : undefined;
    let cause = "page";
    if (id === undefined && !frame) id = -(++this.count);
    if (id !== undefined) {
      this.unplaced.set(request, id);
    } else {
      id = this.id(frame);
      this.answered.delete(frame);
      cause = this.causeOf(frame, url, previous);
      if (this.isMuted(frame, url, cause)) return;
    }
    this.append({
      event: "request", url, request: this.id(request), frame: id, tab: frame ? this.id(frame.page()) : undefined,
      is_redirect: previous !== null || undefined,
      in_frame: (frame && frame.parentFrame() !== null) || undefined,
      cause: cause === "page" ? undefined : cause,
      referrer: request.headers().referer && origin(request.headers().referer),
    });
  }

  causeOf(frame, url, previous) {
    if (frame.parentFrame() !== null || previous !== null) return "page";
    const lead = this.leads.get(frame.page());
    // A page's script may navigate at the same time.
    if (!lead || (lead.url && lead.url !== url)) return "page";
    this.leads.delete(frame.page());
    return lead.cause;
  }

  isMuted(frame, url, cause) {
    const isSame = this.origins.get(frame) === origin(url);
    this.origins.set(frame, origin(url));
    const isMuted = isSame && cause === "page" && this.lines >= MAX_LINES;
    if (isMuted) this.muted.add(frame);
    else this.muted.delete(frame);
    return isMuted;
  }

  // Also called when a page changes its address without a new document, or shows an empty, `data:` or `blob:` document:
  // those are made by a document recorded already.
  navigated(page, frame) {
    const url = frame.url();
    const isAnswer = this.answered.get(frame) === address(url);
    // An error page takes the place of the document.
    if (!isAnswer && !url.startsWith("chrome-error:")) {
      // It is in the tab's history now.
      const isPage = frame.parentFrame() === null && /^https?:/.test(url);
      if (isPage && this.lines < MAX_LINES) this.append({ event: "renamed", url: address(url), tab: this.id(page) });
      return;
    }
    this.answered.delete(frame);
    this.shown(page, frame, url);
  }

  shown(page, frame, url) {
    if (this.muted.has(frame)) return;
    const in_frame = frame.parentFrame() !== null || undefined;
    this.append({ event: "document", url: address(url), frame: this.id(frame), tab: this.id(page), in_frame });
  }

  // Answers without a document, downloads, and requests that the page itself replaced.
  failed(request) {
    const frame = frameOf(request);
    if (frame && this.muted.has(frame)) return;
    const id = this.unplaced.get(request) ?? this.id(frame);
    this.ended({ event: "ended", frame: id, request: this.id(request), url: address(request.url()) });
  }
}

exports.default = async ({ page }) => {
  // The context, not the page, sees the first request of a new tab.
  const context = page.context();
  const browser = context.browser();
  if (!recorded.has(context)) {
    recorded.set(context, new Recorder(context));
    killsBefore.set(browser, memoryKills());
  }
  recorded.get(context).attach(page);
  if (watched.has(browser)) return;
  watched.add(browser);
  browser.once("disconnected", async () => {
    let log;
    try {
      // At once: a browser that only gets another context has another log soon, into which nothing of this belongs.
      log = fs.openSync(LOG, "a");
    } catch {
      // The folder is gone: an ordinary end.
      return;
    }
    // A crash has another signal, or a status. No page can send this one, but the kernel does if a page takes all memory.
    const isKilled = await wasKilled();
    const before = killsBefore.get(browser);
    const is_killed = (isKilled && before !== null && memoryKills() === before) || undefined;
    // Everything before is recorded by now. The judge waits for this line before it decides whose fault it is.
    fs.writeSync(log, JSON.stringify({ event: "lost", is_killed }) + "\n");
    fs.closeSync(log);
  });
};
