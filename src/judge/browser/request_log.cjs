// The file behind `requests.cjs`: entries as lines of JSON, within limits that no page can use up for another one. The
// task's requests have a share of their own. When a share is full, the first and the last request for each method
// and path are still kept, in a second file, rewritten from time to time. Read by `requests.py`.

"use strict";
const fs = require("fs");
const { Messages } = require("./request_sockets.cjs");

const LOG = "requests.jsonl";
const LATE = "late_requests.jsonl";

class Share {
  constructor(limits) {
    this.limits = limits;
    this.count = 0;
    this.bytes = 0;
    this.lateBytes = 0;
    // By method and path: the entries kept although the share is full, and how many were left out.
    this.paths = new Map();
    this.unnamed = { leftOut: 0 };
  }

  isFull() {
    return this.count >= this.limits.entries || this.bytes >= this.limits.bytes;
  }
}

class Log {
  constructor({ own, other, bodyBytes, keyChars }) {
    this.shares = { own: new Share(own), other: new Share(other) };
    this.messages = { own: new Messages("own", own), other: new Messages("other", other) };
    this.bodyBytes = bodyBytes;
    this.keyChars = keyChars;
    this.next = 0;
    this.late = new Map();
    this.lateFileBytes = 0;
    this.isClosed = false;
  }

  // A place for a new entry, or nothing if it must be left out.
  enter(isOwn, method, path) {
    const share = this.shares[isOwn ? "own" : "other"];
    const slot = { id: this.next++, share };
    const key = `${method} ${path}`;
    let known = share.paths.get(key);
    const isNew = !known && key.length <= this.keyChars && share.paths.size < share.limits.paths;
    if (isNew) share.paths.set(key, known = { leftOut: 0 });
    if (!share.isFull()) {
      share.count += 1;
      return slot;
    }
    // Without room for the last one either, it is unknown what came after.
    if (!known || share.lateBytes >= share.limits.lateBytes) {
      this.leaveOut(isOwn, share.unnamed, "", "");
      return undefined;
    }
    Object.assign(slot, { isLate: true, at: size(LOG), parts: {}, bytes: 0 });
    if (!isNew) {
      if (known.last) {
        this.forget(known.last);
        this.leaveOut(isOwn, known, method, path);
      }
      known.last = slot;
    }
    this.late.set(slot.id, slot);
    return slot;
  }

  // A message of a web socket, at the moment at which it was sent or received.
  addMessage(isOwn, message) {
    if (!this.isClosed) this.messages[isOwn ? "own" : "other"].add({ at: size(LOG), ...message });
  }

  // A request about which nothing is known.
  lost() {
    this.leaveOut(true, this.shares.own.unnamed, "", "");
  }

  leaveOut(isOwn, known, method, path) {
    known.leftOut += 1;
    // Only at powers of two, so that endless requests cannot fill the disk with this either.
    if ((known.leftOut & (known.leftOut - 1)) === 0)
      this.append(LOG, { left_out: { own: isOwn, method, path, count: known.leftOut } });
  }

  forget(slot) {
    this.late.delete(slot.id);
    slot.share.lateBytes -= slot.bytes;
    this.lateFileBytes += this.append(LATE, { gone: slot.id });
  }

  write(slot, part) {
    if (!slot) return;
    const line = { id: slot.id, ...(slot.isLate ? { at: slot.at } : {}), ...part };
    if (!slot.isLate) {
      slot.share.bytes += this.append(LOG, line);
      return;
    }
    if (!this.late.has(slot.id)) return;
    Object.assign(slot.parts, part);
    const bytes = this.append(LATE, line);
    slot.bytes += bytes;
    slot.share.lateBytes += bytes;
    this.lateFileBytes += bytes;
    this.compact();
  }

  // Drop superseded lines once they are most of the file.
  compact() {
    const { own, other } = this.shares;
    if (this.lateFileBytes < 2 * (own.limits.lateBytes + other.limits.lateBytes) || this.isClosed) return;
    const lines = [...this.late.values()].map(({ id, at, parts }) => JSON.stringify({ id, at, ...parts }) + "\n").join("");
    fs.writeFileSync(`${LATE}.new`, lines);
    fs.renameSync(`${LATE}.new`, LATE);
    this.lateFileBytes = Buffer.byteLength(lines);
  }

  append(file, line) {
    if (this.isClosed) return 0;
    const text = JSON.stringify(line) + "\n";
    fs.appendFileSync(file, text);
    return Buffer.byteLength(text);
  }

  hasRoomForHeaders({ share, isLate }) {
    return isLate ? share.lateBytes < share.limits.lateBytes / 2 : share.bytes < share.limits.bytesWithHeaders;
  }

  hasRoomForBody({ share, isLate }, bytes) {
    if (bytes > this.bodyBytes) return false;
    return isLate ? share.lateBytes + bytes < share.limits.lateBytes / 2 : share.bytes + bytes < share.limits.bytesWithBodies;
  }
}

const size = file => {
  try {
    return fs.statSync(file).size;
  } catch {
    return 0;
  }
};

module.exports = { LOG, Log };
