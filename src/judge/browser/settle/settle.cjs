// Waits until a page shows the effect of an action. Loaded by Playwright's MCP server into its own process (option
// `browser.initPage`), where no page has access. Called by `judge.browser.settle`.
//
// Two modes. In real time it waits until requests are done and the page is quiet. In page time it moves the page's
// clock itself (Chromium's virtual time), so that seconds of page time pass in milliseconds.

"use strict";
const { randomUUID } = require("crypto");
const fs = require("fs");
const path = require("path");
const { origin } = require("./addresses.cjs");
const { emptyClipboard } = require("./clipboard.cjs");
const { Delays } = require("./delays.cjs");
const { glance } = require("./glance.cjs");
const { clickAgain, drag, press } = require("./mouse.cjs");
const { open } = require("./opening.cjs");
const { adapt } = require("./server_tab.cjs");
const { CLOSE_LIMIT, SLICE, SLICE_REAL, Settler } = require("./settler.cjs");
const { EVENT } = require("./target.cjs");
const { limitTabs } = require("./tabs.cjs");
const { delay, soon } = require("./timing.cjs");

const [KEY, REQUESTS] = ["wabe.settle", "wabe.requests"].map(Symbol.for);
const [PAGE, CLOCK, DRAWN, JOINS] = ["page.js", "clock.js", "../drawn.js", "../joins.js"]
  .map(name => fs.readFileSync(path.join(__dirname, name), "utf8"));
const BESIDE = `globalThis.wabeRead && { ...wabeRead, ...(${JOINS})((${DRAWN})()) }`;

// In milliseconds.
const TIMER_HORIZON = 3100;
// A timer of a message that leaves a person the time to use its controls.
const LONG_TIMER = 2000;
// For the new session of a tab whose process may be busy.
const ATTACH_LIMIT = 3000;
const ANSWER_LIMIT = 4000;
const INPUT_PAUSE = 80;

// The judge's code tool finds the settlers of a context here.
class Context {
  constructor() {
    this.settlers = new WeakMap();
    [this.isBegun, this.isPageTime] = [false, false];
    // How far the pages' clocks are ahead of this machine's from the beginning; `null` if they begin with it.
    this.clockOffset = null;
    this.attack = null;
    // How the last page was lost, since the last report: `crashed` or `flooded`.
    this.lost = null;
    this.closedTabs = 0;
    // How long the next action on an element holds the mouse down, in milliseconds.
    this.hold = 0;
    // By isolate (`target.cjs`).
    this.renderers = new Map();
    // The settlers of open tabs; and when a page began to open another tab, which is not there yet.
    [this.openTabs, this.tabAwaited] = [new Set(), -Infinity];
    [this.isReplacing, this.floods] = [false, new WeakMap()];
  }

  // What happened to tabs since the last call.
  takeEvents() {
    const { lost, closedTabs } = this;
    [this.lost, this.closedTabs] = [null, 0];
    return { lost, closed_tabs: closedTabs };
  }

  // Puts a new, empty tab in place of a page, and returns its index.
  async replace(page) {
    const context = page.context();
    this.isReplacing = true;
    const fresh = await context.newPage().finally(() => { this.isReplacing = false; });
    await Promise.all([soon(page.close(), CLOSE_LIMIT), this.closeSilent(page, fresh)]);
    return context.pages().indexOf(fresh);
  }

  // Stops what keeps the server from answering: a navigation without an answer, and other tabs that do not answer.
  async unblock(page) {
    const settler = await soon(this.attach(page), ATTACH_LIMIT);
    const wasLoading = settler?.isNavigating() ?? false;
    const sent = settler?.targets.get(page)?.session.send("Page.stopLoading");
    await Promise.all([soon(Promise.resolve(sent), ATTACH_LIMIT), this.closeSilent(page)]);
    return wasLoading;
  }

  // Closes all other pages that do not answer: the server asks each of them for its title before it answers itself.
  async closeSilent(...kept) {
    const others = kept[0].context().pages().filter(page => !kept.includes(page));
    await Promise.all(others.map(async page => {
      if (await this.answers(page)) return;
      this.closedTabs += 1;
      await soon(page.close(), CLOSE_LIMIT);
    }));
  }

  // Under a dialog no page answers, but its tab can still be shown.
  async answers(page) {
    const settler = await soon(this.attach(page), ATTACH_LIMIT);
    if (!settler) return false;
    const sent = settler.targets.get(page)?.session.send("Runtime.evaluate", { expression: "0" });
    return settler.isStuck() || await soon(Promise.resolve(sent), ANSWER_LIMIT) !== undefined;
  }

  glance = page => glance(this, page);
  open = (page, ...given) => open(this, page, ...given);

  // Called once, before the first navigation, until which no page needs to be watched.
  // With `clock` (page time only), the clocks of all pages begin there, in milliseconds since 1970. `attack` is what goes
  // into the pages (`../attacks.js`), if anything does.
  // `slow` is set if the guard delays requests: where to report the page's time (`delays.cjs`).
  async begin(page, isPageTime, maxCpu, clock, attack, hasOwnClipboard, slow) {
    if (this.isBegun) return;
    this.isBegun = true;
    this.isPageTime = isPageTime;
    this.maxCpu = maxCpu;
    this.delays = isPageTime && slow ? new Delays(slow) : null;
    this.attack = attack && { ...attack, mark: `data-${randomUUID()}`, places: new Set() };
    if (attack) this.attack.closed = () => {
      this.attack.isClosed = true;
      for (const remove of this.attack.places) remove();
    };
    await page.context().addInitScript(`(${PAGE})(${JSON.stringify(EVENT)}, ${isPageTime}, ${TIMER_HORIZON}, ${LONG_TIMER})`);
    if (isPageTime && clock !== null) {
      this.clockOffset = clock - Date.now();
      await page.context().addInitScript(`(${CLOCK})(${clock}, ${this.clockOffset})`);
    }
    // Not a person's.
    if (hasOwnClipboard) await emptyClipboard(page);
    await this.attach(page);
  }

  async attach(page) {
    if (!this.settlers.has(page)) {
      const settler = new Settler(page, this);
      const started = settler.start().then(() => settler);
      this.settlers.set(page, started);
      // The next caller tries again.
      started.catch(() => this.settlers.delete(page));
    }
    return this.settlers.get(page);
  }

  async settle(page, limit, longLimit, withLinks) {
    const settler = await this.attach(page);
    try {
      return await settler.settle(limit, longLimit, withLinks);
    } finally {
      await this.delays?.tell(settler).catch(() => {});
      settler.origins = new Set([origin(page)]);
      page.context()[REQUESTS]?.landed(page.url());
    }
  }

  // What belongs to the snapshot just taken: who wrote what it shows and what is joined in it, one entry for each
  // document (`provenance.js`, `joins.js`), nothing from those that do not answer in time; a screenshot; and how many
  // origins the page has had since it settled, 1 unless it went from one to another. `again`: documents are missing.
  async beside(page, quality, limit, again) {
    const settler = await this.attach(page);
    const asked = Promise.all(settler.all().map(async target => {
      if (again) await target.catchSnapshots().catch(() => {});
      return target.evaluate(BESIDE, target.snapshotWorlds);
    }));
    const documents = soon(asked.then(found => found.flat()), limit).then(found => found ?? []);
    // In CSS pixels, because participants give coordinates in those.
    this.shotOptions = { type: "jpeg", quality, scale: "css", timeout: limit };
    if (!settler.shot) await this.shoot(page);
    const [found, picture] = await Promise.all([documents, settler.shot]);
    settler.shot = null;
    // For as long as it can, the clock stands while the participant decides what to do with the control.
    if (this.isPageTime && settler.isPassing) await soon(Promise.all(settler.all().map(target => target.hold())), ANSWER_LIMIT);
    const isLate = picture.name === "TimeoutError";
    if (picture instanceof Error && !isLate) throw picture;
    return { documents: found, image: isLate ? null : picture.toString("base64"), origins: settler.origins.size };
  }

  // Begins with the snapshot, to which the picture belongs, or before it if nothing can change the page.
  async shoot(page) {
    const settler = await this.attach(page);
    settler.shot ??= this.picture(page);
  }

  picture(page, options) {
    return this.shotOptions ? page.screenshot({ ...this.shotOptions, ...options }).catch(error => error) : null;
  }

  // Takes an attack's content out of the pages, or puts it back: probes read pages without it.
  async putAttack(page, where) {
    if (!this.attack) return;
    const settler = await this.attach(page);
    [settler.early, settler.shot] = [null, null];
    const told = settler.all().map(target => target.evaluate(`dispatchEvent(new Event("${EVENT}-${where}"))`));
    await soon(Promise.all(told), ATTACH_LIMIT);
  }

  // How time passes for a page within one action, and what is known of it. `takeHold`: how long the mouse is held down in it.
  timeOf(page) {
    return {
      // As long as a quick person takes between two clicks.
      pause: () => this.pass(page, INPUT_PAUSE),
      pass: ms => this.pass(page, ms),
      drive: call => this.drive(page, call),
      shoot: () => this.shoot(page),
      snapshot: async take => this.isBegun ? (await this.attach(page)).snapshot(take) : take(),
      isStill: async () => this.isBegun && (await this.attach(page)).isAtRest(),
      session: async () => this.isBegun && (await this.attach(page)).targets.get(page)?.session,
      takeHold: () => [this.hold, this.hold = 0][0],
    };
  }

  // Its events look like events of the page's scripts.
  async drive(page, call) {
    const settler = await this.attach(page);
    const tell = isDriven => Promise.all(settler.all().map(target => target.evaluate(`wabe.isDriven = ${isDriven}`)));
    await soon(tell(true), ANSWER_LIMIT);
    // Not answered under a dialog.
    return call().finally(() => void tell(false));
  }

  // Time passes on the page's clock, except under a dialog, which stops it.
  async pass(page, ms) {
    const settler = await this.attach(page);
    for (let left = ms; left > 0 && !settler.isStuck(); left -= SLICE) {
      const slice = Math.min(SLICE, left);
      // Handlers may wait for frames, which are drawn in real time.
      await soon(Promise.all([delay(this.isPageTime ? SLICE_REAL : slice), settler.advance(slice)]), CLOSE_LIMIT);
    }
  }

  async clickAt(page, { x, y, hold_ms: hold = 0, ...options }) {
    const { pause, pass } = this.timeOf(page);
    await press(page, { x, y }, pass, { ...options, hold });
    if (options.clickCount > 1) await clickAgain(page, pause, pass, options);
  }

  async dragAt(page, { startX, startY, endX, endY, hold_ms: hold }) {
    const from = { x: startX, y: startY };
    await page.mouse.move(from.x, from.y);
    await drag(page, from, async () => ({ x: endX, y: endY }), ms => this.pass(page, ms), hold);
  }

  async wake(page) {
    (await this.attach(page)).all().forEach(target => target.wake());
  }
}

exports.default = async ({ page }) => {
  const context = page.context()[KEY] ??= new Context();
  adapt(page, context.timeOf(page));
  if (!context.isBegun) return;
  await limitTabs(context, page).catch(() => {});
  // The server reports nothing about any tab before this is done.
  await soon(context.attach(page), ATTACH_LIMIT);
  context.tabAwaited = -Infinity;
};
