// One renderer's session: runs expressions in its frames, moves its clock, and stops scripts that compute without end.

"use strict";
const fs = require("fs");
const path = require("path");
const { randomUUID } = require("crypto");
const { injected } = require("./playwright.cjs");
const { delay, soon } = require("./timing.cjs");

const EVENT = randomUUID();
const CLOSED = `${EVENT}-closed`;
const WORLD = randomUUID();
const [RECORDER, LOADING, VANISHED, ATTACKS, PLACES, UNDRAWN, DRAWN, PROVENANCE] =
  ["recorder.js", "loading.js", "vanished.js", "../attacks.js", "../places.js", "../undrawn.js", "../drawn.js", "../provenance.js"]
    .map(name => fs.readFileSync(path.join(__dirname, name), "utf8"));
const PLAYWRIGHT = injected();
const SCRIPTS = `(${UNDRAWN})();(${LOADING})();
  (drawn => { (${VANISHED})(${PLAYWRIGHT}, drawn);(${RECORDER})(${JSON.stringify(EVENT)}, drawn) })((${DRAWN})())`;
// The isolated world in which Playwright takes snapshots.
const SNAPSHOT_WORLD = /^__playwright_utility_world_/;

const CATCH = `function() {
  const injected = this.find(each => Object.getOwnPropertyDescriptor(each, "_lastAriaSnapshotForQuery")?.value);
  if (injected) wabeWatch(injected, injected._lastAriaSnapshotForQuery);
}`;

// In milliseconds.
// About one frame: clicks and screenshots wait for frames, which are only drawn when the clock moves.
const TICK = 16;
// Used while a participant thinks for long, because sixty commands a second would cost more than the steps.
const AWAKE = 1000;
const SLOW_TICK = 100;
// A page whose clock falls behind the wall clock draws few frames, and clicks on it time out.
const LEAD = 200;
const MAX_PAUSE = 500;
const MAX_LAG = 60000;
// How long one call waits for granted time to pass, and how long no other time is granted meanwhile.
const MAX_GRANT = 1000;
const MAX_PENDING = 5000;
const GRANTS_PER_CHECK = 20;
// A page that has not answered for this long is silent: a script is computing, or waits for a stopped clock.
const SILENCE = 1000;
const LISTEN = 250;
// A script that stays silent is stopped after some CPU time of its own thread (`begin`), however busy the machine is;
// others in the same settle sooner.
const MAX_CPU_AGAIN_S = 1;
const METRICS_LIMIT = 2000;
const MAX_FRAMES = 50;
const MAX_BODIES = 1000;
const MAX_LISTENING = 300;
const LISTENING_LIMIT = 1000;
const CLICKS = new Set(["click", "mousedown", "mouseup", "pointerdown", "pointerup"]);
// Types of answers that no page waits for the end of.
const ENDLESS = new Set(["EventSource", "Media", "Ping"]);

// A renderer, whose tabs and frames share a clock. Their grants are queued, because one that ends stops the clock for all of
// them, and `mover` sends them; when the clock was last moved, what of it has not passed yet, and until when it stands.
const newRenderer = () =>
  ({ queue: Promise.resolve(), mover: null, movedAt: -Infinity, pending: null, pendingSince: -Infinity, heldUntil: -Infinity });

// One renderer's session: the page itself, or a frame in its own process.
class Target {
  constructor(session, { isPageTime, maxCpu, clockOffset, attack, renderers }, isNavigating, follow, leads) {
    this.session = session;
    this.maxCpu = maxCpu;
    this.isNavigating = isNavigating;
    this.follow = follow;
    this.leads = leads;
    this.isPageTime = isPageTime;
    this.clockOffset = clockOffset;
    this.attack = attack;
    // The page's clock when it was last read.
    this.seenClock = 0;
    this.worlds = new Map();
    this.snapshotWorlds = new Map();
    this.isClosed = false;
    // The send times of the commands that have not been answered yet, oldest first.
    this.unanswered = new Map();
    this.commands = 0;
    this.isListening = false;
    // How many scripts were stopped since the last report.
    this.stops = 0;
    this.hasDialog = false;
    this.granted = performance.now();
    this.queue = Promise.resolve();
    // By isolate; and this target's, `null` until it is known.
    [this.renderers, this.renderer] = [renderers, null];
    this.grants = 0;
    this.usedAt = performance.now();
    // The arriving answers: when each began, and when its last piece came.
    this.bodies = new Map();
  }

  async start() {
    const { session } = this;
    session.on("Runtime.executionContextCreated", ({ context }) => {
      const worlds = context.name === WORLD ? this.worlds : SNAPSHOT_WORLD.test(context.name) ? this.snapshotWorlds : null;
      if (!worlds || worlds.size >= MAX_FRAMES) return;
      worlds.set(context.id, context.auxData?.frameId);
      // Before Playwright takes the first snapshot there.
      if (worlds === this.snapshotWorlds)
        for (const expression of [`(${UNDRAWN})()`, `(${PLACES})().describe()`, this.provenance()])
          session.send("Runtime.evaluate", { expression, contextId: context.id }).catch(() => {});
    });
    session.on("Runtime.executionContextDestroyed", event => {
      for (const worlds of [this.worlds, this.snapshotWorlds]) worlds.delete(event.executionContextId);
    });
    session.on("Runtime.executionContextsCleared", () => {
      // What another target has granted still passes.
      if (this.renderer?.mover === this) this.renderer.pending = null;
      this.renderer = null;
      for (const worlds of [this.worlds, this.snapshotWorlds]) worlds.clear();
    });
    for (const event of ["Page.frameRequestedNavigation", "Page.windowOpen"]) session.on(event, () => this.leads());
    session.on("Page.javascriptDialogOpening", () => { this.hasDialog = true; });
    session.on("Page.javascriptDialogClosed", () => { this.hasDialog = false; });
    session.on("Emulation.virtualTimeBudgetExpired", () => this.expired?.());
    session.on("Network.responseReceived", ({ requestId, type, response }) => {
      if (ENDLESS.has(type) || response.mimeType === "text/event-stream" || this.bodies.size >= MAX_BODIES) return;
      const now = performance.now();
      this.bodies.set(requestId, { began: now, at: now });
    });
    session.on("Network.dataReceived", ({ requestId }) => {
      const body = this.bodies.get(requestId);
      if (body) body.at = performance.now();
    });
    for (const event of ["loadingFinished", "loadingFailed"])
      session.on(`Network.${event}`, ({ requestId }) => this.bodies.delete(requestId));
    await Promise.all(["Page.enable", "Runtime.enable", "Performance.enable"].map(method => session.send(method)));
    // Only when pieces arrive is of interest, so that the browser need not keep them.
    await session.send("Network.enable", { maxTotalBufferSize: 0, maxResourceBufferSize: 0 });
    await this.follow(session, { event: EVENT, world: WORLD }, contextId => this.worlds.get(contextId));
    await session.send("Runtime.addBinding", { name: EVENT, executionContextName: WORLD });
    await session.send("Page.addScriptToEvaluateOnNewDocument", {
      source: SCRIPTS, worldName: WORLD, runImmediately: true,
    });
    if (this.attack && !this.attack.isClosed) {
      if (this.attack.once) await session.send("Runtime.addBinding", { name: CLOSED, executionContextName: WORLD });
      const { identifier } = await session.send("Page.addScriptToEvaluateOnNewDocument", {
        source: `(${ATTACKS})(${JSON.stringify(EVENT)}, ${JSON.stringify(this.attack)}, wabe.drawn)`, worldName: WORLD, runImmediately: true,
      });
      // A cover that has been closed does not come back, in any page.
      session.on("Runtime.bindingCalled", ({ name }) => { if (name === CLOSED) this.attack.closed(); });
      this.attack.places.add(() => session.send("Page.removeScriptToEvaluateOnNewDocument", { identifier }).catch(() => {}));
    }
    if (!this.isPageTime) return;
    await this.findRenderer();
    const isMoved = this.renderer.movedAt > 0;
    // Before the first document, which reads the clock.
    if (this.clockOffset !== null && !isMoved) await this.advance(LEAD);
    void this.tick(isMoved ? 1 : LEAD);
  }

  async findRenderer() {
    const { id } = await this.send("Runtime.getIsolateId");
    if (!this.renderers.has(id)) this.renderers.set(id, newRenderer());
    this.renderer = this.renderers.get(id);
  }

  provenance() {
    return `(${PROVENANCE})((${DRAWN})(), ${JSON.stringify(this.attack ? EVENT : null)})`;
  }

  // For documents of which a snapshot was taken before `provenance.js` was there. Goes through the whole heap.
  async catchSnapshots() {
    await Promise.all([...this.snapshotWorlds.keys()].map(async contextId => {
      const world = { contextId, objectGroup: "wabe" };
      const { result } = await this.send("Runtime.evaluate", { ...world, expression: "globalThis.wabeRead ? null : Object.prototype" });
      if (!result.objectId) return;
      const { objects } = await this.send("Runtime.queryObjects", { prototypeObjectId: result.objectId, objectGroup: "wabe" });
      await this.send("Runtime.callFunctionOn", { objectId: objects.objectId, functionDeclaration: CATCH });
      await this.send("Runtime.releaseObjectGroup", { objectGroup: "wabe" });
    }));
  }

  // Tells the worlds of snapshots which elements listen to clicks themselves (`../places.js`).
  findListening() {
    return soon(this.tellListening(), LISTENING_LIMIT);
  }

  // The first ones, because a page may have very many.
  async tellListening() {
    const objectGroup = "wabe-listening";
    const { result: { objectId } } = await this.send("Runtime.evaluate", { expression: "document", objectGroup });
    const { listeners } = await this.send("DOMDebugger.getEventListeners", { objectId, depth: -1, pierce: true });
    const nodes = new Set(listeners.filter(({ type }) => CLICKS.has(type)).map(each => each.backendNodeId));
    let left = [...nodes].slice(0, MAX_LISTENING);
    for (const executionContextId of this.snapshotWorlds.keys()) {
      // A node of another frame is refused.
      const found = await Promise.all(left.map(backendNodeId =>
        this.send("DOM.resolveNode", { backendNodeId, executionContextId, objectGroup }).then(({ object }) => object.objectId, () => null)));
      left = left.filter((_, at) => found[at] === null);
      await this.send("Runtime.callFunctionOn", {
        executionContextId, functionDeclaration: "function(...all) { globalThis.wabeListening = new WeakSet(all); }",
        arguments: found.filter(Boolean).map(each => ({ objectId: each })),
      });
    }
    this.session.send("Runtime.releaseObjectGroup", { objectGroup }).catch(() => {});
  }

  // Whether pieces of an answer are still arriving: some come with pauses, and the end of others is never reported.
  isReceiving(limit, pause) {
    const now = performance.now();
    let isArriving = false;
    for (const [id, { began, at }] of this.bodies) {
      if (now - began > limit) this.bodies.delete(id);
      else if (now - at <= pause) isArriving = true;
    }
    return isArriving;
  }

  async send(method, params) {
    const id = this.commands++;
    this.unanswered.set(id, performance.now());
    void this.listen();
    try {
      return await this.session.send(method, params);
    } finally {
      this.unanswered.delete(id);
    }
  }

  isSilent() {
    const [since] = this.unanswered.values();
    return since !== undefined && performance.now() - since > SILENCE && !this.isClosed && !this.hasDialog && !this.isNavigating();
  }

  // While a command has no answer, watches how much CPU time the page takes, and stops its script after too much.
  async listen() {
    if (this.isListening) return;
    this.isListening = true;
    let command, began;
    while (this.unanswered.size && !this.isClosed) {
      await delay(LISTEN);
      const [oldest] = this.unanswered.keys();
      if (oldest !== command) [command, began] = [oldest, undefined];
      const used = this.isSilent() ? await this.cpuTime() : undefined;
      if (used === undefined) continue;
      if (began === undefined || used < began) began = used;
      else if (used - began >= (this.stops ? MAX_CPU_AGAIN_S : this.maxCpu)) {
        this.stops += 1;
        began = used;
        // Ends the script only: the page survives.
        this.session.send("Runtime.terminateExecution").catch(() => {});
      }
    }
    this.isListening = false;
  }

  // In seconds, of the thread that runs the page's scripts. Answered while a script runs, but not while the page is laid
  // out, for example: nothing could be stopped then either.
  async cpuTime() {
    const answer = await soon(this.session.send("Performance.getMetrics"), METRICS_LIMIT);
    return answer?.metrics.find(({ name }) => name === "ThreadTime")?.value;
  }

  // The results of an expression in each frame; frames that navigate, vanish or fail are left out.
  async evaluate(expression, worlds = this.worlds) {
    const asked = [...worlds.keys()].map(contextId => this
      .send("Runtime.evaluate", { expression, contextId, returnByValue: true, awaitPromise: true })
      .then(({ result, exceptionDetails }) => exceptionDetails ? undefined : result.value, () => undefined));
    return (await Promise.all(asked)).filter(value => value !== undefined);
  }

  // Move the page's clock: by `ms`, or by as much time as has passed since it was last moved, through this target or
  // another one of the same renderer.
  advance(ms) {
    const move = async () => {
      // Between two documents there is no answer, or only after the next document has arrived, maybe from another
      // renderer.
      if (this.isNavigating()) {
        this.renderer = null;
        this.stoodStill = true;
        this.granted = performance.now();
        return;
      }
      if (!this.renderer) {
        await this.findRenderer();
        // A new document stands until its own page moves the clock.
        this.renderer.mover = this;
      }
      const { renderer } = this;
      await (renderer.queue = renderer.queue.catch(() => {}).then(() => this.move(ms, renderer)));
    };
    // Only the page's end stops its clock. A navigation ends a command with "Inspected target navigated or closed".
    return this.queue = this.queue.then(move).catch(error => { this.isClosed ||= /has been closed/.test(error.message); });
  }

  async move(ms, renderer) {
    const now = performance.now();
    ms ??= now - Math.max(this.granted, renderer.movedAt);
    this.stoodStill ||= now - this.granted > MAX_PAUSE;
    this.granted = now;
    if (ms < 1 || this.isNavigating() || await this.isPending(renderer)) return;
    renderer.movedAt = now;
    const isChecked = this.stoodStill || ++this.grants % GRANTS_PER_CHECK === 0;
    const before = isChecked ? await this.clock() : undefined;
    if (before !== undefined) ms = Math.max(ms, Math.min(this.now() + LEAD - before, MAX_LAG));
    this.stoodStill = false;
    await this.moverOf(renderer).grant(ms, renderer);
    if (before === undefined || renderer.pending) return;
    const lost = ms - (await this.clock() - before);
    // The same instant at which the time cut off ends.
    if (lost > 1) await this.moverOf(renderer).grant(lost, renderer);
  }

  // What several targets grant in turn ends too early, or never.
  moverOf(renderer) {
    const { mover } = renderer;
    if (!mover || mover.isClosed || mover.renderer !== renderer || mover.isNavigating()) renderer.mover = this;
    return renderer.mover;
  }

  async grant(ms, renderer) {
    const pending = new Promise(done => { this.expired = done; });
    Object.assign(renderer, { pending, pendingSince: performance.now() });
    void pending.then(() => { if (renderer.pending === pending) renderer.pending = null; });
    const policy = { policy: "advance", budget: ms };
    // For the process in which virtual time is not enabled yet; ignored by all others.
    if (this.clockOffset !== null) policy.initialVirtualTime = Math.max(this.now(), this.seenClock) / 1000;
    await this.send("Emulation.setVirtualTimePolicy", policy);
    await Promise.race([pending, delay(MAX_GRANT)]);
  }

  // What the page's clock would show if it never stopped and no time were skipped.
  now() {
    return Date.now() + (this.clockOffset ?? 0);
  }

  // Whether granted time has still not passed, because the page is busy. It is not replaced: Chromium would stop
  // the clock in the middle of the new one, when the old one ends, and so on with every later one. A new document may
  // have taken it along.
  async isPending(renderer) {
    if (!renderer.pending) return false;
    await Promise.race([renderer.pending, delay(MAX_GRANT)]);
    this.stoodStill = true;
    return renderer.pending !== null && performance.now() - renderer.pendingSince < MAX_PENDING;
  }

  // The page's clock, read where no script of the page can tamper with it.
  async clock() {
    const [contextId] = this.worlds.keys();
    if (contextId === undefined) return undefined;
    const { result } = await this.send("Runtime.evaluate", { expression: "Date.now()", contextId });
    return this.seenClock = result.value;
  }

  // Between settles the page's clock runs at the speed of the wall clock.
  async tick(first) {
    await this.advance(first);
    while (!this.isClosed) {
      const isAwake = performance.now() - this.usedAt < AWAKE;
      await (isAwake ? delay(TICK) : Promise.race([delay(SLOW_TICK), new Promise(done => { this.rouse = done; })]));
      if (performance.now() < this.renderer?.heldUntil) this.granted = performance.now();
      else if (!this.isSettling && !this.hasDialog) await this.advance();
    }
  }

  // Stops the page's clock until the next action, at most until the wall clock has caught up with it: behind that, few frames
  // are drawn.
  async hold() {
    const clock = await this.clock();
    if (clock !== undefined && this.renderer) this.renderer.heldUntil = performance.now() + clock - this.now() - LEAD;
  }

  begin() {
    this.isSettling = true;
    if (this.renderer) this.renderer.heldUntil = -Infinity;
  }

  // Called before an action.
  wake() {
    if (this.renderer) this.renderer.heldUntil = -Infinity;
    this.usedAt = performance.now();
    this.rouse?.();
  }

  async catchUp() {
    if (this.isPageTime && !this.hasDialog) await this.advance();
  }
}

module.exports = { EVENT, MAX_FRAMES, TICK, Target };
