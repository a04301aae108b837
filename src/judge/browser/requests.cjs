// Records a context's requests and their answers as they happen. Loaded by Playwright's MCP server into its own process
// (option `browser.initPage`), where no page has access. Read by `requests.py`.
//
// Not Playwright's own HAR recording: that keeps every body in memory until it is stopped, cannot be stopped under an
// open dialog, and stamps requests with the page's clock, which settling moves. Here each line is a part of an entry, so
// the file's length before an action separates earlier from later requests, and there is nothing to finish at the end.

"use strict";
const fs = require("fs");
const { isUtf8 } = require("buffer");

const LOG = "requests.jsonl";
const LEFT_OUT = new Set(["stylesheet", "script", "image", "font", "media", "texttrack", "manifest"]);
const READ = /^(?:application|text)\/(?:[\w.-]+\+)?json\b|^application\/x-www-form-urlencoded\b|^text\/plain\b/i;
const MAX_ENTRIES = 10000;
const MAX_BODY_BYTES = 262144;
const MAX_URL_CHARS = 8000;
const MAX_HEADERS = 100;
const MAX_HEADER_CHARS = 8000;
// Limits of the file: bodies are left out first, then headers, and entries last.
const MAX_BYTES = 24000000;
const MAX_BYTES_WITH_BODIES = 16000000;
const MAX_BYTES_WITH_HEADERS = 20000000;

const recorded = new WeakMap();

const encoded = bytes => isUtf8(bytes) ? { text: bytes.toString() } : { base64: bytes.toString("base64") };

const short = headers => headers.slice(0, MAX_HEADERS)
  .map(({ name, value }) => [name.slice(0, 200), value.slice(0, MAX_HEADER_CHARS)]);

const listed = headers => Object.entries(headers).map(([name, value]) => ({ name, value }));

// The origin of the document that sends a request. Empty frames have that of their parent document. A navigation
// replaces its document, so it has none; for a form, its `Origin` header names the sender.
function sender(request) {
  const worker = request.serviceWorker();
  if (worker) return origin(worker.url());
  if (request.isNavigationRequest()) return null;
  let frame = request.frame();
  while (frame.parentFrame() && /^about:|^$/.test(frame.url())) frame = frame.parentFrame();
  return origin(frame.url());
}

const origin = url => {
  try {
    return new URL(url).origin;
  } catch {
    return "null";
  }
};

function isInFrame(request) {
  try {
    return request.frame().parentFrame() !== null;
  } catch {
    // The first request of a new tab has no frame yet.
    return false;
  }
}

class Recorder {
  constructor(context) {
    this.ids = new WeakMap();
    this.count = 0;
    this.dropped = 0;
    this.bytes = 0;
    this.isClosed = false;
    // Bodies that are still being read then must not end up in the file of the next context.
    context.on("close", () => { this.isClosed = true; });
    context.on("request", request => this.began(request));
    context.on("response", response => void this.answered(response).catch(() => {}));
    context.on("requestfinished", request => void this.ended(request).catch(() => {}));
    context.on("requestfailed", request => this.write(request, { failure: request.failure()?.errorText ?? "failed", ended: Date.now() }));
  }

  write(request, part) {
    const id = this.ids.get(request);
    if (id !== undefined) this.append({ id, ...part });
  }

  append(part) {
    if (this.isClosed) return;
    const line = JSON.stringify(part) + "\n";
    this.bytes += Buffer.byteLength(line);
    fs.appendFileSync(LOG, line);
  }

  // An id for a new entry, or nothing if the file is full.
  enter(request) {
    if (this.count < MAX_ENTRIES && this.bytes < MAX_BYTES) {
      this.ids.set(request, this.count);
      return this.count++;
    }
    this.dropped += 1;
    // Only at powers of two, so that a page with endless requests cannot fill the disk with this either.
    if ((this.dropped & (this.dropped - 1)) === 0) this.append({ dropped: this.dropped });
  }

  headers(headers) {
    return this.bytes < MAX_BYTES_WITH_HEADERS ? short(headers) : undefined;
  }

  body(bytes) {
    const fits = bytes.length <= MAX_BODY_BYTES && this.bytes < MAX_BYTES_WITH_BODIES;
    return fits ? encoded(bytes) : { dropped: bytes.length };
  }

  began(request) {
    const url = request.url();
    if (LEFT_OUT.has(request.resourceType()) || !/^https?:/.test(url)) return;
    const id = this.enter(request);
    if (id === undefined) return;
    const post = request.postDataBuffer();
    this.append({
      id,
      began: Date.now(),
      method: request.method(),
      url: url.slice(0, MAX_URL_CHARS),
      long_url: url.length > MAX_URL_CHARS || undefined,
      type: request.resourceType(),
      frame: (request.isNavigationRequest() && isInFrame(request)) || undefined,
      sender: sender(request),
      headers: this.headers(listed(request.headers())),
      post: post ? this.body(post) : undefined,
    });
  }

  async answered(response) {
    const request = response.request();
    if (!this.ids.has(request)) return;
    this.write(request, {
      answered: Date.now(),
      status: response.status(),
      status_text: response.statusText().slice(0, 200),
      response_headers: this.headers(listed(response.headers())),
      from_worker: response.fromServiceWorker() || undefined,
    });
    // Including cookies, which the browser adds after the events.
    const [sent, received] = await Promise.all([request.headersArray(), response.headersArray()]);
    this.write(request, { headers: this.headers(sent), response_headers: this.headers(received) });
  }

  async ended(request) {
    if (!this.ids.has(request)) return;
    const response = await request.response();
    const type = response?.headers()["content-type"] ?? "";
    let body;
    if (READ.test(type) && !(response.status() >= 300 && response.status() < 400)) {
      const announced = Number(response.headers()["content-length"] ?? 0);
      const isRead = announced <= MAX_BODY_BYTES && this.bytes < MAX_BYTES_WITH_BODIES;
      // Bodies cannot be read any more once their page is gone.
      body = isRead ? await response.body().then(bytes => this.body(bytes), () => ({ dropped: announced })) : { dropped: announced };
    }
    this.write(request, { ended: Date.now(), body });
  }

  opened(socket) {
    const id = this.enter(socket);
    if (id === undefined) return;
    const url = socket.url();
    this.append({ id, began: Date.now(), method: "GET", url: url.slice(0, MAX_URL_CHARS), type: "websocket" });
    socket.on("socketerror", error => this.write(socket, { failure: error.slice(0, 200) }));
    socket.on("close", () => this.write(socket, { ended: Date.now() }));
  }
}

exports.default = async ({ page }) => {
  // The context, not the page, sees the first request of a new tab.
  const context = page.context();
  if (!recorded.has(context)) recorded.set(context, new Recorder(context));
  page.on("websocket", socket => recorded.get(context).opened(socket));
};
