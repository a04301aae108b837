// The bodies of requests that Playwright does not report: Blobs, beacons with Blobs, and cloned requests. Only the
// browser's protocol has them, so each page gets a separate session, and each worker one inside that.

"use strict";

const { HANDSHAKES } = require("./request_sockets.cjs");

const NETWORK = { maxPostDataSize: 1, maxTotalBufferSize: 2000000, maxResourceBufferSize: 500000 };
// The protocol reports a request at the same moment as Playwright. The size of a body follows when it is sent.
const MATCH_MS = 500;
const SIZE_MS = 1000;
// With several sources, only bodies that arrive within this time can be assigned.
const ORDER_MS = 50;

const delay = ms => new Promise(done => setTimeout(done, ms));
const hasBody = method => method !== "GET" && method !== "HEAD";
const key = (method, url) => `${method} ${url.split("#", 1)[0]}`;

// The bytes of a body, or nothing if it is too large or gone. Its size is known when it is sent: a page can make a Blob
// that is larger than this machine's memory.
async function read(send, requestId, size, maxBytes) {
  if (!(await Promise.race([size, delay(SIZE_MS)]) <= maxBytes)) return undefined;
  const { postData, base64Encoded } = await send("Network.getRequestPostData", { requestId });
  return Buffer.from(postData, base64Encoded ? "base64" : "utf8");
}

// Of one page. Playwright and the protocol report the same requests, each in its own order, without a common id.
class Bodies {
  // `shook` is called for the handshakes of web sockets in the same sessions.
  constructor(maxBytes, shook) {
    this.maxBytes = maxBytes;
    this.shook = shook;
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
    const send = (method, params) => session.send(method, params);
    this.sources.add(send);
    session.on("Network.requestWillBeSent", event => this.began(send, event));
    for (const name of HANDSHAKES) session.on(name, event => this.shook("", event));
    await Promise.all([
      session.send("Network.enable", NETWORK),
      // Not `flatten`: Playwright drops the messages of sessions that it does not know.
      session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: true, flatten: false }),
    ]);
  }

  attached({ sessionId }) {
    const send = (method, params = {}) => new Promise((done, failed) => {
      const id = ++this.count;
      this.calls.set(id, { sessionId, done, failed });
      const message = JSON.stringify({ id, method, params });
      this.session.send("Target.sendMessageToTarget", { sessionId, message }).catch(failed);
    });
    this.sources.add(send);
    this.children.set(sessionId, send);
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
    const send = this.children.get(sessionId);
    if (id !== undefined) this.settle(id, answer);
    else if (send && method === "Network.requestWillBeSent") this.began(send, params);
    else if (send && HANDSHAKES.includes(method)) this.shook(sessionId, params);
  }

  settle(id, { error, result }) {
    const call = this.calls.get(id);
    this.calls.delete(id);
    if (error) call?.failed(new Error(error.message));
    else call?.done(result);
  }

  began(send, { requestId, request }) {
    if (!hasBody(request.method)) return;
    const isHidden = request.hasPostData && !request.postDataEntries?.length;
    const bytes = async size => isHidden ? await read(send, requestId, size, this.maxBytes()).catch(() => {}) : undefined;
    this.note(this.found, request, { send, bytes });
  }

  // The body of a request that Playwright reports now, of that size; nothing if it is not known for certain.
  of(method, url, size) {
    return new Promise(done => this.note(this.asked, { method, url }, { done, size }));
  }

  note(side, { method, url }, entry) {
    const name = key(method, url);
    const waiting = side.get(name);
    if (waiting) waiting.push(entry);
    else side.set(name, [entry]);
    // Within one source both orders are the same.
    if (this.sources.size === 1) this.match(name, true);
    else void delay(ORDER_MS).then(() => this.match(name, this.isOfOneSource(name)));
    void delay(MATCH_MS).then(() => this.giveUp(side, name, entry));
  }

  // Whether all waiting ones come from one source, so that their order identifies them.
  isOfOneSource(name) {
    const found = this.found.get(name) ?? [];
    return this.asked.get(name)?.length === found.length && new Set(found.map(({ send }) => send)).size === 1;
  }

  match(name, isCertain) {
    const asked = this.asked.get(name) ?? [], found = this.found.get(name) ?? [];
    while (asked.length && found.length) {
      const [first, second] = [asked.shift(), found.shift()];
      if (isCertain) void second.bytes(first.size).then(first.done);
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
