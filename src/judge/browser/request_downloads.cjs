// Requests that the browser reports only as downloads, as for links with `download`. Their headers and status are not
// known; whether the site answered without an error is, because the browser only then takes the file.

"use strict";

const MAX_WAITING = 100;

class Downloads {
  // `recorder` gets each request as it begins, its answer, and its failure.
  constructor(recorder) {
    this.recorder = recorder;
    this.reported = [];
    this.begun = new Map();
  }

  async start(session) {
    session.on("Page.downloadWillBegin", event => this.began(event));
    session.on("Page.downloadProgress", ({ guid, state }) => this.progressed(guid, state));
    await session.send("Page.enable");
  }

  // A navigation became a download: the browser ends it first.
  replaced(url) {
    this.reported = [...this.reported.slice(1 - MAX_WAITING), url];
  }

  began({ guid, url, frameId }) {
    const at = this.reported.indexOf(url);
    if (at >= 0) {
      this.reported.splice(at, 1);
      return;
    }
    const slot = this.recorder.beganDownload(guid, url, frameId);
    if (slot && this.begun.size < MAX_WAITING) this.begun.set(guid, slot);
  }

  // The judge's browser takes no file, so even a download that the site answered is canceled, but only after it began.
  progressed(guid, state) {
    const slot = this.begun.get(guid);
    if (!slot) return;
    this.begun.delete(guid);
    if (state === "canceled") this.recorder.log.write(slot, { failure: "the download failed", ended: Date.now() });
    else this.recorder.log.write(slot, { download: true, ended: Date.now() });
  }
}

module.exports = { Downloads };
