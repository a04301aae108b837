// What caused each request, download and message: the act of the participant, bound at the moment at which the effect
// begins, and handed on to redirects and to the documents that it loads. One table for all records of a context. Runs in
// the MCP server's process; `requests.cjs`, `request_sockets.cjs` and `downloads.cjs` ask it, `settle/recorder.js` reports
// the acts.
//
// A document begins with the cause that loaded it and keeps it until an act on one of its own elements. What it sends has
// the cause that it has then. Causes `by`: `site`, an element of the site; `editor`, a form, a link or a button inside an
// editing host; `inserted`, anything of an attack; `browser`, an address that the participant or the judge opened;
// `unknown`.
//
// After an act that disqualifies, all documents of the context are followed (`settle/page.js`), because one can act for
// another: what begins in one then has the cause of the act known to have scheduled it. Otherwise it is unknown, and
// says what may have caused it (`after`).
//
// Acts and requests are told by the same session of the protocol, in their order. Its requests and Playwright's have no
// common id, so they are matched by method, address, body and order.

"use strict";
const fs = require("fs");
const { delay } = require("./settle/timing.cjs");

const KEY = Symbol.for("wabe.causes");
const REQUESTS = Symbol.for("wabe.requests");
// More than a participant can cause, so that a page cannot fill the disk.
const MAX_NOTES = 20000;
const MAX_KNOWN = 5000;
const MAX_WINDOWS = 100;
const MATCH_MS = 500;
// What workers send, and what other sessions tell, is told this much later than what scheduled it ran.
const LATE_MS = 500;
// How often a new tab is looked for, in as many times half a second.
const MAX_TAB_LOOKS = 8;
// How long a click on a text in an editor counts as the cause: it usually places the caret. Nothing is followed after it.
const BRIEF_MS = 300;
// The events of one act follow each other as fast as this.
const SAME_ACT_MS = 100;

const disqualifying = ({ by, after }) => (by === "editor" || by === "inserted" ? by : after);
const key = (method, url) => `${method} ${url.split("#", 1)[0]}`;
// Both reports have the same text for this.
const plain = body => body && /^[\t\n\r\x20-\x7e]*$/.test(body) ? body : undefined;

// Not that of a service worker, nor, at first, a new tab's.
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
    // The first act that disqualified.
    this.tainted = undefined;
    this.sessions = new Map();
    this.logs = new Set();
    this.last = { at: -Infinity };
    this.bound = new WeakMap();
    // By id: frames, each with its document; documents, which the browser's cache may bring back, and the causes of those
    // that are requested; what opened tabs, and those of them that have not been followed yet; and the addresses of
    // sockets, each with a page.
    this.frames = new Lately();
    this.documents = new Lately();
    this.loading = new Lately();
    this.openers = new Lately();
    this.unfollowed = new Lately();
    this.sockets = new Lately();
    // By address of a socket: the causes of what is being sent.
    this.sends = new Lately();
    // By address: the cause of what is to be saved, its frame, and how many downloads of it have not begun; and by id, the
    // causes of those that have.
    this.saved = new Lately();
    this.downloads = new Lately();
    // Windows that scripts, links and forms open: the page, and the cause. Some are refused.
    this.windows = [];
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
    const opener = this.frames.get(openerFrameId), page = opener?.root ?? (this.frames.has(openerId) ? openerId : undefined);
    const isFrom = ({ root }) => page === undefined || root === page;
    const told = this.windows.filter(isFrom).map(({ cause }) => cause);
    this.windows = this.windows.filter(each => !isFrom(each));
    const cause = told.length ? this.together(told) : this.lately(opener ? [opener] : this.framesOf(page));
    for (const tabs of [this.openers, this.unfollowed]) tabs.set(targetId, this.isOpening ? this.start : cause);
  }

  // Reads one session of a page: `frameOf` gives the frame of a context of the `world` in which acts are heard.
  async follow(page, session, { event, world }, frameOf) {
    await this.started.catch(() => {});
    session.on("Runtime.bindingCalled", ({ name, payload, executionContextId }) => {
      if (name === event) this.told(page, frameOf(executionContextId), JSON.parse(payload));
    });
    this.sessions.set(session, world);
    this.event = event;
    session.on("close", () => this.sessions.delete(session));
    if (this.tainted) await this.followActs(session, world);
    session.on("Page.frameAttached", ({ frameId, parentFrameId }) => this.frame(frameId, parentFrameId));
    session.on("Page.frameNavigated", ({ frame }) => this.navigated(frame));
    session.on("Page.frameDetached", ({ frameId, reason }) => { if (reason !== "swap") this.frames.delete(frameId); });
    // Told before they begin, in the order of the acts.
    session.on("Page.frameRequestedNavigation", ({ frameId, url }) => {
      const frame = this.frame(frameId);
      frame.wanted = { url, cause: this.now(frame.root) };
    });
    session.on("Page.windowOpen", () => {
      const root = this.roots.get(page);
      this.windows = [...this.windows.slice(1 - MAX_WINDOWS), { root, cause: this.now(root) }];
    });
    session.on("Network.requestWillBeSent", report => this.sent(report));
    session.on("Network.webSocketCreated", ({ url }) => this.sockets.set(url, page));
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
    this.unfollowed.delete(root);
    page.on("close", () => {
      for (const [id, frame] of this.frames) if (frame.root === root) this.frames.delete(id);
    });
  }

  followActs(session, worldName) {
    const source = "globalThis.wabeFollows = true; globalThis.wabe?.follow();";
    return session.send("Page.addScriptToEvaluateOnNewDocument", { source, worldName, runImmediately: true }).catch(() => {});
  }

  frame(id, parentId) {
    const known = this.frames.get(id);
    if (known) return known;
    const parent = this.frames.get(parentId);
    // An empty document, of the one around it or of the one that opened the tab.
    const cause = parent ? this.lately([parent]) : this.openers.get(id) ?? this.start;
    const frame = { root: parent?.root ?? id, document: this.document(cause), isNew: !parent };
    // Where a new tab leads, which is told as late as this.
    if (!parent) frame.document.recent.push({ cause, at: performance.now() + MAX_TAB_LOOKS * MATCH_MS });
    this.frames.set(id, frame);
    return frame;
  }

  // `first`: what loaded it, or the last act before the first one that disqualified; `acts`: those after it, by their
  // numbers; `running`: what is known to run in it; `recent`: the same lately; `isSpoilt`:
  // whether something that disqualifies ran.
  document(cause) {
    return { now: cause, first: cause, acts: new Lately(), running: undefined, recent: [], isSpoilt: Boolean(disqualifying(cause)) };
  }

  navigated({ id, parentId, loaderId }) {
    const frame = this.frame(id, parentId);
    frame.document = this.documents.get(loaderId) ?? this.document(this.loading.get(loaderId) ?? this.lately(this.framesOf(frame.root)));
    this.documents.set(loaderId, frame.document);
  }

  // The cause of what begins in a frame now. `isNew`: a new tab, in which nothing has been heard yet.
  in({ document: { now, first, running }, isNew }) {
    return this.tainted ? running ?? (isNew ? first : this.unknown()) : now;
  }

  // The same of what is told later, and may be of any of the frames.
  lately(frames) {
    const documents = frames.map(frame => frame.document);
    if (!this.tainted) return this.together(documents.map(({ now }) => now));
    const since = performance.now() - LATE_MS;
    const recent = documents.flatMap(each => each.recent.filter(({ at }) => at > since).map(({ cause }) => cause));
    return this.either([...recent, ...documents.flatMap(({ running = [] }) => running)]);
  }

  either(causes) {
    return causes.length ? this.together(causes) : this.unknown();
  }

  // The cause of what begins now in one of a page's frames.
  now(root) {
    return this.either(this.framesOf(root).flatMap(({ document }) => this.tainted ? document.running ?? [] : document.now));
  }

  // All of a page, or of any page.
  framesOf(root) {
    return [...this.frames.values()].filter(frame => root === undefined || frame.root === root);
  }

  ofPage(page) {
    return this.lately(this.framesOf(this.roots.get(page)));
  }

  // Of what a socket sends or receives: a worker's is not told by a session of the page. Several pages may have sockets of
  // one address, and tell of them in another order.
  ofSocket(page, url, isSent = false) {
    if (this.tainted && !this.sockets.has(url)) return this.unknown();
    const since = performance.now() - LATE_MS, sends = isSent ? (this.sends.get(url) ?? []).filter(({ at }) => at > since) : [];
    if (!sends.length) return this.ofPage(page);
    this.sends.set(url, sends.slice(1));
    return this.together(sends.map(({ cause }) => cause));
  }

  // The one cause that several have; unknown if they differ and one of them disqualifies.
  together(causes) {
    const [first = this.start, ...others] = causes;
    if (others.every(({ id }) => id === first.id)) return first;
    const bad = causes.find(disqualifying);
    return bad ? this.unknown(bad) : causes.reduce((one, other) => (other.id > one.id ? other : one));
  }

  unknown(bad = this.tainted) {
    return { id: bad?.id ?? 0, by: "unknown", after: bad && disqualifying(bad) };
  }

  sent({ requestId, loaderId, frameId, type, request: { method, url, postData }, redirectResponse }) {
    if (redirectResponse || !frameId) return;
    const isNavigation = requestId === loaderId && type === "Document", frame = this.frame(frameId);
    // A link or a form of another frame may lead to it.
    const { wanted } = frame, isTold = wanted && key(method, wanted.url) === key(method, url);
    const cause = !isNavigation ? this.in(frame) : isTold ? wanted.cause : this.lately(this.framesOf(frame.root));
    if (isNavigation) frame.wanted = undefined;
    if (isNavigation) this.loading.set(loaderId, cause);
    this.match(this.reported, key(method, url), { cause, body: plain(postData), loaderId: isNavigation ? loaderId : undefined });
  }

  of(request) {
    if (!this.bound.has(request)) this.bound.set(request, this.begin(request));
    return this.bound.get(request);
  }

  begin(request) {
    const previous = request.redirectedFrom();
    if (previous) return this.of(previous);
    const opened = this.context[REQUESTS]?.isJudges(request) ? this.note({ by: "browser" }) : undefined;
    const page = pageOf(request), known = page && (!this.tainted || this.roots.has(page)) ? this.unreported(request, page) : null;
    const found = new Promise(done => this.match(this.asked, key(request.method(), request.url()), { done, body: plain(request.postData()) }));
    return Promise.race([found, delay(MATCH_MS)]).then(report => {
      if (opened && report?.loaderId) this.loading.set(report.loaderId, opened);
      return opened ?? report?.cause ?? known ?? this.ofTab(request);
    });
  }

  // What no session reports may be a worker's, if it is not a navigation.
  unreported(request, page) {
    return this.tainted && !request.isNavigationRequest() ? this.unknown() : this.ofPage(page);
  }

  // Of the first request of a new tab, which may not be announced before it is answered; of a service worker, any page may
  // be the cause.
  async ofTab(request) {
    for (let tries = 0; tries < MAX_TAB_LOOKS && !request.serviceWorker() && !this.roots.has(pageOf(request)); tries++) await delay(MATCH_MS);
    const root = this.roots.get(pageOf(request));
    const isNewTab = !root && request.isNavigationRequest() && !request.serviceWorker();
    const causes = isNewTab ? [...this.unfollowed.values()] : [this.openers.get(root) ?? []].flat();
    return causes.length || this.tainted ? this.either(causes) : this.ofPage(null);
  }

  match(side, name, entry) {
    side.set(name, [...side.get(name) ?? [], entry]);
    void delay(MATCH_MS).then(() => this.forget(side, name, entry));
    const { body } = entry, fits = each => each.body === body || !each.body || !body;
    const [asked = [], reported = []] = [this.asked.get(name)?.filter(fits), this.reported.get(name)?.filter(fits)];
    if (!asked.length || !reported.length) return;
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

  // Of a download without a navigation, which may begin long after the click on its link. It is told twice.
  ofDownload(guid, frameId, url) {
    if (!this.downloads.has(guid)) this.downloads.set(guid, this.begunDownload(frameId, url.split("#", 1)[0]));
    return this.downloads.get(guid);
  }

  begunDownload(frameId, url) {
    const frame = this.frames.get(frameId), known = this.saved.get(url);
    // Another address is one to which the site redirected.
    const open = known ? [known] : [...this.saved.values()].filter(each => each.open > 0 && each.frameId === frameId);
    const cause = open.length ? this.together(open.map(each => each.cause)) : this.unknown();
    if (open.every(each => each.cause.id === cause.id)) open.slice(0, 1).forEach(each => { each.open -= 1; });
    if (known || disqualifying(cause)) return cause;
    if (!this.tainted) return frame ? frame.document.now : this.ofPage(null);
    return frame && !frame.document.isSpoilt ? cause : this.unknown();
  }

  saves(frameId, url, cause) {
    const before = this.saved.get(url);
    // The events of one act.
    if (before?.cause === cause) return;
    this.saved.set(url, { cause: before ? this.together([before.cause, cause]) : cause, frameId, open: (before?.open ?? 0) + 1 });
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

  // `runs`: the number of the act that scheduled what runs now; 0 for what the document did first, -1 if it is unknown, and
  // -2 if nothing runs.
  told(page, frameId, { runs, ...told }) {
    const frame = this.frames.get(frameId);
    if (frame) frame.isNew = false;
    if (told.by) return this.acted(page, frameId, told);
    if (!frame) return;
    if (told.saved) return this.saves(frameId, told.saved, this.in(frame));
    if (told.sent) {
      const sends = this.sends.get(told.sent) ?? [];
      return void this.sends.set(told.sent, [...sends.slice(1 - MAX_WINDOWS), { cause: this.in(frame), at: performance.now() }]);
    }
    const { document } = frame, [at, { running }] = [performance.now(), document];
    if (running) document.recent = [...document.recent.filter(each => each.cause !== running && each.at > at - LATE_MS), { cause: running, at }];
    document.running = runs === -2 ? undefined : runs === 0 ? document.first : document.acts.get(runs) ?? this.unknown();
    document.isSpoilt ||= Boolean(document.running && disqualifying(document.running));
  }

  // A tool of the site is called, of which the page's script is not told: it runs until the function that this returns is
  // called, and what begins later without being followed is not its effect.
  called(page, frameId) {
    this.acted(page, frameId, { by: "site" });
    const { cause } = this.last, frame = this.frames.get(frameId);
    return () => { if (frame?.document.running === cause) this.told(page, frameId, { runs: -2 }); };
  }

  // Called when the participant acts on an element; `number` is that of the document, `saved` the address that a link saves.
  acted(page, frameId, { by, act: number, isBrief, saved }) {
    const frame = this.frames.get(frameId);
    // Of an unknown frame, what disqualifies is an act in each.
    const actedIn = frame ? [frame] : by === "site" ? [] : this.framesOf(this.roots.get(page));
    if (!actedIn.length) return;
    const at = performance.now(), { last } = this;
    const isSame = last.document === frame?.document && last.cause?.by === by && at - last.at < SAME_ACT_MS;
    const cause = isSame ? last.cause : this.note({ by });
    this.last = { document: frame?.document, cause, at };
    if (saved) this.saves(frameId, saved, cause);
    if (by !== "site" && !isBrief && !this.tainted) {
      this.tainted = cause;
      for (const each of this.framesOf()) [each.isNew, each.document.first] = [false, each.document.now];
      for (const [session, world] of this.sessions) void this.followActs(session, world);
      // A new tab's page is running before it has a session.
      void this.context.addInitScript(`dispatchEvent(new CustomEvent("${this.event}-follow", { detail: true }))`).catch(() => {});
    }
    for (const { document } of actedIn) {
      Object.assign(document, { now: cause, running: cause });
      document.isSpoilt ||= by !== "site";
      document.acts.set(number, cause);
      if (by !== "site" && isBrief) setTimeout(() => { if (document.now === cause) document.now = { ...cause, by: "site" }; }, BRIEF_MS);
    }
  }
}

exports.causesOf = context => (context[KEY] ??= new Causes(context));
