// Delays of requests that the guard makes under a variant (`judge.network.disturbing`) count in the page's time. Here it
// passes at once, and the guard is told, so that nobody waits for them.

"use strict";
const { delay } = require("./timing.cjs");

const CLOCK = "http://clock.wabe.invalid/";
const [LIMIT, PAUSE] = [2000, 5];

class Delays {
  // `own` are the headers by which the guard knows the judge.
  constructor(own) {
    this.own = own;
  }

  // Tells the guard that time has passed. How long the next delay still takes, in milliseconds.
  async passed(page, ms) {
    const answer = await page.context().request.get(`${CLOCK}?ms=${Math.round(ms)}`, { headers: this.own, timeout: LIMIT });
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
    const ms = Math.min(await this.passed(settler.page, 0), most);
    if (!(ms > 0)) return 0;
    // Between two documents no clock can be moved.
    if (!settler.isNavigating()) await Promise.all(settler.all().map(target => target.advance(ms)));
    await this.passed(settler.page, ms);
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
