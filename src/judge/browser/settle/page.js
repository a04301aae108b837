// Follows what a page schedules: one table of sources for two purposes. Runs in every document, in the page's world. The
// recorder (`recorder.js`) talks to it by events with secret names.
// - In page time it says what is still pending of what the last input caused, so that its effect is waited for.
// - After an act that disqualifies (`../causes.cjs`), in both modes, it says what runs: the act that scheduled it, directly or
//   through others. What it does not know of has an unknown cause. Before such an act it tells nothing, and in real time
//   changes nothing in the page.
(eventName, isPageTime, horizonMs, longMs) => {
  // Kept here, because the page may replace them later.
  const { addEventListener, dispatchEvent, clearTimeout, clearInterval, CustomEvent, MessageChannel } = globalThis;
  const now = performance.now.bind(performance);
  const { apply } = Reflect;
  const { then } = Promise.prototype;
  const listen = EventTarget.prototype.addEventListener;
  const queue = globalThis.queueMicrotask;
  const phaseOf = Object.getOwnPropertyDescriptor(Event.prototype, "eventPhase").get;
  const { prototype } = MessagePort;
  const [post, receive] = [prototype.postMessage, Object.getOwnPropertyDescriptor(prototype, "onmessage").set];

  // What is scheduled belongs to the input that caused it: a carousel already turning is not an effect of a click.
  // What belongs to inputs whose effect was already observed is not waited for.
  let [input, observed] = [1, 0];
  // The acts have numbers of the recorder. What was scheduled before it followed them, or by the document itself while it
  // loads, has the first cause of the document.
  const [FIRST, UNKNOWN, NOTHING] = [0, -1, -2];
  let [isFollowing, isLoading, isEnding, running] = [false, false, false, null];
  // What runs ends with its task: with the microtasks after a function that was called, of which there are at most so many
  // in a row, and with the dispatch of an event (`isDispatched`), whose listeners each have microtasks after them.
  const TURNS = 200;
  let [turns, isTurning, isDispatched] = [0, false, null];
  const either = (one, other) => () => one() || other();
  const isBeing = event => () => apply(phaseOf, event, []) !== Event.NONE;
  // An act in another document may have scheduled what was scheduled just before this one was followed.
  const GAP_MS = 2000;
  let trustedUntil = Infinity;
  const tell = act => apply(dispatchEvent, globalThis, [new CustomEvent(`${eventName}-runs`, { detail: act })]);
  let ends;
  const end = () => {
    [running, isDispatched] = [null, null];
    tell(isLoading ? FIRST : NOTHING);
  };
  const turn = () => {
    if (turns-- > 0) return apply(queue, globalThis, [turn]);
    isTurning = false;
    if (!isDispatched) return end();
    // Nothing tells the end of a dispatch, so at the latest after the tasks that wait.
    if (!isEnding) apply(post, ends, [null]);
    isEnding = true;
  };
  // What runs, unless its dispatch is over.
  const known = () => {
    if (isDispatched && !isDispatched()) [running, isDispatched] = [null, null];
    return running;
  };
  // Of two that cannot be told apart: the later one if both are acts of the site, which have even numbers.
  const isOfSite = ({ act }) => act > 0 && act % 2 === 0;
  const together = (one, other) => !one || one.act === other.act || (isOfSite(one) && isOfSite(other)) ? other : { ...other, act: UNKNOWN };
  // Until the task is over, with what follows in it after an `await`. `isTask`: nothing else can have begun in the same task.
  const begin = (cause, isTask, dispatch) => {
    const begun = cause.at > trustedUntil ? { ...cause, act: UNKNOWN } : cause, before = isTask ? null : known();
    running = together(before, begun);
    // An event may be dispatched by a script, which goes on after it.
    if (!before) isDispatched = dispatch;
    else if (dispatch && isDispatched) isDispatched = either(isDispatched, dispatch);
    tell(running.act);
    turns = TURNS;
    if (!isTurning) apply(queue, globalThis, [turn]);
    isTurning = true;
  };
  // The cause of what is scheduled now; also told of what nobody is known to have scheduled.
  const current = () => {
    if (isFollowing && !known()) begin({ input, act: isLoading ? FIRST : UNKNOWN });
    return running ?? { input, act: FIRST, at: now() };
  };
  const run = (cause, call, isTask) => {
    if (isFollowing) return begin(cause, isTask), call();
    const before = running;
    running = cause;
    try {
      return call();
    } finally {
      running = before;
    }
  };

  // Timers that fire within the horizon, and work in progress whose answer comes in real time.
  const [due, pending] = [new Map(), new Map()];
  // `places` are those of functions among the arguments. A handler may also be a string of code. `isQuiet`: the judge's
  // code uses it too, so what nobody is known to have scheduled is not told.
  const calling = (places, { isTask = true, isQuiet = !isTask } = {}) => (schedule, _, isTimer) => function (...given) {
    const cause = isQuiet ? known() : current(), wait = Number(given[1]) || 0;
    let id;
    for (const place of places) {
      const handler = given[place];
      if (typeof handler === "function") given[place] = function (...passed) {
        if (isTimer) due.delete(id);
        return cause ? run(cause, () => apply(handler, this, passed), isTask) : apply(handler, this, passed);
      };
    }
    id = apply(schedule, this, given);
    if (isTimer && isPageTime && wait > 0 && wait <= horizonMs) due.set(id, { at: now() + wait, cause, wait });
    return id;
  };
  const answered = (cause, work) => {
    pending.delete(work);
    if (isFollowing) begin(cause);
  };
  const promising = (start, _, isAwaited) => function (...given) {
    const cause = current(), work = {};
    const answer = apply(start, this, given);
    if (isAwaited && isPageTime) pending.set(work, cause);
    return !isAwaited && !isFollowing ? answer : apply(then, answer, [
      result => { answered(cause, work); return result; },
      error => { answered(cause, work); throw error; },
    ]);
  };
  // Events of what is returned.
  const returning = types => start => function (...given) {
    const cause = current(), target = apply(start, this, given);
    if (isFollowing) for (const type of types) apply(listen, target, [type, event => begin(cause, false, isBeing(event)), true]);
    return target;
  };
  // Events of what something is sent to, all of which what was sent before may have caused. Their listeners are called in
  // order, so the first one is added when it is made, if it is made while that is followed.
  const [askedBy, peers] = [new WeakMap(), new WeakMap()];
  const hearing = (target, types) => {
    if (askedBy.has(target)) return;
    askedBy.set(target, null);
    for (const type of types) apply(listen, target, [type, event => {
      pending.delete(target);
      // Some events come at once.
      if (isFollowing) begin(askedBy.get(target) ?? known() ?? { input, act: UNKNOWN }, false, isBeing(event));
    }, true]);
  };
  const asking = types => (start, _, isAwaited) => function (...given) {
    const cause = current();
    for (const each of [this, peers.get(this) ?? this]) {
      hearing(each, types);
      askedBy.set(each, together(askedBy.get(each), cause));
    }
    if (isAwaited && isPageTime) pending.set(this, cause);
    return apply(start, this, given);
  };
  const making = types => (type, _, isAwaited) => new Proxy(type, {
    construct(...given) {
      const cause = current(), made = Reflect.construct(...given), { port1, port2 } = made;
      for (const part of port1 ? [port1, port2] : [made]) hearing(part, types);
      if (port1) peers.set(port1, port2).set(port2, port1);
      if (isAwaited && isPageTime) pending.set(made, cause);
      return made;
    },
  });

  // What sends something, but calls nothing back.
  const sending = start => function (...given) {
    current();
    return apply(start, this, given);
  };

  // What calls back, and how it is known. Also awaited in page time: what the page's clock moves, and work outside of the
  // page's thread, which it does not move. What is not here has an unknown cause.
  const SOURCES = [
    [globalThis, ["setTimeout", "setInterval"], calling([0]), true],
    [globalThis, ["requestAnimationFrame"], calling([0], { isQuiet: true })],
    [globalThis, ["requestIdleCallback"], calling([0])],
    [globalThis.Scheduler?.prototype, ["postTask"], calling([0])],
    [globalThis, ["queueMicrotask"], calling([0], { isTask: false })],
    [Promise.prototype, ["then"], calling([0, 1], { isTask: false })],
    [globalThis.SubtleCrypto?.prototype, [
      "decrypt", "deriveBits", "deriveKey", "digest", "encrypt", "exportKey", "generateKey", "importKey", "sign", "unwrapKey",
      "verify", "wrapKey",
    ], promising, true],
    [globalThis.WebAssembly, ["compile", "compileStreaming", "instantiate", "instantiateStreaming"], promising, true],
    [globalThis, ["createImageBitmap"], promising, true],
    [globalThis, ["fetch"], promising],
    [Response.prototype, ["arrayBuffer", "blob", "formData", "json", "text"], promising],
    [Blob.prototype, ["arrayBuffer", "text"], promising],
    [ReadableStreamDefaultReader.prototype, ["read"], promising],
    [globalThis.Cache?.prototype, ["add", "addAll", "delete", "keys", "match", "put"], promising],
    [globalThis.CacheStorage?.prototype, ["delete", "has", "keys", "match", "open"], promising],
    [globalThis.LockManager?.prototype, ["request"], calling([1, 2])],
    [globalThis, ["Worker"], making(["message"]), true],
    [Worker.prototype, ["postMessage"], asking(["message"]), true],
    [globalThis, ["MessageChannel"], making(["message"])],
    [prototype, ["postMessage"], asking(["message"])],
    [globalThis, ["WebSocket"], making(["message"])],
    [WebSocket.prototype, ["send"], asking(["message"])],
    [globalThis, ["XMLHttpRequest"], making(["readystatechange", "load", "loadend"])],
    [XMLHttpRequest.prototype, ["send"], asking(["readystatechange", "load", "loadend"])],
    [globalThis, ["FileReader"], making(["load", "loadend"])],
    [FileReader.prototype, ["readAsArrayBuffer", "readAsDataURL", "readAsText"], asking(["load", "loadend"])],
    [IDBFactory.prototype, ["deleteDatabase", "open"], returning(["upgradeneeded", "success", "error"])],
    [IDBDatabase.prototype, ["transaction"], returning(["complete", "error", "abort"])],
    ...[IDBObjectStore, IDBIndex].map(each => [each.prototype, [
      "add", "clear", "count", "delete", "get", "getAll", "getAllKeys", "getKey", "openCursor", "openKeyCursor", "put",
    ], returning(["success", "error"])]),
    [Element.prototype, ["animate"], returning(["finish", "cancel"])],
    [globalThis, ["EventSource"], making(["message", "open", "error"])],
    [HTMLElement.prototype, ["blur", "click", "focus"], sending],
    [SVGElement.prototype, ["blur", "focus"], sending],
    [HTMLFormElement.prototype, ["requestSubmit", "reset", "submit"], sending],
    [Document.prototype, ["execCommand"], sending],
    [EventTarget.prototype, ["dispatchEvent"], sending],
    [Navigator.prototype, ["sendBeacon"], sending],
    [History.prototype, ["back", "forward", "go"], sending],
    [globalThis.Navigation?.prototype, ["back", "forward", "navigate", "reload", "traverseTo"], sending],
    [globalThis, ["open"], sending],
  ];
  const install = wanted => {
    for (const [owner, names, how, isAwaited = false] of SOURCES)
      if (isAwaited === wanted)
        for (const name of names) if (typeof owner?.[name] === "function") owner[name] = how(owner[name], name, isAwaited);
  };
  if (isPageTime) install(true);
  const hear = (name, heard) => addEventListener(`${eventName}${name}`, event => {
    event.stopImmediatePropagation();
    heard(event);
  }, { capture: true });

  // Told when the recorder begins to follow acts; asked for at once, because it may have begun before this.
  hear("-follow", ({ detail: isOwn }) => {
    if (isFollowing) return;
    if (!isOwn) trustedUntil = now() - GAP_MS;
    [isFollowing, isLoading] = [true, document.readyState === "loading"];
    if (!isPageTime) install(true);
    install(false);
    const { port1, port2 } = new MessageChannel();
    ends = port2;
    apply(receive, port1, [() => {
      isEnding = false;
      if (isDispatched) end();
    }]);
    end();
  });
  const isActing = () => !apply(dispatchEvent, globalThis, [new CustomEvent(`${eventName}-acting`, { cancelable: true })]);
  hear("-act", ({ detail }) => isFollowing && begin({ input, act: detail }, true, isActing));
  for (const type of ["DOMContentLoaded", "load"]) addEventListener(type, event => {
    if (isFollowing) begin({ input, act: FIRST }, true, isBeing(event));
    isLoading = false;
  }, { capture: true });
  // What another document did, whatever it was.
  for (const type of ["message", "storage"]) addEventListener(type, () => isFollowing && begin({ input, act: UNKNOWN }), true);
  // What the browser tells belongs to nothing that ran before. A window does not hear what elements have loaded.
  const untold = ({ isTrusted }) => {
    if (isTrusted && isFollowing && running && !isLoading) end();
  };
  for (const type of [
    "animationend", "animationiteration", "animationstart", "hashchange", "popstate", "scroll", "toggle", "transitionend",
    "visibilitychange",
  ]) addEventListener(type, untold, true);
  for (const type of ["error", "load"]) apply(listen, document, [type, untold, true]);
  apply(dispatchEvent, globalThis, [new CustomEvent(`${eventName}-starts`)]);
  if (!isPageTime) return;

  // An interval or a timer taken back.
  const forgetting = cancel => function (id) {
    due.delete(id);
    return apply(cancel, this, [id]);
  };
  globalThis.clearTimeout = forgetting(clearTimeout);
  globalThis.clearInterval = forgetting(clearInterval);
  // Frames are notified of an input by a message.
  const inputs = [
    "pointerover", "pointermove", "pointerdown", "keydown", "input", "change", "wheel", "drop", "popstate", "visibilitychange", "message",
  ];
  for (const type of inputs)
    addEventListener(type, () => { input += 1; }, { capture: true, passive: true });
  // Asked by the recorder, which receives the answer as `defaultPrevented`.
  const answer = (name, isPending) => hear(name, event => isPending() && event.preventDefault());
  const isDue = counts => {
    for (const [id, timer] of due) {
      if (timer.at < now() - horizonMs) due.delete(id);
      else if (timer.cause.input > observed && counts(timer)) return true;
    }
    return false;
  };
  answer("", () => isDue(() => true));
  // Timers that change the page soon, rather than end what it shows meanwhile.
  answer("-short", () => isDue(({ wait }) => wait < longMs));
  answer("-worker", () => [...pending.values()].some(cause => cause.input > observed));
  hear("-observed", () => { observed = input; });

  // Page time moves `performance.now()` but not the timestamps of events. Vue 2 compares the two, and would ignore every
  // click on an element that it rendered after the event's apparent time.
  const stamps = new WeakMap();
  Object.defineProperty(Event.prototype, "timeStamp", {
    configurable: true,
    enumerable: true,
    get() {
      if (!stamps.has(this)) stamps.set(this, now());
      return stamps.get(this);
    },
  });
}
