// Delays of requests that the guard makes under a variant (`judge.network.disturbing`) pass on the page's clock. The guard
// is told how far that is ahead, and where nothing but a delay is waited for, it is moved, so that nobody waits for them.

"use strict";
const { delay, soon } = require("./timing.cjs");

const [LIMIT, CLOCK_LIMIT, PAUSE] = [2000, 300, 5];

class Delays {
  // `clock` is where the guard hears of the page's time, and `own` are the headers by which it knows the judge.
  constructor({ clock, own }) {
    Object.assign(this, { clock, own });
    // What passed on the page's clock only, and between documents, when no clock can be moved.
    [this.lead, this.between] = [0, 0];
  }

  // Tells the guard how far the page's time is ahead of this machine's. How long the next delay still takes, in milliseconds.
  async tell(settler) {
    const target = settler.targets.get(settler.page);
    const isReadable = !settler.isNavigating() && !settler.isStuck();
    const shown = isReadable ? await soon(target.clock(), CLOCK_LIMIT) : undefined;
    if (shown !== undefined) this.lead = shown - target.now();
    const url = `${this.clock}?ahead_ms=${Math.round(this.lead + this.between)}`;
    const answer = await settler.page.context().request.get(url, { headers: this.own, timeout: LIMIT });
    try {
      return Number(await answer.text());
    } finally {
      await answer.dispose();
    }
  }

  // Lets at most `most` milliseconds of the next delay pass for a page, unless they already do. Returns how many did.
  skip(settler, most) {
    return settler.skipping ??= this.skipNow(settler, most).catch(() => 0).finally(() => { settler.skipping = null; });
  }

  async skipNow(settler, most) {
    const ms = Math.min(await this.tell(settler), most);
    if (!(ms > 0)) return 0;
    if (settler.isNavigating()) this.between += ms;
    else await settler.advance(ms);
    await this.tell(settler);
    settler.skipped(ms);
    return ms;
  }

  // A document is waited for wherever it is asked for, also by an action.
  async untilThere(settler) {
    while (settler.isNavigating() && !settler.isGone) {
      await this.skip(settler, Infinity);
      await delay(PAUSE);
    }
  }
}

module.exports = { Delays };
