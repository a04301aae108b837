// Takes the files that pages download, bounded, and notes what is known of who started each. Loaded by Playwright's MCP server
// into its own process (option `browser.initPage`), where no page has access. Read by `downloads.py`, which decides.
//
// A navigation that became a download has a request, whose facts `requests.cjs` knows. Any other was started by the document
// in its frame: a link with `download`, or a script that clicks one. Playwright's handling stays off (`acceptDownloads`):
// it keeps every file until the context ends, whatever its size.

"use strict";
const { createHash } = require("crypto");
const fs = require("fs");
const path = require("path");
const { causesOf } = require("./causes.cjs");

const KEY = Symbol.for("wabe.downloads");
const REQUESTS = Symbol.for("wabe.requests");
const LOG = "downloads.jsonl";
// How often the size of a file being written is looked at: the browser tells it twice a second only.
const LOOK_MS = 25;
// As long as a request is waited for (`settle/settle.cjs`).
const WAIT_MS = 3500;
// A download that a document began may begin after the document is gone, and then another one is in its frame. So the
// documents that a frame had this long ago may have begun it as well.
const MEMORY_MS = 5000;
const MAX_NAVIGATIONS = 100;
const MAX_FRAMES = 1000;
const MAX_ADDRESS_CHARS = 500;
const MAX_NAME_CHARS = 200;

const origin = url => {
  try {
    return new URL(url).origin;
  } catch {
    return "null";
  }
};
// What a `data:` address contains is the file.
const address = url => (url.startsWith("data:") ? url.split(",", 1)[0] : url).slice(0, MAX_ADDRESS_CHARS);
const sizeOf = file => {
  try {
    return fs.statSync(file).size;
  } catch {
    return 0;
  }
};
const digestOf = async file => {
  const hash = createHash("sha256");
  for await (const piece of fs.createReadStream(file)) hash.update(piece);
  return hash.digest("hex");
};

// Which origins the documents of a page's frames have had lately.
class Frames {
  constructor() {
    this.known = new Map();
  }

  async start(page) {
    const session = await page.context().newCDPSession(page);
    session.on("Page.frameNavigated", ({ frame }) => this.saw(frame));
    await session.send("Page.enable");
    const { frameTree } = await session.send("Page.getFrameTree");
    const waiting = [frameTree];
    while (waiting.length) {
      const { frame, childFrames } = waiting.pop();
      if (!this.known.has(frame.id)) this.saw(frame);
      waiting.push(...childFrames ?? []);
    }
  }

  saw({ id, url, securityOrigin }) {
    const now = performance.now();
    const known = this.known.get(id);
    // Nobody can have written into it.
    const before = known?.isEmpty ? undefined : known;
    this.known.delete(id);
    if (this.known.size >= MAX_FRAMES) this.known.delete(this.known.keys().next().value);
    const others = before ? before.others : [];
    if (before && before.origin !== securityOrigin) others.push({ origin: before.origin, until: now });
    const isEmpty = url === "about:blank" && securityOrigin === "://";
    this.known.set(id, { origin: securityOrigin, isEmpty, others: others.slice(-10) });
  }

  // The document in a frame, and the documents that were there a moment ago; `null` for an unknown one.
  originsOf(id) {
    const found = this.known.get(id);
    if (!found) return ["null"];
    const lately = found.others.filter(({ until }) => performance.now() - until < MEMORY_MS);
    return [...new Set([found.origin, ...lately.map(each => each.origin)])];
  }
}

class Downloads {
  constructor(context) {
    this.context = context;
    this.causes = causesOf(context).writeTo(LOG);
    this.frames = new Frames();
    // The last navigations, with what was known about their senders when they began.
    this.navigations = [];
    this.senders = new WeakMap();
    this.active = new Map();
    this.count = 0;
    this.kept = 0;
    context.on("close", () => { this.isClosed = true; });
    context.on("request", request => request.isNavigationRequest() && this.navigates(request));
    // What became a download failed as a navigation.
    context.on("requestfailed", request => request.isNavigationRequest() && this.failed(request));
  }

  // Called once, before the first navigation.
  async begin(page, folder, limits) {
    if (this.session) return;
    Object.assign(this, { folder, limits });
    const own = await this.context.newCDPSession(page);
    const { targetInfo } = await own.send("Target.getTargetInfo");
    this.browserContextId = targetInfo.browserContextId;
    await own.detach();
    this.session = await this.context.browser().newBrowserCDPSession();
    this.session.on("Browser.downloadWillBegin", event => this.began(event));
    this.session.on("Browser.downloadProgress", event => this.progressed(event));
    await this.allow("allowAndName");
  }

  allow(behavior) {
    const { browserContextId, folder } = this;
    return this.session.send("Browser.setDownloadBehavior", { behavior, browserContextId, downloadPath: folder, eventsEnabled: true });
  }

  append(line) {
    if (!this.isClosed) fs.appendFileSync(LOG, JSON.stringify(line) + "\n");
  }

  navigates(request) {
    const previous = request.redirectedFrom();
    const facts = previous ? this.senders.get(previous) : this.context[REQUESTS]?.sender(request);
    this.senders.set(request, facts);
  }

  failed(request) {
    this.navigations = [...this.navigations.slice(1 - MAX_NAVIGATIONS), { request, at: performance.now() }];
  }

  // The navigation that became a download of this address.
  takeNavigation(url) {
    const at = this.navigations.findLastIndex(each => each.request.url() === url && performance.now() - each.at < MEMORY_MS);
    return at < 0 ? undefined : this.navigations.splice(at, 1)[0].request;
  }

  // Files that something may still come of, as long as they are worth waiting for.
  get isBusy() {
    return [...this.active.values()].some(({ began }) => performance.now() - began < WAIT_MS);
  }

  began({ frameId, guid, url, suggestedFilename }) {
    if (++this.count > this.limits.files) {
      if (this.count === this.limits.files + 1) this.append({ left_out: true });
      this.cancel(guid);
      void this.allow("deny").catch(() => {});
      return;
    }
    const navigation = this.takeNavigation(url);
    const cause = this.causes.ofDownload(guid, frameId, url);
    const download = { guid, url, cause, began: performance.now(), navigation, documents: this.frames.originsOf(frameId) };
    this.active.set(guid, download);
    this.append({ guid, name: suggestedFilename.slice(0, MAX_NAME_CHARS), url: address(url) });
    void this.watch(download);
  }

  cancel(guid) {
    void this.session.send("Browser.cancelDownload", { guid, browserContextId: this.browserContextId }).catch(() => {});
  }

  // Files are written under their id, with an ending of the browser's own at first.
  filesOf(guid) {
    try {
      return fs.readdirSync(this.folder).filter(name => name.startsWith(guid)).map(name => path.join(this.folder, name));
    } catch {
      return [];
    }
  }

  async watch(download) {
    while (this.active.has(download.guid) && !this.isClosed && !download.isCut) {
      if (this.filesOf(download.guid).some(file => sizeOf(file) > this.limits.bytes)) this.cut(download);
      await new Promise(done => setTimeout(done, LOOK_MS));
    }
  }

  cut(download) {
    download.isCut = true;
    this.cancel(download.guid);
  }

  progressed({ guid, receivedBytes, totalBytes, state }) {
    const download = this.active.get(guid);
    if (!download) return;
    if (state === "inProgress") {
      if (Math.max(receivedBytes, totalBytes) > this.limits.bytes) this.cut(download);
      return;
    }
    void this.ended(download, state === "completed").catch(() => {}).finally(() => this.active.delete(guid));
  }

  async ended(download, isComplete) {
    const { guid, isCut } = download;
    // The failure of the navigation may be told later.
    download.navigation ??= this.takeNavigation(download.url);
    const [file] = isComplete ? this.filesOf(guid) : [];
    const size = file ? sizeOf(file) : 0;
    const state = isCut || size > this.limits.bytes ? "cut" : file ? "complete" : "failed";
    const cause = download.navigation ? await this.causes.of(download.navigation) : download.cause;
    const facts = { guid, state, cause, ...await this.sender(download) };
    if (state === "complete") Object.assign(facts, { size, sha256: await digestOf(file) });
    const isKept = state === "complete" && this.kept + size <= this.limits.together;
    if (isKept) this.kept += size;
    else for (const each of this.filesOf(guid)) fs.rmSync(each, { force: true });
    this.append({ ...facts, file: isKept ? path.basename(file) : undefined });
  }

  // What is known about who started it, in the form in which `requests.cjs` notes it.
  async sender({ url, navigation, documents }) {
    if (!navigation) {
      if (/^https?:/.test(url)) return { documents, fixed: {}, chain: [url.slice(0, 2000)] };
      return { documents, fixed: url.startsWith("blob:") ? { origin: origin(url) } : {}, chain: [] };
    }
    const chain = [];
    for (let each = navigation; each; each = each.redirectedFrom()) chain.unshift(each.url().slice(0, 2000));
    const response = await navigation.response().catch(() => null);
    const type = response?.headers()["content-type"]?.slice(0, 200);
    const headers = await navigation.headersArray().catch(() => []);
    const fixed = this.context[REQUESTS]?.fixed(headers) ?? {};
    return { sender: this.senders.get(navigation) ?? {}, fixed, chain, type };
  }
}

exports.default = async ({ page }) => {
  // The context, not the page, sees the first request of a new tab.
  const context = page.context();
  const downloads = context[KEY] ??= new Downloads(context);
  await downloads.frames.start(page).catch(() => {});
};
