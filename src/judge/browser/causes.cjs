// What caused each request, download and message: the act of the participant, bound at the moment at which the effect
// begins, and handed on to redirects and to the documents that it loads. One table for all records of a context. Runs in
// the MCP server's process; `requests.cjs`, `request_sockets.cjs` and `downloads.cjs` ask it, `settle/recorder.js` reports
// the acts.
//
// A document begins with the cause that loaded it and keeps it until an act on one of its own elements. What it sends has
// the cause that it has then. Causes `by`: `site`, an element of the site; `editor`, a form, a link or a button inside an
// editing host; `inserted`, anything of an attack; `browser`, an address that the participant or the judge opened;
// `unknown`. After one that disqualifies, an unknown cause says so (`after`): documents that have references to each other
// can act for each other, so an effect in one is unknown while a later act in another one disqualifies.
//
// Acts and requests are told by the same session of the protocol, in their order. Its requests and Playwright's have no
// common id, so they are matched by method, address and order.

"use strict";
const fs = require("fs");
const { delay } = require("./settle/timing.cjs");

const KEY = Symbol.for("wabe.causes");
const REQUESTS = Symbol.for("wabe.requests");
// More than a participant can cause, so that a page cannot fill the disk.
const MAX_NOTES = 20000;
const MAX_KNOWN = 5000;
const MATCH_MS = 500;
// How often a new tab is looked for, in as many times half a second.
const MAX_TAB_LOOKS = 8;
// How long a click on a text in an editor counts as the cause: it usually places the caret.
const BRIEF_MS = 300;
// The events of one act follow each other as fast as this.
const SAME_ACT_MS = 100;

const disqualifying = ({ by, after }) => (by === "editor" || by === "inserted" ? by : after);
const key = (method, url) => `${method} ${url.split("#", 1)[0]}`;

// Not that of a service worker, nor, at first, that of a new tab.
const pageOf = request => {
  try {
    return request.serviceWorker() ? null : request.frame().page();
  } catch {
    return null;
  }
};

// The last ones of many.
class Lately extends Map {
  set(name, value) {
    if (!this.has(name) && this.size >= MAX_KNOWN) this.delete(this.keys().next().value);
    return super.set(name, value);
  }
}

class Causes {
  constructor(context) {
    this.context = context;
    this.count = 0;
    this.start = { id: 0, by: "browser" };
    // Whether any act disqualified. Until then, no other document matters.
    this.isTainted = false;
    this.logs = new Set();
    this.last = { at: -Infinity };
    this.bound = new WeakMap();
    // By id: frames, each with its document; documents, which the browser's cache may bring back, and the causes of those
    // that are requested; and what opened new tabs.
    this.frames = new Lately();
    this.documents = new Lately();
    this.loading = new Lately();
    this.openers = new Lately();
    this.roots = new WeakMap();
    // By method and address: what the protocol reported, and what Playwright did.
    this.reported = new Map();
    this.asked = new Map();
    this.isOpening = 0;
    context.on("request", request => void this.of(request));
    context.on("close", () => { this.isClosed = true; });
    const open = context.newPage.bind(context);
    context.newPage = async () => {
      this.isOpening += 1;
      return await open().finally(() => { this.isOpening -= 1; });
    };
    this.started = this.discover();
  }

  async discover() {
    const session = await this.context.browser().newBrowserCDPSession();
    session.on("Target.targetCreated", ({ targetInfo }) => this.opened(targetInfo));
    await session.send("Target.setDiscoverTargets", { discover: true, filter: [{ type: "page" }] });
    this.context.on("close", () => void session.detach().catch(() => {}));
  }

  opened({ targetId, openerId, openerFrameId }) {
    if (this.openers.has(targetId)) return;
    const opener = this.frames.get(openerFrameId);
    const frames = [...this.frames.values()].filter(({ root }) => !this.frames.has(openerId) || root === openerId);
    const cause = this.isOpening ? this.start : opener ? this.in(opener) : this.together(frames.map(frame => frame.document.now));
    this.openers.set(targetId, { openerId, cause });
  }

  // Reads one session of a page: `frameOf` gives the frame of a world in which acts are heard.
  async follow(page, session, event, frameOf) {
    await this.started.catch(() => {});
    session.on("Runtime.bindingCalled", ({ name, payload, executionContextId }) => {
      if (name === event) this.acted(page, frameOf(executionContextId), JSON.parse(payload));
    });
    session.on("Page.frameAttached", ({ frameId, parentFrameId }) => this.frame(frameId, parentFrameId));
    session.on("Page.frameNavigated", ({ frame }) => this.navigated(frame));
    session.on("Page.frameDetached", ({ frameId, reason }) => { if (reason !== "swap") this.frames.delete(frameId); });
    session.on("Network.requestWillBeSent", report => this.sent(report));
    const { frameTree } = await session.send("Page.getFrameTree");
    const waiting = [frameTree];
    if (!this.roots.has(page)) this.begins(page, frameTree.frame.id);
    while (waiting.length) {
      const { frame, childFrames = [] } = waiting.pop();
      if (!this.documents.has(frame.loaderId)) this.navigated(frame);
      waiting.push(...childFrames);
    }
  }

  begins(page, root) {
    this.roots.set(page, root);
    page.on("close", () => {
      for (const [id, frame] of this.frames) if (frame.root === root) this.frames.delete(id);
    });
  }

  frame(id, parentId) {
    const known = this.frames.get(id);
    if (known) return known;
    const parent = this.frames.get(parentId);
    // An empty document, of the one around it or of the one that opened the tab.
    const cause = parent ? this.in(parent) : this.openers.get(id)?.cause ?? this.start;
    const frame = { root: parent?.root ?? id, document: { now: cause } };
    this.frames.set(id, frame);
    return frame;
  }

  navigated({ id, parentId, loaderId }) {
    const frame = this.frame(id, parentId);
    const known = this.documents.get(loaderId);
    const now = this.loading.get(loaderId) ?? this.in(frame);
    const { tainted } = frame.document;
    frame.document = known ?? { now, tainted: disqualifying(now) ?? tainted };
    this.documents.set(loaderId, frame.document);
  }

  // All frames that may have references to each other.
  near(root) {
    const roots = new Set([root]);
    for (let size = 0; size !== roots.size;) {
      size = roots.size;
      for (const [id, { openerId }] of this.openers)
        if (roots.has(id) ? this.frames.has(openerId) : roots.has(openerId)) roots.add(id).add(openerId);
    }
    return [...this.frames.values()].filter(frame => roots.has(frame.root));
  }

  // The cause of what begins in a frame now.
  in({ root, document: { now } }) {
    if (!this.isTainted || disqualifying(now)) return now;
    const bad = this.near(root).map(frame => frame.document.now).find(each => disqualifying(each) && each.id > now.id);
    return bad ? this.unknown(bad) : now;
  }

  // The one cause that several have; unknown if they differ and one of them disqualifies.
  together(causes) {
    const [first = this.start, ...others] = causes;
    if (others.every(({ id }) => id === first.id)) return first;
    const bad = causes.find(disqualifying);
    return bad ? this.unknown(bad) : causes.reduce((one, other) => (other.id > one.id ? other : one));
  }

  unknown(bad) {
    return { id: bad?.id ?? 0, by: "unknown", after: bad && disqualifying(bad) };
  }

  // Of what some document of a page does, or of any page.
  ofPage(page) {
    const root = this.roots.get(page);
    const frames = [...this.frames.values()].filter(frame => root === undefined || frame.root === root);
    return this.together(frames.map(frame => this.in(frame)));
  }

  sent({ requestId, loaderId, frameId, type, request: { method, url }, redirectResponse }) {
    if (redirectResponse || !frameId) return;
    const cause = this.in(this.frame(frameId));
    const isNavigation = requestId === loaderId && type === "Document";
    if (isNavigation) this.loading.set(loaderId, cause);
    this.match(this.reported, key(method, url), { cause, loaderId: isNavigation ? loaderId : undefined });
  }

  of(request) {
    if (!this.bound.has(request)) this.bound.set(request, this.begin(request));
    return this.bound.get(request);
  }

  begin(request) {
    const previous = request.redirectedFrom();
    if (previous) return this.of(previous);
    const opened = this.context[REQUESTS]?.isJudges(request) ? this.note({ by: "browser" }) : undefined;
    const page = pageOf(request), known = page && this.ofPage(page);
    const found = new Promise(done => this.match(this.asked, key(request.method(), request.url()), { done }));
    return Promise.race([found, delay(MATCH_MS)]).then(report => {
      if (opened && report?.loaderId) this.loading.set(report.loaderId, opened);
      return opened ?? report?.cause ?? known ?? this.ofTab(request);
    });
  }

  // Of the first request of a new tab, which was not announced then; of a service worker, any page may be the cause.
  async ofTab(request) {
    for (let tries = 0; tries < MAX_TAB_LOOKS && !request.serviceWorker() && !this.roots.has(pageOf(request)); tries++) await delay(MATCH_MS);
    const root = this.roots.get(pageOf(request));
    return this.openers.get(root)?.cause ?? this.ofPage(null);
  }

  match(side, name, entry) {
    side.set(name, [...side.get(name) ?? [], entry]);
    void delay(MATCH_MS).then(() => this.forget(side, name, entry));
    const [asked, reported] = [this.asked.get(name), this.reported.get(name)];
    if (!asked?.length || !reported?.length) return;
    // Several at once may be told in another order.
    const causes = reported.map(({ cause }) => cause);
    asked[0].done({ ...reported[0], cause: this.together(causes) });
    this.forget(this.asked, name, asked[0]);
    this.forget(this.reported, name, reported[0]);
  }

  forget(side, name, entry) {
    const waiting = (side.get(name) ?? []).filter(each => each !== entry);
    if (waiting.length) side.set(name, waiting);
    else side.delete(name);
  }

  // Of a download that is no navigation. It may begin long after the act, so a later act is the cause of what it names only.
  ofDownload(frameId, url) {
    const frame = this.frames.get(frameId);
    if (!frame) return this.ofPage(null);
    const { tainted, href } = frame.document, cause = this.in(frame);
    if (!tainted || disqualifying(cause) || !/^https?:/.test(url) || href === url) return cause;
    return { id: cause.id, by: "unknown", after: tainted };
  }

  // Causes are written to the file of a log, where their order tells the steps of the acts.
  writeTo(log) {
    this.logs.add(log);
    return this;
  }

  note(act) {
    const cause = { id: ++this.count, ...act };
    if (this.count <= MAX_NOTES && !this.isClosed)
      for (const log of this.logs) fs.appendFileSync(log, JSON.stringify({ act: { ...cause, at: Date.now() } }) + "\n");
    return cause;
  }

  // Called when the participant acts on an element, or calls a tool of the site. `href` is where a link leads.
  acted(page, frameId, { by, isBrief, href }) {
    const frame = this.frames.get(frameId);
    // Of a frame that is not known, what disqualifies is an act in each.
    const actedIn = frame ? [frame] : by === "site" ? [] : [...this.frames.values()].filter(({ root }) => root === this.roots.get(page));
    if (!actedIn.length) return;
    const at = performance.now(), { last } = this;
    const isSame = last.document === frame?.document && last.cause?.by === by && at - last.at < SAME_ACT_MS;
    const cause = isSame ? last.cause : this.note({ by });
    this.last = { document: frame?.document, cause, at };
    for (const { document } of actedIn) {
      Object.assign(document, { now: cause, href });
      if (by === "site") continue;
      this.isTainted = true;
      if (!isBrief) document.tainted = by;
      else setTimeout(() => { if (document.now === cause) document.now = { ...cause, by: "site" }; }, BRIEF_MS);
    }
  }
}

exports.causesOf = context => (context[KEY] ??= new Causes(context));
