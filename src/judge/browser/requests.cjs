// Records a context's requests and their answers as they happen. Loaded by Playwright's MCP server into its own process
// (option `browser.initPage`), where no page has access. Read by `requests.py`.
//
// Not Playwright's own HAR recording: that keeps every body in memory until it is stopped, cannot be stopped under an
// open dialog, and stamps requests with the page's clock, which settling moves. Here each line is a part of an entry, so
// there is nothing to finish at the end.
//
// It notes what is known about the sender of each request. `senders.py` decides from that.

"use strict";
const { isUtf8 } = require("buffer");
const { createHash } = require("crypto");
const { causesOf } = require("./causes.cjs");
const { Bodies, hasBody } = require("./request_bodies.cjs");
const { Downloads } = require("./request_downloads.cjs");
const { LOG, Log } = require("./request_log.cjs");
const { Sockets } = require("./request_sockets.cjs");
const { soon } = require("./settle/timing.cjs");

const KEY = Symbol.for("wabe.requests");
const LEFT_OUT = new Set(["stylesheet", "script", "image", "font", "media", "texttrack", "manifest"]);
const READ = /^(?:application|text)\/(?:[\w.-]+\+)?json\b|^application\/x-www-form-urlencoded\b|^text\/plain\b/i;
const MAX_HEADERS = 100;
const MAX_HEADER_CHARS = 8000;
const MAX_HEADERS_CHARS = 65536;
const MAX_STATUS_TEXT_CHARS = 200;
const MAX_ORIGIN_CHARS = 300;
// More origins than any task needs; two are enough to know that there were several.
const MAX_ORIGINS = 100;
// In milliseconds, for headers that the browser reports after an answer has ended.
const HEADERS_LIMIT = 2000;

const encoded = bytes => isUtf8(bytes) ? { text: bytes.toString() } : { base64: bytes.toString("base64") };
const listed = headers => Object.entries(headers).map(([name, value]) => ({ name, value }));

function short(headers) {
  let left = MAX_HEADERS_CHARS;
  return headers.slice(0, MAX_HEADERS)
    .map(({ name, value }) => [name.slice(0, 200), value.slice(0, MAX_HEADER_CHARS)])
    .filter(([name, value]) => (left -= name.length + value.length) >= 0);
}

// What is kept of a request's headers when there is no room for headers.
function fixed(headers) {
  const found = new Map(headers.map(({ name, value }) => [name.toLowerCase(), value]));
  const referer = found.get("referer");
  const kept = {
    origin: found.get("origin")?.slice(0, MAX_ORIGIN_CHARS),
    site: found.get("sec-fetch-site")?.slice(0, 20),
    mode: found.get("sec-fetch-mode")?.slice(0, 20),
    dest: found.get("sec-fetch-dest")?.slice(0, 30),
    referer: referer ? origin(referer) : undefined,
    type: found.get("content-type")?.slice(0, 200),
    length: found.get("content-length")?.slice(0, 16),
  };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
}

const origin = url => {
  try {
    return new URL(url).origin.slice(0, MAX_ORIGIN_CHARS);
  } catch {
    return "null";
  }
};

// The size of a request's body, once it is sent.
async function sizeOf(request) {
  const headers = await request.headersArray().catch(() => []);
  return Number(headers.find(({ name }) => name.toLowerCase() === "content-length")?.value);
}

const frameOf = request => {
  try {
    return request.frame();
  } catch {
    // A service worker's, or the first request of a new tab.
    return null;
  }
};

const isFrameOfPage = (request, page) => {
  const frame = frameOf(request);
  return frame !== null && frame === page.mainFrame();
};

// The document in a frame: its origin, `isSure` unless others could have put it there, and whether it is a `srcdoc`.
function documentOf(frame) {
  const url = frame.url();
  if (/^(?:https?|blob):/.test(url)) return { origin: origin(url), isSure: true };
  const parent = frame.parentFrame();
  // Even in a sandbox, its content is written in the parent document.
  if (url === "about:srcdoc" && parent) return { ...documentOf(parent), isSrcdoc: true };
  // An empty document belongs to its opener, usually its parent.
  if (/^(?:about:|$)/.test(url)) return { origin: parent ? documentOf(parent).origin : undefined, isSure: false };
  return { origin: "null", isSure: true };
}

// The task's sites, see `judge.records.sites.Site`. Decides only which share of the log a request uses.
class Sites {
  constructor(own) {
    this.origins = new Set();
    this.hosts = [];
    for (const entry of own) {
      if (entry.includes("://")) this.origins.add(origin(entry));
      else if (URL.canParse(`http://${entry}`)) this.hosts.push(new URL(`http://${entry}`));
    }
  }

  holds(address) {
    if (this.origins.has(origin(address))) return true;
    if (!URL.canParse(address)) return false;
    const { hostname, port } = new URL(address);
    return this.hosts.some(host => port === host.port && (hostname === host.hostname || hostname.endsWith(`.${host.hostname}`)));
  }

  sent(sender) {
    return sender !== undefined && sender !== "null" && this.holds(sender);
  }
}

class Recorder {
  constructor(context) {
    this.context = context;
    this.causes = causesOf(context).writeTo(LOG);
    this.slots = new WeakMap();
    // The origins of all documents that were ever open in this context.
    this.origins = new Set();
    // Addresses that the judge itself is opening, by page; `null` stands for any.
    this.opening = new Map();
    // When all headers of a request and its answer are written.
    this.headed = new WeakMap();
    this.bodies = new WeakMap();
    this.downloads = new WeakMap();
    this.sockets = new WeakMap();
    // Immediately: a new tab may open a socket before it can be watched.
    context.on("page", page => this.listen(page));
    // Bodies still being read at that point must not end up in the file of the next context.
    context.on("close", () => { if (this.log) this.log.isClosed = true; });
    context.on("request", request => {
      try {
        this.began(request);
      } catch {
        // Recorded explicitly, because an error here would otherwise lose a request without a trace.
        this.log?.lost();
      }
    });
    context.on("response", response => { this.headed.set(response.request(), this.answered(response).catch(() => {})); });
    context.on("requestfinished", request => void this.ended(request).catch(() => {}));
    context.on("requestfailed", request => this.failed(request));
  }

  // Called once, before the first navigation.
  begin({ sites, limits }) {
    if (this.log) return;
    this.sites = new Sites(sites);
    this.limits = limits;
    this.log = new Log(limits);
  }

  listen(page) {
    if (!this.sockets.has(page)) this.sockets.set(page, new Sockets(page, this));
    return this.sockets.get(page);
  }

  async watch(page) {
    const sockets = this.listen(page);
    page.on("framenavigated", frame => this.sawDocument(frame));
    page.frames().forEach(frame => this.sawDocument(frame));
    // The participant's tool for it uses this method. Pages have their own.
    const goBack = page.goBack.bind(page);
    page.goBack = async options => await this.judgeOpens(page, null, () => goBack(options));
    const bodies = new Bodies(() => this.limits?.bodyBytes ?? 0, (source, event) => sockets.shook(source, event));
    this.bodies.set(page, bodies);
    const downloads = new Downloads(this);
    this.downloads.set(page, downloads);
    await bodies.start(page).then(() => downloads.start(bodies.session)).catch(() => this.bodies.delete(page));
  }

  failed(request) {
    this.write(request, { failure: request.failure()?.errorText ?? "failed", ended: Date.now() });
    if (request.isNavigationRequest()) this.downloads.get(frameOf(request)?.page())?.replaced(request.url());
  }

  // A request reported only as a download. Which document's link it was is not known.
  beganDownload(guid, url, frameId) {
    if (!this.log || !/^https?:/.test(url)) return undefined;
    const sender = { only: this.onlyOrigin() };
    const slot = this.log.enter(this.sites.holds(url) && this.sites.sent(sender.only), "GET", url.split(/[?#]/, 1)[0]);
    if (!slot) return undefined;
    this.log.write(slot, {
      began: Date.now(),
      method: "GET",
      url: url.slice(0, this.limits.url),
      long_url: url.length > this.limits.url || undefined,
      type: "other",
      sender,
      cause: this.causes.ofDownload(guid, frameId, url),
      fixed: {},
    });
    return Object.assign(slot, { sender });
  }

  // What `opens` navigates the page to is the judge's request: the participant named the address, not a page.
  async judgeOpens(page, url, opens) {
    this.opening.set(page, url && new URL(url).href.split("#", 1)[0]);
    try {
      return await opens();
    } finally {
      this.opening.delete(page);
    }
  }

  fixed(headers) {
    return fixed(headers);
  }

  // Called with the address of the first observed page: the website may have redirected.
  landed(url) {
    if (this.hasLanded || !this.sites) return;
    this.hasLanded = true;
    if (/^https?:/.test(url)) this.sites.origins.add(origin(url));
  }

  sawDocument(frame) {
    const url = frame.url();
    // Sent without scripts, or by one of the other documents.
    if (/^(?:about:|chrome-error:|$)/.test(url) || this.origins.size > MAX_ORIGINS) return;
    this.origins.add(documentOf(frame).origin);
  }

  // The origin of every document of this context, if it is only one.
  onlyOrigin() {
    for (const page of this.context.pages()) page.frames().forEach(frame => this.sawDocument(frame));
    const [only, ...others] = this.origins;
    return others.length || only === "null" ? undefined : only;
  }

  isJudges(request) {
    if (request.method() !== "GET") return false;
    const url = request.url().split("#", 1)[0];
    for (const [page, opened] of this.opening)
      if ((opened === null || opened === url) && isFrameOfPage(request, page)) return true;
    return false;
  }

  // What is known about the sender of a request, in addition to its headers.
  sender(request) {
    const previous = request.redirectedFrom();
    if (previous) {
      const slot = this.slots.get(previous);
      // The same sender, but the redirects count too.
      return { ...slot?.sender, from: slot?.id ?? -1 };
    }
    const worker = request.serviceWorker();
    if (worker) return { document: origin(worker.url()) };
    const isNavigation = request.isNavigationRequest();
    if (isNavigation && this.isJudges(request)) return { judge: true };
    const frame = frameOf(request), only = this.onlyOrigin();
    // A navigation replaces its document, and another one may have asked for it.
    if (isNavigation || !frame) return { navigation: isNavigation || undefined, only };
    const { origin: document, isSure, isSrcdoc } = documentOf(frame);
    // Playwright attributes the requests of workers to the page.
    const isWorkers = frame === frame.page().mainFrame() && frame.page().workers().length > 0;
    return { document, only, guess: (!isSure || isWorkers) || undefined, srcdoc: isSrcdoc };
  }

  isOwn(request, { judge, document, guess, only }, { origin: named, referer }) {
    if (!this.sites.holds(request.url())) return false;
    return Boolean(judge) || this.sites.sent((guess ? undefined : document) ?? named ?? referer ?? only);
  }

  write(request, part) {
    const slot = this.slots.get(request);
    if (slot) this.log.write(slot, part);
  }

  headers(slot, headers) {
    return this.log.hasRoomForHeaders(slot) ? short(headers) : undefined;
  }

  sentHeaders(slot, headers) {
    const kept = this.headers(slot, headers);
    const isCut = !kept || (kept.length < headers.length || headers.some(({ value }) => value.length > MAX_HEADER_CHARS));
    return { headers: kept, headers_cut: isCut || undefined };
  }

  body(slot, bytes) {
    return this.log.hasRoomForBody(slot, bytes.length) ? encoded(bytes) : { dropped: bytes.length };
  }

  sentBody(slot, bytes) {
    return { post: this.body(slot, bytes), digest: createHash("sha256").update(bytes).digest("hex"), size: bytes.length };
  }

  began(request) {
    const url = request.url();
    if (!this.log || !/^https?:/.test(url)) return;
    const method = request.method();
    const post = request.postDataBuffer();
    const found = this.bodyByProtocol(request, post);
    if (LEFT_OUT.has(request.resourceType())) return;
    const provisional = listed(request.headers());
    const sender = this.sender(request), kept = fixed(provisional);
    const slot = this.log.enter(this.isOwn(request, sender, kept), method.slice(0, this.limits.method), url.split(/[?#]/, 1)[0]);
    if (!slot) return;
    this.slots.set(request, Object.assign(slot, { sender }));
    const isAwaited = !post && found !== undefined;
    this.log.write(slot, {
      began: Date.now(),
      method: method.slice(0, this.limits.method),
      long_method: method.length > this.limits.method || undefined,
      url: url.slice(0, this.limits.url),
      long_url: url.length > this.limits.url || undefined,
      type: request.resourceType(),
      frame: (request.isNavigationRequest() && frameOf(request)?.parentFrame() != null) || undefined,
      sender,
      // Follows.
      cause: null,
      fixed: kept,
      ...this.sentHeaders(slot, provisional),
      ...(post ? this.sentBody(slot, post) : {}),
      body_awaited: isAwaited || undefined,
    });
    void this.causes.of(request).then(cause => this.log.write(slot, { cause }));
    if (isAwaited) void found.then(bytes => this.log.write(slot, { body_awaited: false, ...(bytes ? this.sentBody(slot, bytes) : {}) }));
  }

  bodyByProtocol(request, post) {
    const method = request.method();
    if (!hasBody(method)) return undefined;
    const page = frameOf(request)?.page();
    return page && this.bodies.get(page)?.of(method, request.url(), post ? 0 : sizeOf(request));
  }

  async answered(response) {
    const request = response.request(), slot = this.slots.get(request);
    if (!slot) return;
    this.log.write(slot, {
      answered: Date.now(),
      status: response.status(),
      status_text: response.statusText().slice(0, MAX_STATUS_TEXT_CHARS),
      response_headers: this.headers(slot, listed(response.headers())),
      from_worker: response.fromServiceWorker() || undefined,
    });
    // Including cookies and `Sec-Fetch-*`, which the browser adds after the events.
    const [sent, received] = await Promise.all([request.headersArray(), response.headersArray()]);
    this.log.write(slot, { fixed: fixed(sent), ...this.sentHeaders(slot, sent), response_headers: this.headers(slot, received) });
  }

  async ended(request) {
    const slot = this.slots.get(request);
    if (!slot) return;
    const response = await request.response();
    const type = response?.headers()["content-type"] ?? "";
    let body;
    if (READ.test(type) && !(response.status() >= 300 && response.status() < 400)) {
      const announced = Number(response.headers()["content-length"] ?? 0);
      // Bodies cannot be read any more once their page is gone.
      body = this.log.hasRoomForBody(slot, announced)
        ? await response.body().then(bytes => this.body(slot, bytes), () => ({ dropped: announced }))
        : { dropped: announced };
    }
    const ended = Date.now();
    // The trace may be read as soon as nothing in it is pending.
    await soon(Promise.resolve(this.headed.get(request)), HEADERS_LIMIT);
    this.log.write(slot, { ended, body });
  }
}

exports.default = async ({ page }) => {
  // The context, not the page, sees the first request of a new tab.
  const context = page.context();
  await (context[KEY] ??= new Recorder(context)).watch(page);
};
