// Follows what a page schedules: one table of sources for two purposes. Runs in every document, in the page's world. The
// recorder (`recorder.js`) talks to it by events with secret names.
// - In page time it says what is still pending of what the last input caused, so that its effect is waited for, and
//   whether anything is pending at all (`-still`).
// - After an act that disqualifies (`../causes.cjs`), in both modes, it says what runs: the act that scheduled it, directly or
//   through others. What it does not know of has an unknown cause. Before such an act it tells nothing, and in real time
//   changes nothing in the page.
(eventName, isPageTime, horizonMs, longMs) => {
  // Kept here, because the page may replace them later.
  const {
    addEventListener, dispatchEvent, cancelAnimationFrame, cancelIdleCallback, clearTimeout, clearInterval, CustomEvent, MessageChannel,
  } = globalThis;
  const now = performance.now.bind(performance);
  const { apply } = Reflect;
  const { then } = Promise.prototype;
  const listen = EventTarget.prototype.addEventListener;
  const queue = globalThis.queueMicrotask;
  const phaseOf = Object.getOwnPropertyDescriptor(Event.prototype, "eventPhase").get;
  const { prototype } = MessagePort;
  const urlOf = Object.getOwnPropertyDescriptor(WebSocket.prototype, "url").get;
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

  // Timers that fire within the horizon; work in progress whose answer comes in real time; and what else may call back.
  const [due, pending, others] = [new Map(), new Map(), new Map()];
  // The page uses something that nobody follows.
  let hasUnknown = false;
  const [AWAITED, PACED, COUNTED] = [3, 2, 1];
  const waits = (work, cause, kind, name) => {
    if (!isPageTime || !kind) return;
    if (kind === AWAITED) pending.set(work, cause);
    else others.set(work, { cause, name: kind === PACED ? name : null });
  };
  // When something last called back that belongs to an effect not observed yet: of each name only the first calls of an input,
  // because an animation or a stream may never end.
  const MAX_CALLS = 6;
  let [activeAt, calls] = [-Infinity, new Map()];
  // Of work in progress every answer counts: it is pending only while there is more of it.
  let answers = 0;
  const isNew = cause => cause.input > observed;
  const isFirst = name => (calls.get(name) ?? 0) < MAX_CALLS;
  const over = (work, cause, name) => {
    const isAnswer = pending.delete(work);
    others.delete(work);
    if (!isNew(cause ?? { input })) return;
    if (isAnswer) answers += 1;
    if (!isFirst(name)) return;
    calls.set(name, (calls.get(name) ?? 0) + 1);
    activeAt = now();
  };
  // `places` are those of functions among the arguments. A handler may also be a string of code. `isQuiet`: the judge's
  // code uses it too, so what nobody is known to have scheduled is not told.
  const calling = (places, { isTask = true, isQuiet = !isTask, isTimer = false } = {}) => (schedule, name, kind) => function (...given) {
    const cause = isQuiet ? known() : current(), wait = Number(given[1]) || 0;
    let id, work;
    for (const place of places) {
      const handler = given[place];
      if (typeof handler === "function") given[place] = function (...passed) {
        if (kind && !due.get(id)?.hasFired) over(work, cause, name);
        if (name === "setInterval" && due.has(id)) Object.assign(due.get(id), { at: now() + wait, hasFired: true });
        else due.delete(id);
        return cause ? run(cause, () => apply(handler, this, passed), isTask) : apply(handler, this, passed);
      };
    }
    id = apply(schedule, this, given);
    work = typeof id === "number" ? `${name} ${id}` : {};
    if (!isTimer) waits(work, cause ?? { input }, kind, name);
    else if (isPageTime && wait <= horizonMs) due.set(id, { at: now() + wait, cause, wait, hasFired: false });
    return id;
  };
  // A time that is known when it begins, until `signal` takes it back or tells that it is over.
  const lapses = (wait, cause, signal, key = signal) => {
    if (!isPageTime || !(wait <= horizonMs)) return;
    due.set(key, { at: now() + wait, cause, wait, hasFired: false });
    if (signal instanceof AbortSignal) apply(listen, signal, ["abort", () => due.delete(key)]);
  };
  const posting = (post, name, kind) => {
    const start = calling([0])(post, name, kind);
    return function (task, options) {
      const { delay, signal } = options ?? {}, key = {}, cause = current();
      const called = function () {
        due.delete(key);
        return task();
      };
      const result = apply(start, this, [typeof task === "function" ? called : task, options]);
      if (delay > 0) lapses(delay, cause, signal, key);
      return result;
    };
  };
  const lapsing = start => function (wait) {
    const cause = current(), signal = apply(start, this, [wait]);
    lapses(wait, cause, signal);
    return signal;
  };
  const answered = (cause, work, name) => {
    over(work, cause, name);
    if (isFollowing) begin(cause);
  };
  const promising = (start, name, kind) => function (...given) {
    const cause = current(), work = {};
    const answer = apply(start, this, given);
    waits(work, cause, kind, name);
    return apply(then, answer, [
      result => { answered(cause, work, name); return result; },
      error => { answered(cause, work, name); throw error; },
    ]);
  };
  // Events of what is returned.
  const returning = types => (start, name, kind) => function (...given) {
    const cause = current(), target = apply(start, this, given);
    waits(target, cause, kind, name);
    for (const type of isFollowing || kind ? types : []) apply(listen, target, [type, event => {
      if (type !== "upgradeneeded") over(target, cause, name);
      if (isFollowing) begin(cause, false, isBeing(event));
    }, true]);
    return target;
  };
  // Events of what something is sent to, all of which what was sent before may have caused. Their listeners are called in
  // order, so the first one is added when it is made, if it is made while that is followed.
  const [askedBy, peers] = [new WeakMap(), new WeakMap()];
  const hearing = (target, types) => {
    if (askedBy.has(target)) return;
    askedBy.set(target, null);
    for (const type of types) apply(listen, target, [type, event => {
      if (type === types.at(-1)) over(target, askedBy.get(target), type);
      // Some events come at once.
      if (isFollowing) begin(askedBy.get(target) ?? known() ?? { input, act: UNKNOWN }, false, isBeing(event));
    }, true]);
  };
  // Of requests for addresses that contain their answers, the network tells nothing.
  const isInside = /^(?:blob|data):/i, locals = new WeakSet();
  const opening = start => function (...given) {
    locals[isInside.test(given[1]) ? "add" : "delete"](this);
    return apply(start, this, given);
  };
  const fetching = (start, name, kind) => {
    const [remote, local] = [kind, AWAITED].map(each => promising(start, name, each));
    return function (...given) {
      return apply(isInside.test(given[0]) ? local : remote, this, given);
    };
  };
  const asking = types => (start, name, kind) => function (...given) {
    const cause = current();
    for (const each of [this, peers.get(this) ?? this]) {
      hearing(each, types);
      askedBy.set(each, together(askedBy.get(each), cause));
    }
    waits(peers.get(this) ?? this, cause, locals.has(this) ? AWAITED : kind, name);
    // Another session tells of what is sent, and later.
    if (isFollowing && this instanceof WebSocket && this.readyState === WebSocket.OPEN)
      apply(dispatchEvent, globalThis, [new CustomEvent(`${eventName}-sends`, { detail: apply(urlOf, this, []) })]);
    return apply(start, this, given);
  };
  const making = types => (type, _, kind) => new Proxy(type, {
    construct(...given) {
      const cause = current(), made = Reflect.construct(...given), { port1, port2 } = made;
      for (const part of port1 ? [port1, port2] : [made]) hearing(part, types);
      if (port1) peers.set(port1, port2).set(port2, port1);
      if (kind === AWAITED) waits(made, cause, kind);
      return made;
    },
  });
  // What answers other documents as well, so that the cause of an answer is unknown.
  const meeting = (type, name, kind) => new Proxy(type, {
    construct(...given) {
      const cause = current(), made = Reflect.construct(...given);
      waits(made, cause, kind, name);
      apply(listen, made.port, ["message", () => over(made, cause, name), true]);
      return made;
    },
  });
  // What may call back at any time, or nobody follows.
  const unknown = start => new Proxy(start, {
    apply(...given) {
      hasUnknown = true;
      return Reflect.apply(...given);
    },
    construct(...given) {
      hasUnknown = true;
      return Reflect.construct(...given);
    },
  });

  // Images outside of the document whose addresses contain them: no request tells of them, nor does the document.
  const addressOf = Object.getOwnPropertyDescriptor(HTMLImageElement.prototype, "src").get;
  const loading = (set, name, kind) => function (...given) {
    const cause = current();
    apply(set, this, given);
    if (this.isConnected || !isInside.test(apply(addressOf, this, []))) return;
    waits(this, cause, kind);
    for (const type of ["load", "error"]) apply(listen, this, [type, () => over(this, cause, name), { capture: true, once: true }]);
  };

  // Channels of this document, which hear each other by way of the browser; other documents may hear them as well.
  const channels = new Map();
  const joining = type => new Proxy(type, {
    construct(...given) {
      hasUnknown = true;
      const made = Reflect.construct(...given), { name } = made;
      channels.set(name, (channels.get(name) ?? new Set()).add(made));
      apply(listen, made, ["message", () => over(made, pending.get(made), "BroadcastChannel"), true]);
      return made;
    },
  });
  const broadcasting = (start, _, kind) => function (...given) {
    const cause = current();
    for (const each of channels.get(this.name) ?? []) if (each !== this) waits(each, cause, kind);
    return apply(start, this, given);
  };
  const closing = start => function () {
    channels.get(this.name)?.delete(this);
    pending.delete(this);
    return apply(start, this, []);
  };

  // What calls back about the page itself, with a frame at the latest: whether it has, since a snapshot was begun.
  let observations = 0;
  const observing = type => new Proxy(type, {
    construct(made, [heard, ...more], target) {
      const called = function (...given) {
        observations += 1;
        return apply(heard, this, given);
      };
      return Reflect.construct(made, [typeof heard === "function" ? called : heard, ...more], target);
    },
  });

  // What sends something, but calls nothing back.
  const sending = start => function (...given) {
    current();
    return apply(start, this, given);
  };

  // What may lead to another document, a file or a chooser, which is told later, until the page has been observed.
  const LEADS = "leads";
  const [nearest, hrefOf] = [Element.prototype.closest, Object.getOwnPropertyDescriptor(HTMLAnchorElement.prototype, "href").get];
  const leads = element => element instanceof HTMLAnchorElement || (element instanceof HTMLInputElement && element.type === "file");
  const leading = start => function (...given) {
    if (isPageTime && (!(this instanceof EventTarget) || leads(this) || this === globalThis.navigation)) others.set(LEADS, {});
    current();
    const link = isFollowing && this instanceof Element && apply(nearest, this, ["a[download]"]);
    if (link instanceof HTMLAnchorElement) apply(dispatchEvent, globalThis, [new CustomEvent(`${eventName}-saves`, { detail: apply(hrefOf, link, []) })]);
    return apply(start, this, given);
  };

  // Going to another entry of the history, which the browser does in its own time. Without such an entry, or with one of
  // another site, nothing tells the end.
  const TRAVERSES = "traverses", { navigation } = globalThis;
  const traversing = (start, name, kind) => {
    const lead = leading(start);
    return function (...given) {
      const steps = { back: -1, forward: 1 }[name] ?? Number(given[0]);
      if (steps && navigation?.currentEntry && navigation.entries()[navigation.currentEntry.index + steps]) waits(TRAVERSES, current(), kind);
      return apply(lead, this, given);
    };
  };

  // What scrolls smoothly, in real time, is not known to be over until the page has been observed.
  const styleOf = globalThis.getComputedStyle;
  const scrolling = start => function (...given) {
    const scrolled = this instanceof Element ? this : document.documentElement;
    const isSmooth = given.some(each => each?.behavior === "smooth") || (scrolled && styleOf(scrolled).scrollBehavior === "smooth");
    if (isSmooth) {
      others.set(LEADS, {});
      apply(dispatchEvent, globalThis, [new CustomEvent(`${eventName}-scrolls`)]);
    }
    return apply(start, this, given);
  };

  // What calls back, and how it is known. AWAITED in page time: what the page's clock moves, and work outside of the page's
  // thread, which it does not move. PACED: the first calls of an input as well, while page time passes slowly; others may never
  // end. COUNTED: while it is pending, the page is not still. What is not here has an unknown cause.
  const SOURCES = [
    [globalThis, ["setTimeout", "setInterval"], calling([0], { isTimer: true }), AWAITED],
    [globalThis, ["requestAnimationFrame"], calling([0], { isQuiet: true }), PACED],
    [globalThis, ["requestIdleCallback"], calling([0]), PACED],
    [globalThis.Scheduler?.prototype, ["postTask"], posting, COUNTED],
    [globalThis, ["queueMicrotask"], calling([0], { isTask: false })],
    [Promise.prototype, ["then"], calling([0, 1], { isTask: false })],
    [globalThis.SubtleCrypto?.prototype, [
      "decrypt", "deriveBits", "deriveKey", "digest", "encrypt", "exportKey", "generateKey", "importKey", "sign", "unwrapKey",
      "verify", "wrapKey",
    ], promising, AWAITED],
    [globalThis.WebAssembly, ["compile", "compileStreaming", "instantiate", "instantiateStreaming"], promising, AWAITED],
    [globalThis, ["createImageBitmap"], promising, AWAITED],
    [globalThis, ["fetch"], fetching, COUNTED],
    [Response.prototype, ["arrayBuffer", "blob", "formData", "json", "text"], promising, AWAITED],
    [Blob.prototype, ["arrayBuffer", "text"], promising, AWAITED],
    [ReadableStreamDefaultReader.prototype, ["read"], promising, COUNTED],
    [globalThis.Cache?.prototype, ["add", "addAll", "delete", "keys", "match", "put"], promising, AWAITED],
    [globalThis.CacheStorage?.prototype, ["delete", "has", "keys", "match", "open"], promising, AWAITED],
    [globalThis.LockManager?.prototype, ["request"], calling([1, 2]), AWAITED],
    [globalThis, ["Worker"], making(["message"]), AWAITED],
    [globalThis, ["SharedWorker"], meeting, AWAITED],
    [Worker.prototype, ["postMessage"], asking(["message"]), AWAITED],
    [globalThis, ["MessageChannel"], making(["message"]), COUNTED],
    [prototype, ["postMessage"], asking(["message"]), COUNTED],
    [globalThis, ["BroadcastChannel"], joining, COUNTED],
    [BroadcastChannel.prototype, ["postMessage"], broadcasting, AWAITED],
    [BroadcastChannel.prototype, ["close"], closing, COUNTED],
    [globalThis, ["WebSocket"], making(["message"])],
    [WebSocket.prototype, ["send"], asking(["message"])],
    [globalThis, ["XMLHttpRequest"], making(["readystatechange", "load", "loadend"])],
    [XMLHttpRequest.prototype, ["open"], opening, COUNTED],
    [XMLHttpRequest.prototype, ["send"], asking(["readystatechange", "load", "loadend"]), COUNTED],
    [globalThis, ["FileReader"], making(["load", "loadend"])],
    [FileReader.prototype, ["readAsArrayBuffer", "readAsDataURL", "readAsText"], asking(["load", "loadend"]), AWAITED],
    [IDBFactory.prototype, ["deleteDatabase", "open"], returning(["upgradeneeded", "success", "error"]), AWAITED],
    [IDBDatabase.prototype, ["transaction"], returning(["complete", "abort"]), AWAITED],
    ...[IDBObjectStore, IDBIndex].map(each => [each.prototype, [
      "add", "clear", "count", "delete", "get", "getAll", "getAllKeys", "getKey", "openCursor", "openKeyCursor", "put",
    ], returning(["success", "error"])]),
    [Element.prototype, ["animate"], returning(["finish", "cancel"])],
    [globalThis, ["EventSource"], making(["message", "open", "error"])],
    [globalThis.Scheduler?.prototype, ["yield"], promising, COUNTED],
    [globalThis.CookieStore?.prototype, ["delete", "get", "getAll", "set"], promising, AWAITED],
    [HTMLImageElement.prototype, ["decode"], promising, AWAITED],
    [HTMLImageElement.prototype, ["src"], loading, AWAITED],
    [globalThis.FontFace?.prototype, ["load"], promising, COUNTED],
    [globalThis.OffscreenCanvas?.prototype, ["convertToBlob"], promising, AWAITED],
    [HTMLCanvasElement.prototype, ["toBlob"], calling([0]), AWAITED],
    [globalThis.OfflineAudioContext?.prototype, ["startRendering"], promising, AWAITED],
    [globalThis.Permissions?.prototype, ["query"], promising, AWAITED],
    [globalThis.StorageManager?.prototype, ["estimate", "getDirectory", "persisted"], promising, AWAITED],
    [globalThis.FileSystemDirectoryHandle?.prototype, ["getDirectoryHandle", "getFileHandle", "removeEntry", "resolve"], promising, AWAITED],
    [globalThis.FileSystemFileHandle?.prototype, ["createWritable", "getFile"], promising, AWAITED],
    [globalThis.FileSystemWritableFileStream?.prototype, ["seek", "truncate", "write"], promising, AWAITED],
    [globalThis.WritableStream?.prototype, ["abort", "close"], promising, AWAITED],
    [globalThis, [
      "Audio", "AudioContext", "EventSource", "IdleDetector", "ImageDecoder", "MediaRecorder", "MediaSource",
      "Notification", "PaymentRequest", "PressureObserver", "RTCPeerConnection", "SharedWorker",
      "VideoDecoder", "WebSocket", "WebSocketStream", "WebTransport", "Worker", "showDirectoryPicker", "showOpenFilePicker",
      "showSaveFilePicker", "webkitSpeechRecognition",
    ], unknown, COUNTED],
    [AbortSignal, ["timeout"], lapsing, AWAITED],
    [globalThis.Atomics, ["waitAsync"], unknown, COUNTED],
    [DataTransferItem.prototype, ["getAsFileSystemHandle", "getAsString", "webkitGetAsEntry"], unknown, COUNTED],
    [Document.prototype, ["exitFullscreen", "requestStorageAccess", "startViewTransition"], unknown, COUNTED],
    [Element.prototype, ["requestFullscreen", "requestPointerLock"], unknown, COUNTED],
    [HTMLCanvasElement.prototype, ["captureStream", "transferControlToOffscreen"], unknown, COUNTED],
    [HTMLMediaElement.prototype, ["load", "play"], unknown, COUNTED],
    [globalThis.SpeechSynthesis?.prototype, ["speak"], unknown, COUNTED],
    [globalThis, ["scroll", "scrollBy", "scrollTo"], scrolling, COUNTED],
    [Element.prototype, ["scroll", "scrollBy", "scrollIntoView", "scrollTo"], scrolling, COUNTED],
    [HTMLElement.prototype, ["click"], leading, COUNTED],
    [HTMLInputElement.prototype, ["showPicker"], leading, COUNTED],
    [HTMLElement.prototype, ["blur", "focus"], sending],
    [SVGElement.prototype, ["blur", "focus"], sending],
    [HTMLFormElement.prototype, ["requestSubmit", "reset", "submit"], sending],
    [Document.prototype, ["execCommand"], sending],
    [EventTarget.prototype, ["dispatchEvent"], leading, COUNTED],
    [Navigator.prototype, ["sendBeacon"], sending],
    [History.prototype, ["back", "forward", "go"], traversing, AWAITED],
    [globalThis.Navigation?.prototype, ["back", "forward"], traversing, AWAITED],
    [globalThis.Navigation?.prototype, ["navigate", "reload", "traverseTo"], leading, COUNTED],
    [globalThis, ["open"], sending],
    [globalThis, ["IntersectionObserver", "PerformanceObserver", "ResizeObserver"], observing, COUNTED],
  ];
  const install = wanted => {
    for (const [owner, names, how, kind = 0] of SOURCES)
      if (Boolean(kind) === wanted)
        for (const name of names) {
          const { set, ...more } = (owner && Object.getOwnPropertyDescriptor(owner, name)) ?? {};
          if (set) Object.defineProperty(owner, name, { ...more, set: how(set, name, kind) });
          else if (typeof owner?.[name] === "function") owner[name] = how(owner[name], name, kind);
        }
  };
  if (isPageTime) install(true);
  const hear = (name, heard) => addEventListener(`${eventName}${name}`, event => {
    event.stopImmediatePropagation();
    heard(event);
  }, { capture: true });

  // Told when the recorder begins to follow acts; asked for at once, because it may have begun before this. In a new tab
  // this may have begun before the recorder.
  hear("-follow", ({ detail: isOwn }) => {
    if (isFollowing) return tell(known()?.act ?? (isLoading ? FIRST : NOTHING));
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
  const forgetting = (cancel, name) => function (id) {
    if (name) others.delete(`${name} ${id}`);
    else due.delete(id);
    return apply(cancel, this, [id]);
  };
  globalThis.clearTimeout = forgetting(clearTimeout);
  globalThis.clearInterval = forgetting(clearInterval);
  globalThis.cancelAnimationFrame = forgetting(cancelAnimationFrame, "requestAnimationFrame");
  globalThis.cancelIdleCallback = forgetting(cancelIdleCallback, "requestIdleCallback");
  // What else the browser offers here may call back.
  const CALM = new RegExp(`^(?:${[
    "app\\w+", "can\\w+", "connection", "constructor", "cookieEnabled", "deviceMemory", "doNotTrack", "globalPrivacyControl",
    "hardwareConcurrency", "javaEnabled", "languages?", "locks", "maxTouchPoints", "mimeTypes", "onLine", "pdfViewerEnabled",
    "permissions", "platform", "plugins", "product\\w*", "sendBeacon", "storage", "userA\\w+", "vendor\\w*", "vibrate", "webdriver",
  ].join("|")})$`);
  const offered = Object.getOwnPropertyDescriptors(Navigator.prototype);
  for (const [name, { get, value, ...more }] of Object.entries(offered)) {
    if (CALM.test(name)) continue;
    if (get) Object.defineProperty(Navigator.prototype, name, { ...more, get: unknown(get) });
    else if (typeof value === "function") Navigator.prototype[name] = unknown(value);
  }
  const traversed = ({ type }) => over(TRAVERSES, pending.get(TRAVERSES), type);
  addEventListener("popstate", traversed, true);
  if (navigation) apply(listen, navigation, ["navigateerror", traversed]);
  hear("-input", () => { [input, calls] = [input + 1, new Map()]; });
  // Asked by the recorder, which receives the answer as `defaultPrevented`.
  const answer = (name, isPending) => hear(name, event => isPending() && event.preventDefault());
  const timers = () => {
    for (const [id, { at }] of due) if (at < now() - horizonMs) due.delete(id);
    return [...due.values()];
  };
  const isDue = counts => {
    for (const timer of timers()) if (timer.wait > 0 && !timer.hasFired && isNew(timer.cause) && counts(timer)) return true;
    return false;
  };
  answer("", () => isDue(() => true));
  // Timers that change the page soon, rather than end what it shows meanwhile.
  answer("-short", () => isDue(({ wait }) => wait < longMs));
  answer("-worker", () => [...pending.values()].some(isNew));
  const paced = wanted => [...others.values()].some(({ cause, name }) => name && wanted(name) && isNew(cause) && isFirst(name));
  answer("-active", () => paced(() => true));
  answer("-idle", () => paced(name => name === "requestIdleCallback"));
  // Told when something last called back, how often work in progress answered and observers were called, and when the page's
  // next timer is due, -1 if it has none, unless something else may call back.
  hear("-still", () => {
    const isIdle = !hasUnknown && !pending.size && !others.size;
    const next = Math.min(...timers().map(({ at }) => Math.max(0, at - now())));
    const detail = { activeAt, answers, observations, next: !isIdle ? null : next === Infinity ? -1 : next };
    apply(dispatchEvent, globalThis, [new CustomEvent(`${eventName}-next`, { detail })]);
  });
  hear("-observed", () => {
    observed = input;
    others.delete(LEADS);
  });
  for (const type of ["auxclick", "click"]) addEventListener(type, event => {
    const link = event.composedPath().find(leads), { altKey, ctrlKey, metaKey, shiftKey } = event;
    const isPlain = type === "click" && !(altKey || ctrlKey || metaKey || shiftKey || link?.type === "file" || link?.hasAttribute("download"));
    if (link && !isPlain) others.set(LEADS, {});
  }, true);

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
