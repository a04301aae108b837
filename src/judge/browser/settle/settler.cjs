// Waits for one page with its frames, requests and sockets.

"use strict";
const { causesOf } = require("../causes.cjs");
const { address, isNavigation, isStream, origin } = require("./addresses.cjs");
const { MAX_FRAMES, TICK, Target } = require("./target.cjs");
const { delay, soon } = require("./timing.cjs");

const DOWNLOADS = Symbol.for("wabe.downloads");
// In milliseconds. `page` is time on the page's clock.
// FIRST_WAIT is the time for the page to begin the requests that an action causes.
const FIRST_WAIT = 15;
// Each slice takes at least SLICE_REAL. Without this pacing, animations, IndexedDB and crypto finish too late.
const SLICE = 100;
const COARSE_SLICE = 400;
const SLICE_REAL = 15;
// Of 64 pages, the final state was seen on 58 after 1 s of page time; in real time on 43 after 500 ms, 25 after 200 ms.
const QUIET_PAGE = 1000;
// After this long without a change, a timer or any other known activity, the rest passes in coarse slices.
const CALM_PAGE = 250;
const QUIET_REAL = 500;
const MAX_PAGE = 4000;
const MAX_CHANGES = 3000;
// An address that takes longer, such as a long poll, is not waited for again.
const REQUEST_LIMIT = 3500;
// An address requested this often, with shorter pauses in between, is polled.
const POLLS = 3;
const POLL_PAUSE = 1200;
// Since work outside of the page's thread began or last answered.
const WORKER_LIMIT = 3300;
// Answers of workers and of storage reach a page only while its clock moves.
const ANSWER_REAL = 4;
// After the response, as `requestfinished` may never follow; and between two pieces of an answer.
const [REQUEST_GRACE, PIECE_PAUSE] = [200, 400];
const SOCKET_LIMIT = 3300;
// An answer may have many parts, the last of them when the server is done.
const SOCKET_PAUSE = 900;
// Signs of life and receipts of Engine.IO and Socket.IO, which have no answer.
const NO_QUESTION = /^(?:[235]|43\d*\[.*)$/s;
// How long a server that computes may leave a page empty or busy.
const SOCKET_WORK = 5000;
// A page whose scripts had to be stopped this often will not answer.
const MAX_STOPS = 3;
const FRAMES = 300;
// Scrolling advances with drawn frames, independent of the page's clock.
const SCROLL_REAL = 120;
const MAX_REAL_PASS = 4500;
// The state is queried less often while the page cannot be quiet yet.
const SLICES_PER_LOOK = 3;
const LOOK_REAL = 30;
const STUCK = 1000;
// What is called in one frame may lead to something in the next one.
const STILL_TRIES = 10;
const MAX_ADDRESSES = 1000;
// A page that loads this many documents in one settle and is still not quiet is restless.
const MAX_NAVIGATIONS = 5;
// This many events in so short a time block this process: their page is closed.
const MAX_EVENTS = 2000;
const EVENTS_WITHIN = 5000;
const MAX_DOWNLOADS = 20;
const MAX_LINKS = 5000;
const CLOSE_LIMIT = 5000;
// Types of requests whose answers `page.js` follows, and of those that no page waits for.
const FOLLOWED = new Set(["document", "fetch", "xhr"]);
const IGNORED = new Set(["eventsource", "media", "websocket", "ping", "cspviolationreport", "texttrack", "manifest"]);

class Settler {
  constructor(page, context) {
    this.page = page;
    this.context = context;
    this.isPageTime = context.isPageTime;
    [this.targets, this.requests] = [new Map(), new Map()];
    // The exchanges under way: when the first message was sent, and when the last answer came.
    this.sockets = new Map();
    this.openSockets = new Set();
    this.chatty = new WeakSet();
    // Sockets that left a message unanswered and have received nothing since.
    this.silentOnce = new WeakSet();
    this.heardAt = -Infinity;
    // Waiting for the server did not help.
    this.isForsaken = false;
    // Work outside of the page's thread still answered when the time was up: its answers do not prolong the wait any more.
    this.isEndless = false;
    this.streams = new Map();
    // Addresses of streams that stayed silent after the page had sent a request.
    this.silentStreams = new Set();
    // The requests of this settle by address, and how often one was repeated.
    [this.inTurn, this.longLived] = [new Map(), new Set()];
    // Requests that were given up, with when.
    this.overdue = new Map();
    [this.downloads, this.links, this.origins] = [[], [], new Set()];
    [this.navigations, this.brokenOffAt, this.countedSince] = [0, Infinity, -Infinity];
    // Parts that a document loads once it is complete, such as scripts, may do something at any time after that; and it may be
    // about to open another document.
    [this.isLoaded, this.hasLateParts] = [false, false];
    [this.events, this.isGone] = [0, false];
    // The page shows a message with a control, which may vanish.
    this.isPassing = false;
  }

  async start() {
    const { page } = this;
    // Pending requests of the old document will not be answered any more.
    this.context.openTabs.add(this);
    for (const event of ["crash", "close"])
      page.on(event, () => {
        this.isGone = true;
        this.context.openTabs.delete(this);
      });
    page.on("crash", () => { this.context.lost = "crashed"; });
    for (const event of ["console", "pageerror", "framenavigated"]) page.on(event, () => this.countEvent());
    page.on("download", download => {
      if (this.downloads.length < MAX_DOWNLOADS) this.downloads.push(download.suggestedFilename());
    });
    page.on("request", request => this.began(request));
    page.on("load", () => { this.isLoaded = true; });
    const ended = ms => request => {
      const entry = this.requests.get(request);
      if (entry) Object.assign(entry, { done: Math.min(entry.done, performance.now() + ms), isAnswered: true });
      this.overdue.delete(request);
      this.inTurn.get(address(request.url()))?.open.delete(request);
    };
    page.on("response", response => {
      const request = response.request();
      if (isStream(response) && !this.longLived.has(address(request.url())))
        this.streams.set(request, { since: performance.now(), wasAsked: false });
      ended(isStream(response) ? 0 : REQUEST_GRACE)(request);
    });
    for (const event of ["requestfinished", "requestfailed"])
      page.on(event, request => {
        ended(0)(request);
        this.streams.delete(request);
        // The document stays.
        if (event === "requestfailed" && isNavigation(request, page))
          [this.brokenOffAt, this.isLoaded, this.hasLateParts] = [performance.now(), true, true];
      });
    page.on("websocket", socket => {
      this.openSockets.add(socket);
      this.heardAt = performance.now();
      socket.on("framesent", ({ payload }) => NO_QUESTION.test(payload) || this.asked(socket));
      socket.on("framereceived", () => this.answered(socket));
      socket.on("close", () => {
        this.openSockets.delete(socket);
        this.sockets.delete(socket);
      });
    });
    page.on("framenavigated", frame => {
      if (frame === page.mainFrame()) {
        this.origins.add(origin(page));
        this.overdue.clear();
      }
      void this.attachFrame(frame);
    });
    // A new tab's first requests began before it was known.
    const earlier = await page.requests();
    for (const request of earlier) if (!request.existingResponse() && !request.failure()) this.began(request);
    await this.attach(page);
  }

  // What is sent before the answers pause belongs to the same exchange.
  asked(socket) {
    if (this.longLived.has(address(socket.url()))) return;
    const now = this.heardAt = performance.now();
    const { askedAt } = this.sockets.get(socket) ?? { askedAt: now };
    this.sockets.set(socket, { askedAt, answeredAt: null });
  }

  answered(socket) {
    this.heardAt = performance.now();
    this.silentOnce.delete(socket);
    const exchange = this.sockets.get(socket);
    if (this.chatty.has(socket)) this.sockets.delete(socket);
    else if (exchange) exchange.answeredAt = this.heardAt;
  }

  // Not every message has an answer.
  unanswered(socket) {
    if (this.silentOnce.has(socket)) this.giveUp(socket.url(), this.sockets, socket);
    else this.sockets.delete(socket);
    this.silentOnce.add(socket);
  }

  countEvent() {
    const now = performance.now();
    if (now - this.countedSince > EVENTS_WITHIN) [this.countedSince, this.events] = [now, 0];
    this.events += 1;
    if (this.events !== MAX_EVENTS) return;
    this.context.lost = "flooded";
    void soon(this.page.close(), CLOSE_LIMIT);
  }

  began(request) {
    const url = address(request.url());
    this.hasLateParts ||= this.isLoaded && !FOLLOWED.has(request.resourceType());
    if (IGNORED.has(request.resourceType()) || this.longLived.has(url)) return;
    const now = performance.now();
    if (isNavigation(request, this.page)) {
      [this.brokenOffAt, this.isLoaded, this.hasLateParts] = [Infinity, false, false];
      this.navigations += 1;
      if (this.context.delays) setImmediate(() => void this.context.delays.untilThere(this));
    }
    this.requests.set(request, { began: now, done: Infinity, isAnswered: false });
    // An action's effect may arrive through an open stream.
    for (const stream of this.streams.values()) Object.assign(stream, { since: now, wasAsked: true });
    const turn = this.inTurn.get(url) ?? { first: now, count: 0, open: new Set() };
    if (this.inTurn.size < MAX_ADDRESSES) this.inTurn.set(url, turn);
    if (!turn.open.size) turn.count += 1;
    turn.open.add(request);
    turn.last = now;
    if (turn.count >= POLLS && now - turn.first > REQUEST_LIMIT) this.longLived.add(url);
  }

  // The page polls the same address, and its server needs real time.
  isPolling() {
    const now = performance.now();
    for (const [url, { count, last }] of this.inTurn)
      if (count >= POLLS && now - last < POLL_PAUSE && !this.longLived.has(url)) return true;
    return false;
  }

  // Each renderer's clock is moved once.
  async advance(ms) {
    const clocks = new Map(this.all().reverse().map(target => [target.renderer ?? target, target]));
    if (this.isPageTime) await Promise.all([...clocks.values()].map(target => target.advance(ms)));
  }

  async attach(subject) {
    const session = await this.page.context().newCDPSession(subject);
    const target = new Target(session, this.context, () => this.isNavigating(),
      (...told) => causesOf(this.page.context()).follow(this.page, ...told), () => { this.hasLateParts = true; });
    this.targets.set(subject, target);
    session.on("Page.windowOpen", () => { this.context.tabAwaited = performance.now(); });
    session.on("close", () => { target.isClosed = true; this.targets.delete(subject); });
    await target.start();
  }

  // With site isolation, a frame of another site has its own process; without it, it has no session.
  async attachFrame(frame) {
    if (frame === this.page.mainFrame() || this.targets.has(frame) || this.targets.size >= MAX_FRAMES) return;
    await this.attach(frame).catch(() => {});
  }

  // Whether the page waits for its network, or a tab with the same clock does.
  isWaiting() {
    const others = [...this.context.openTabs].filter(other => other !== this && other.sharesClock(this));
    return [this, ...others].some(each => each.isInFlight());
  }

  sharesClock(other) {
    const renderers = new Set(other.all().map(target => target.renderer));
    return this.all().some(({ renderer }) => renderer && renderers.has(renderer));
  }

  isInFlight() {
    const now = performance.now();
    let isWaiting = Boolean(this.page.context()[DOWNLOADS]?.isBusy) || now - this.context.tabAwaited < REQUEST_LIMIT;
    for (const [request, { began, done }] of this.requests) {
      if (now >= done) this.requests.delete(request);
      else if (now - began > REQUEST_LIMIT && !isNavigation(request, this.page)) {
        this.overdue.set(request, now);
        this.giveUp(request.url(), this.requests, request);
      } else isWaiting = true;
    }
    for (const [socket, { askedAt, answeredAt }] of this.sockets) {
      if (answeredAt !== null && now - answeredAt >= SOCKET_PAUSE) this.sockets.delete(socket);
      else if (now - askedAt <= SOCKET_LIMIT) isWaiting = true;
      else if (answeredAt === null) this.unanswered(socket);
      else {
        // The answers never end: from now on, only the first one counts.
        this.chatty.add(socket);
        this.sockets.delete(socket);
      }
    }
    for (const target of this.all()) if (target.isReceiving(REQUEST_LIMIT, PIECE_PAUSE)) isWaiting = true;
    return isWaiting;
  }

  // Whether a request was given up in this settle and still has no answer.
  isOverdue(round) {
    for (const at of this.overdue.values()) if (at >= round.began) return true;
    return false;
  }

  isNavigating() {
    return [...this.requests].some(([request, { isAnswered }]) => !isAnswered && isNavigation(request, this.page));
  }

  giveUp(url, map, key) {
    if (this.longLived.size < MAX_ADDRESSES) this.longLived.add(address(url));
    map.delete(key);
  }

  // The combined state of all frames; `quiet` is the time since the last change in any of them.
  async look(round) {
    const limit = this.isPageTime ? QUIET_PAGE : QUIET_REAL;
    // Facts determined only for a quiet page decide early whether it is calm.
    const calm = this.isPageTime ? CALM_PAGE : limit;
    const found = await Promise.all(this.all().map(target => target.evaluate(`wabe.state(${calm}, ${this.openSockets.size > 0})`)));
    const states = found.flat();
    const [scrolls, asked] = ["scrolls", "asked"].map(name => states.reduce((sum, state) => sum + state[name], 0));
    const now = performance.now();
    // What a script scrolls smoothly begins to move a few frames later.
    if (scrolls !== (round.scrolls ?? scrolls) || asked > round.asked) round.scrolledAt = now;
    [round.scrolls, round.asked] = [scrolls, asked];
    const seen = {
      // A page whose state is unknown is not quiet: it may be being replaced, or have shadowed the functions used.
      quiet: states.length || !this.all().some(target => target.worlds.size) ? Math.min(...states.map(state => state.quiet)) : 0,
      ...Object.fromEntries(["timer", "worker", "active", "idle", "blank"].map(name => [name, states.some(state => state[name])])),
      // A request that takes too long to wait for may still fill a page that says so.
      busy: states.some(state => state.busy || (state.unfinished && this.isOverdue(round))),
      unfinished: states.some(state => state.unfinished),
      moving: now - round.scrolledAt < SCROLL_REAL || states.some(state => state.moving),
      isPassing: states.some(state => state.passing !== null),
      isAtRest: states.every(state => (state.passing ?? state.quiet) >= QUIET_REAL),
    };
    const isQuiet = seen.quiet >= limit;
    if (!isQuiet && seen.quiet < now - round.began) round.waits.add("changes");
    const reasons = ["timer", "worker", "busy", "moving"].filter(reason => seen[reason]);
    reasons.forEach(reason => round.waits.add(reason));
    const isCalm = seen.quiet >= calm && !reasons.length && !seen.active;
    const isDone = isQuiet && !["timer", "active", "busy", "moving"].some(reason => seen[reason]);
    // A message with a control: the page is shown before the message is gone, as early as a quiet page in real time.
    const isPassing = seen.isPassing && seen.isAtRest && !seen.busy;
    const awaitsServer = this.awaitsStream(round, seen.quiet) || this.awaitsSocket(round, seen.unfinished || seen.blank);
    const answers = String(states.map(state => state.answers));
    const needsRealTime = this.needsRealTime(round, seen.worker, answers) || awaitsServer;
    // Of one document: others can change it.
    const isFollowed = states.length === 1 && this.isAlone() && !needsRealTime && !seen.busy && !seen.unfinished && !seen.moving;
    const next = isFollowed ? states[0].next : null;
    return { isQuiet, isCalm, isMoving: seen.moving, awaitsIdle: seen.idle, isBusy: seen.busy, isDone, isPassing, needsRealTime, next, ...states[0] && { changedAt: states[0].changedAt, happened: states[0].happened, hasCaret: states[0].caret } };
  }

  // Whether nothing but the page's document can change it, as far as this process knows.
  isAlone() {
    return this.page.frames().length === 1 && this.targets.size === 1 && !this.hasLateParts &&
      ![this.requests, this.openSockets, this.streams].some(({ size }) => size);
  }

  // Whether nothing moves in the page, as far as it is known.
  async isAtRest() {
    if (!this.isPageTime || !this.isAlone()) return false;
    const states = (await Promise.all(this.all().map(target => target.evaluate("wabe.next()")))).flat();
    return states.length === 1 && states[0] === -1;
  }

  // Activity that neither follows the page's clock nor is a request in flight. Smooth scrolling follows drawn frames.
  needsRealTime(round, hasWorker, answers) {
    const now = performance.now();
    if (!hasWorker || (answers !== round.answers && !this.isEndless)) round.workerSince = now;
    [round.hasWorker, round.answers] = [hasWorker, answers];
    round.awaitsWorker = hasWorker && now - round.workerSince < WORKER_LIMIT;
    return now - round.scrolledAt < SCROLL_REAL || round.awaitsWorker || this.isPolling();
  }

  // An empty or busy page, and whose server writes into it through a socket, waits for that server.
  awaitsSocket(round, isUnfinished) {
    if (!isUnfinished || !this.openSockets.size) {
      this.isForsaken = false;
      return false;
    }
    this.isForsaken ||= performance.now() - Math.max(this.heardAt, round.began) > SOCKET_WORK;
    if (!this.isForsaken) round.waits.add("requests");
    return !this.isForsaken;
  }

  // After an event stream opens, or the page has sent a request, wait until the page has changed.
  awaitsStream(round, quiet) {
    const now = performance.now();
    let isAwaited = false;
    for (const [request, stream] of this.streams) {
      const waited = now - stream.since;
      if (waited < 0) continue;
      const hasChanged = quiet < waited - REQUEST_GRACE / 2;
      if (!hasChanged && waited <= REQUEST_LIMIT) isAwaited = true;
      else this.heardFrom(request, stream, hasChanged);
    }
    if (isAwaited) round.waits.add("requests");
    return isAwaited;
  }

  // Not every request has an effect that arrives through the stream: after two without one, stop waiting.
  heardFrom(request, stream, hasChanged) {
    const url = address(request.url());
    if (hasChanged) this.silentStreams.delete(url);
    else if (stream.wasAsked && this.silentStreams.has(url)) return this.giveUp(url, this.streams, request);
    else if (stream.wasAsked && this.silentStreams.size < MAX_ADDRESSES) this.silentStreams.add(url);
    // Wait for nothing until the page sends a request.
    stream.since = Infinity;
  }

  all = () => [...this.targets.values()];

  // Requests in flight are waited for at wall-clock speed: the page's timeouts apply to them.
  async requestsPass(round) {
    while (this.isWaiting() && this.goesOn(round)) {
      round.waits.add("requests");
      round.requestAt = performance.now();
      if (await this.context.delays?.skip(this, REQUEST_LIMIT)) continue;
      await Promise.all([delay(SLICE_REAL), this.clocksPass()]);
    }
  }

  // Time that has passed on the page's clock only counts as if it had passed here.
  skipped(ms) {
    for (const request of this.requests.values()) request.began -= ms;
  }

  goesOn({ until }) {
    return performance.now() < until && !this.isStuck();
  }

  // Waiting cannot help: the page's scripts are blocked.
  isStuck() {
    return this.isGone || this.all().some(target => target.hasDialog);
  }

  isSilent() {
    return this.all().some(target => target.isSilent());
  }

  isHopeless() {
    return this.all().some(target => target.stops >= MAX_STOPS);
  }

  async quietInPageTime(round) {
    let [slices, slice, isPaced] = [0, SLICE, true];
    while (round.pageTime < MAX_PAGE && this.goesOn(round)) {
      await Promise.all([delay(isPaced ? SLICE_REAL : 0), this.advance(slice)]);
      round.pageTime += slice;
      slices += 1;
      await this.requestsPass(round);
      if (slices > 1 && round.pageTime < QUIET_PAGE && slice === SLICE && slices % SLICES_PER_LOOK) continue;
      const seen = await this.look(round), { isQuiet, isCalm, isMoving, isDone, isPassing, needsRealTime, next } = seen;
      if (await this.isStill(round, seen)) break;
      const isEnough = round.pageTime - round.workedAt >= QUIET_PAGE;
      if (!needsRealTime && (isPassing || (isDone && isEnough))) break;
      // What such work has begun, when it was over, takes its time from then on.
      if (round.awaitsWorker) round.workedAt = round.pageTime;
      if (needsRealTime) await this.realTimePasses(round);
      // The browser is idle only after frames.
      else if (seen.awaitsIdle) await this.framesDrawn();
      // Nothing happens until a timer fires, so pacing would only cost time.
      const isCoarse = (isQuiet && !isMoving && isEnough) || (isCalm && !needsRealTime);
      // Exactly until the next timer, if there is nothing else.
      isPaced = !(next > SLICE);
      const left = QUIET_PAGE - round.pageTime;
      slice = isPaced ? isCoarse ? COARSE_SLICE : SLICE : Math.min(Math.ceil(next), COARSE_SLICE, left > 0 ? Math.max(left, SLICE) : Infinity);
    }
  }

  // Whether nothing is pending, and nothing happens in two frames, after which nothing is pending. So nothing begins to listen,
  // and a snapshot and a picture taken meanwhile show the page as it stays.
  async isStill(round, before) {
    for (let tries = 0; before.next === -1 && tries < STILL_TRIES && this.goesOn(round); tries++) {
      const listening = Promise.all(this.all().map(target => target.findListening()));
      const early = listening.then(() => this.take?.()).catch(() => null);
      // Playwright hides a caret by a change of the document.
      const picture = before.hasCaret ? null : this.context.picture(this.page, { caret: "initial" });
      await Promise.all([this.framesDrawn(), listening]);
      const seen = await this.look(round);
      // A round that a dialog ended goes on after it, beside the next one.
      if (seen.changedAt !== before.changedAt || this.round !== round) return false;
      round.isStill = seen.next === -1 && seen.happened === before.happened;
      if (round.isStill) [this.early, this.shot] = [early, picture];
      if (round.isStill) return true;
      // One at a time: pictures wait for each other.
      await Promise.all([early, picture]);
      before = seen;
    }
    return false;
  }

  // The snapshot that `take` takes, and that the next settle takes early.
  async snapshot(take) {
    const { early } = this;
    [this.take, this.early] = [take, null];
    return await early ?? take();
  }

  async realTimePasses(round) {
    const until = performance.now() + MAX_REAL_PASS;
    do {
      // A picture of a canvas is made while the browser is idle, which it is only after frames.
      await this.framesDrawn(round.awaitsWorker ? ANSWER_REAL : SLICE_REAL);
      await this.requestsPass(round);
    } while (performance.now() < until && this.goesOn(round) && (await this.look(round)).needsRealTime);
  }

  async quietInRealTime(round) {
    while (this.goesOn(round)) {
      await this.requestsPass(round);
      const { isDone, isBusy, isPassing, needsRealTime } = await this.look(round);
      const sinceRequest = performance.now() - round.requestAt;
      if ((isDone || isPassing) && !needsRealTime && sinceRequest >= QUIET_REAL) break;
      // A page that never stops changing is observed as is.
      if (!isBusy && !needsRealTime && sinceRequest >= MAX_CHANGES) break;
      await delay(LOOK_REAL);
    }
  }

  // `limit` is for a page that answers; a script that computes is waited for until `longLimit`.
  async settle(limit, longLimit, withLinks) {
    const began = performance.now();
    const [until, end] = [began + limit, began + longLimit];
    const round = { withLinks, began, until, end, requestAt: began, scrolledAt: -Infinity, asked: 0, pageTime: 0, workedAt: 0, workerSince: began, waits: new Set() };
    this.inTurn.clear();
    [this.round, this.navigations, this.shot, this.early] = [round, 0, null, null];
    this.all().forEach(target => target.begin());
    let found, document;
    do {
      found = await Promise.race([this.quiet(round), this.stuck(round)]);
      document = found?.map(each => each.document).find(Boolean) ?? null;
      // Between two documents nothing answers, so wait for a page that navigates by itself.
    } while (found && !document && this.navigations > 1 && this.goesOn(round));
    this.round = null;
    const hasDialog = this.all().some(target => target.hasDialog);
    const [wasStopped, isHopeless] = [this.all().some(target => target.stops), this.isHopeless()];
    this.all().forEach(target => Object.assign(target, { isSettling: false, stops: 0, usedAt: performance.now() }));
    this.hasLateParts = false;
    return {
      real_ms: Math.round(performance.now() - began),
      page_ms: round.pageTime,
      waited_for: [...round.waits],
      vanished: found?.flatMap(({ vanished }) => vanished) ?? [],
      // Under a dialog this report does not reach the judge.
      downloads: hasDialog ? [] : this.downloads.splice(0),
      links: hasDialog ? [] : this.links.splice(0),
      stopped: wasStopped,
      restless: this.navigations >= MAX_NAVIGATIONS && (!document || performance.now() >= round.until),
      silent: !this.isGone && (isHopeless || (!found && this.isSilent())),
      document,
      // After many navigations, Chromium may leave a page between two documents without going to either.
      lost_document: Boolean(found) && !document && !this.isStuck() && !this.isNavigating(),
      ...hasDialog ? { lost: null, closed_tabs: 0 } : this.context.takeEvents(),
    };
  }

  // What each frame reports, once the page is quiet or the time is up.
  async quiet(round) {
    if (!this.isPageTime || !this.isAlone() || !await this.isStill(round, await this.look(round))) {
      await delay(FIRST_WAIT);
      await this.requestsPass(round);
      await (this.isPageTime ? this.quietInPageTime(round) : this.quietInRealTime(round));
      const hasNoEnd = round.awaitsWorker && performance.now() >= round.until;
      this.isEndless = Boolean(round.hasWorker && (this.isEndless || hasNoEnd));
    }
    if (!round.isStill) await this.framesDrawn();
    const last = `({ ...wabe.observed(), links: ${Boolean(round.withLinks)} ? wabe.links() : [] })`;
    const asked = this.all().map(target => Promise.all([target.evaluate(last), round.isStill || target.findListening()]));
    const found = (await Promise.all(asked)).flatMap(([each]) => each);
    this.links.push(...found.flatMap(each => each.links).slice(0, MAX_LINKS - this.links.length));
    this.isPassing = found.some(each => each.passing);
    if (round.isStill && this.round === round) void this.context.shoot(this.page);
    return found;
  }

  // Resolves if the page cannot answer: a dialog is open, a script does not end, or the page is gone.
  async stuck(round) {
    for (let at = performance.now(); at < Math.min(round.until, round.end) + STUCK && !this.isStuck() && !this.isHopeless();) {
      await delay(TICK);
      const now = performance.now();
      // A script that computes does not use up the page's time either.
      if (this.isSilent()) {
        round.waits.add("busy");
        round.until += now - at;
      }
      at = now;
    }
  }

  async framesDrawn(pause = SLICE_REAL) {
    const frames = Promise.all(this.all().map(target => target.evaluate("wabe.frames()")));
    await Promise.race([frames, this.framesPass(frames, pause)]);
  }

  // The clock must keep moving, because otherwise no frames are drawn.
  async framesPass(frames, pause) {
    let isDone = false;
    frames.finally(() => { isDone = true; }).catch(() => {});
    const until = performance.now() + FRAMES;
    while (!isDone && performance.now() < until) {
      await delay(pause);
      await this.clocksPass();
    }
  }

  async clocksPass() {
    await Promise.all(this.all().map(target => target.catchUp()));
  }
}

module.exports = { CLOSE_LIMIT, SLICE, SLICE_REAL, Settler };
