// The bodies of requests that Playwright does not report: Blobs, beacons with Blobs, and cloned requests. Only the
// browser's protocol has them, so each page gets a session of its own, and each worker one inside that.

"use strict";

const NETWORK = { maxPostDataSize: 1, maxTotalBufferSize: 2000000, maxResourceBufferSize: 500000 };
// The protocol tells of a request in the same moment as Playwright. The size of a body follows when it is sent.
const MATCH_MS = 500;
const SIZE_MS = 1000;
const MAX_SIZES = 200;
// With several sources, only what arrived within this time can be told apart.
const ORDER_MS = 50;

const delay = ms => new Promise(done => setTimeout(done, ms));
const hasBody = method => method !== "GET" && method !== "HEAD";
const key = (method, url) => `${method} ${url.split("#", 1)[0]}`;

// One source of events: the page, or a worker.
class Source {
  constructor(send, maxBytes) {
    this.send = send;
    this.maxBytes = maxBytes;
    this.sizes = new Map();
    this.waiting = new Map();
  }

  // The bytes of a body, or nothing if it is too large or gone.
  async read(requestId) {
    const size = this.sizes.get(requestId) ?? await new Promise(done => {
      this.waiting.set(requestId, done);
      setTimeout(done, SIZE_MS);
    });
    this.waiting.delete(requestId);
    // Not before: a page can make a Blob larger than this machine's memory.
    if (!(size <= this.maxBytes())) return undefined;
    const { postData, base64Encoded } = await this.send("Network.getRequestPostData", { requestId });
    return Buffer.from(postData, base64Encoded ? "base64" : "utf8");
  }

  // May come before or after the request itself.
  sent({ requestId, headers }) {
    const length = Object.entries(headers).find(([name]) => name.toLowerCase() === "content-length");
    if (!length) return;
    this.sizes.set(requestId, Number(length[1]));
    if (this.sizes.size > MAX_SIZES) this.sizes.delete(this.sizes.keys().next().value);
    this.waiting.get(requestId)?.(Number(length[1]));
  }
}

// Of one page. Playwright and the protocol report the same requests, each in its own order, without a common id.
class Bodies {
  constructor(maxBytes) {
    this.maxBytes = maxBytes;
    this.asked = new Map();
    this.found = new Map();
    this.sources = new Set();
    this.children = new Map();
    this.calls = new Map();
    this.count = 0;
  }

  async start(page) {
    this.session = await page.context().newCDPSession(page);
    const { session } = this;
    session.on("Target.attachedToTarget", event => this.attached(event));
    session.on("Target.detachedFromTarget", ({ sessionId }) => this.detached(sessionId));
    session.on("Target.receivedMessageFromTarget", event => this.received(event));
    const source = this.add((method, params) => session.send(method, params));
    session.on("Network.requestWillBeSent", event => this.began(source, event));
    session.on("Network.requestWillBeSentExtraInfo", event => source.sent(event));
    await Promise.all([
      session.send("Network.enable", NETWORK),
      // Not `flatten`: Playwright drops the messages of sessions that it does not know.
      session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: true, flatten: false }),
    ]);
  }

  add(send) {
    const source = new Source(send, this.maxBytes);
    this.sources.add(source);
    return source;
  }

  attached({ sessionId }) {
    const send = (method, params = {}) => new Promise((done, failed) => {
      const id = ++this.count;
      this.calls.set(id, { sessionId, done, failed });
      const message = JSON.stringify({ id, method, params });
      this.session.send("Target.sendMessageToTarget", { sessionId, message }).catch(failed);
    });
    this.children.set(sessionId, this.add(send));
    send("Network.enable", NETWORK).catch(() => {});
    send("Runtime.runIfWaitingForDebugger").catch(() => {});
  }

  detached(sessionId) {
    this.sources.delete(this.children.get(sessionId));
    this.children.delete(sessionId);
    for (const [id, call] of this.calls) if (call.sessionId === sessionId) this.settle(id, { error: { message: "gone" } });
  }

  received({ sessionId, message }) {
    const { id, method, params, ...answer } = JSON.parse(message);
    const source = this.children.get(sessionId);
    if (id !== undefined) this.settle(id, answer);
    else if (source && method === "Network.requestWillBeSent") this.began(source, params);
    else if (source && method === "Network.requestWillBeSentExtraInfo") source.sent(params);
  }

  settle(id, { error, result }) {
    const call = this.calls.get(id);
    this.calls.delete(id);
    if (error) call?.failed(new Error(error.message));
    else call?.done(result);
  }

  began(source, { requestId, request }) {
    if (!hasBody(request.method)) return;
    const isHidden = request.hasPostData && !request.postDataEntries?.length;
    this.note(this.found, request, { source, bytes: isHidden ? source.read(requestId).catch(() => {}) : Promise.resolve() });
  }

  // The body of a request that Playwright reports now; nothing if it is not known for certain.
  of(method, url) {
    if (!hasBody(method)) return Promise.resolve();
    return new Promise(done => this.note(this.asked, { method, url }, { done }));
  }

  note(side, { method, url }, entry) {
    const name = key(method, url);
    const waiting = side.get(name);
    if (waiting) waiting.push(entry);
    else side.set(name, [entry]);
    // Within one source both orders are the same.
    if (this.sources.size === 1) this.match(name, true);
    else void delay(ORDER_MS).then(() => this.match(name, this.asked.get(name)?.length === 1 && this.found.get(name)?.length === 1));
    void delay(MATCH_MS).then(() => this.giveUp(side, name, entry));
  }

  match(name, isCertain) {
    const asked = this.asked.get(name) ?? [], found = this.found.get(name) ?? [];
    while (asked.length && found.length) {
      const [first, second] = [asked.shift(), found.shift()];
      if (isCertain) void second.bytes.then(first.done);
      else first.done();
    }
    this.tidy(name);
  }

  giveUp(side, name, entry) {
    const waiting = side.get(name) ?? [];
    if (!waiting.includes(entry)) return;
    side.set(name, waiting.filter(each => each !== entry));
    entry.done?.();
    this.tidy(name);
  }

  tidy(name) {
    for (const side of [this.asked, this.found]) if (!side.get(name)?.length) side.delete(name);
  }
}

module.exports = { Bodies, hasBody };
