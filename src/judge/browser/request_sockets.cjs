// Web sockets for `requests.cjs`: their text messages, and who opened them.
//
// Playwright reports every socket with its messages, workers and new tabs included, but not who opened it. That
// is the `Origin` of the handshake, which no page can forge. The DevTools protocol reports it, unless the socket was opened
// before the session was. The two reports have no common id, so the opener of a socket is known only if all sockets with
// its address were opened by the same origin. Read by `requests.py` and `socket_messages.py`.

"use strict";
const fs = require("fs");

const HANDSHAKES = ["Network.webSocketCreated", "Network.webSocketWillSendHandshakeRequest"];
const MAX_ORIGIN_CHARS = 300;
// Per page. The opener of any further socket is unknown.
const MAX_SOCKETS = 10000;
// What browsers write if they withhold the origin, so that no sender is identified.
const NOBODY = "null";

const plain = url => url.split("#", 1)[0];

// The messages of one share: the first ones, and the last ones. A missing number is a dropped message.
class Messages {
  constructor(share, { messageBytes, lateMessageBytes }) {
    this.files = ["first", "last", "before_last"].map(part => `messages_${share}_${part}.jsonl`);
    this.limits = { first: messageBytes, last: lateMessageBytes };
    this.count = 0;
    this.bytes = { first: 0, last: 0 };
  }

  add(message) {
    const line = JSON.stringify({ n: this.count++, ...message }) + "\n";
    const size = Buffer.byteLength(line);
    const [first, last, beforeLast] = this.files;
    if (!this.bytes.last && this.bytes.first + size <= this.limits.first) {
      this.bytes.first += size;
      fs.appendFileSync(first, line);
      return;
    }
    if (this.bytes.last && this.bytes.last + size > this.limits.last) {
      fs.renameSync(last, beforeLast);
      this.bytes.last = 0;
    }
    this.bytes.last += size;
    fs.appendFileSync(last, line);
  }
}

// The sockets of a page; `recorder` comes from `requests.cjs`.
class Sockets {
  constructor(page, recorder) {
    this.recorder = recorder;
    this.page = page;
    this.created = new Map();
    // By address: the sockets, and the origins of the handshakes.
    this.groups = new Map();
    this.count = 0;
    page.on("websocket", socket => {
      try {
        this.opened(socket);
      } catch {
        this.recorder.log?.lost();
      }
    });
  }

  group(url) {
    const known = this.groups.get(plain(url));
    if (known) return known;
    const group = { sockets: [], origins: [] };
    this.groups.set(plain(url), group);
    return group;
  }

  // An event of a session named `source`, in which ids are unique.
  shook(source, { requestId, url, request }) {
    if (!this.recorder.log || this.count > MAX_SOCKETS) return;
    const id = `${source} ${requestId}`;
    if (url !== undefined) {
      this.count += 1;
      this.created.set(id, url);
    } else if (this.created.has(id)) {
      const origin = Object.entries(request.headers).find(([name]) => name.toLowerCase() === "origin")?.[1] ?? NOBODY;
      const group = this.group(this.created.get(id));
      this.created.delete(id);
      group.origins.push(origin.slice(0, MAX_ORIGIN_CHARS));
      this.decide(group);
    }
  }

  // Who opened the sockets of one address, as far as it is known by now.
  decide(group) {
    const { sockets, origins } = group, [one, ...others] = new Set(origins);
    let origin = others.length ? NOBODY : one;
    // For those without a handshake, the only evidence is that every document so far had the same origin, if so.
    if (one && origins.length < sockets.length && one !== this.recorder.onlyOrigin()) origin = NOBODY;
    if (origin === group.origin) return;
    group.origin = origin;
    for (const slot of sockets) this.recorder.log.write(slot, { fixed: { origin } });
  }

  // Which document of the page opened a socket is not known.
  cause(socket, isSent) {
    return this.recorder.causes.ofSocket(this.page, socket.url(), isSent);
  }

  opened(socket) {
    const { recorder } = this, { log, limits, sites } = recorder;
    if (!log) return;
    const url = socket.url(), only = recorder.onlyOrigin(), group = this.group(url);
    const isToSite = sites.holds(url.replace(/^ws/, "http"));
    // Decides only which share of the log is used.
    const isOwn = () => isToSite && sites.sent(group.origin ?? only);
    const slot = this.count++ < MAX_SOCKETS ? log.enter(isOwn(), "GET", url.split(/[?#]/, 1)[0]) : log.lost();
    log.write(slot, {
      began: Date.now(),
      method: "GET",
      url: url.slice(0, limits.url),
      long_url: url.length > limits.url || undefined,
      type: "websocket",
      sender: { only },
      cause: this.cause(socket),
      fixed: { origin: group.origin },
    });
    if (slot) group.sockets.push(slot);
    this.decide(group);
    const said = isSent => ({ payload }) => {
      const cause = this.cause(socket, isSent);
      if (typeof payload !== "string") return;
      const size = Buffer.byteLength(payload);
      const text = size > limits.bodyBytes ? { dropped: size } : { text: payload };
      log.addMessage(isOwn(), { socket: slot?.id, sent: isSent, time: Date.now(), cause, ...text });
    };
    socket.on("framesent", said(true));
    socket.on("framereceived", said(false));
    socket.on("socketerror", error => log.write(slot, { failure: String(error).slice(0, 200) }));
    socket.on("close", () => log.write(slot, { ended: Date.now() }));
  }
}

module.exports = { Messages, Sockets, HANDSHAKES };
