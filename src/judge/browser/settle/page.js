// Runs in every document, in the page's own world (page time only). It tracks timers that the page set since the last
// input and workers that have not answered. The recorder (`recorder.js`) queries it by events with secret names, and
// receives the answer as `defaultPrevented`.
(eventName, horizonMs, longMs) => {
  // Kept here, because the page may replace them later.
  const { setTimeout, clearTimeout, setInterval, clearInterval, addEventListener } = globalThis;
  const now = performance.now.bind(performance);
  const apply = Reflect.apply;
  const due = new Map();
  // A timer belongs to the input that caused it, directly or through other timers: a carousel that was already turning
  // is not an effect of a click. Timers of inputs whose effect was already observed are not waited for.
  let input = 1;
  let observed = 0;
  let running = null;

  const watched = schedule => function (handler, delay, ...args) {
    const cause = running ?? input;
    const wait = Number(delay) || 0;
    let id;
    // A handler may also be a string of code.
    const run = typeof handler !== "function" ? handler : function (...given) {
      due.delete(id);
      const before = running;
      running = cause;
      try {
        return apply(handler, this, given);
      } finally {
        running = before;
      }
    };
    id = apply(schedule, this, [run, delay, ...args]);
    if (wait > 0 && wait <= horizonMs) due.set(id, { at: now() + wait, cause, wait });
    return id;
  };
  const forgetting = cancel => function (id) {
    due.delete(id);
    return apply(cancel, this, [id]);
  };
  globalThis.setTimeout = watched(setTimeout);
  globalThis.setInterval = watched(setInterval);
  globalThis.clearTimeout = forgetting(clearTimeout);
  globalThis.clearInterval = forgetting(clearInterval);

  // Frames are notified of an input by a message.
  const inputs = [
    "pointerover", "pointermove", "pointerdown", "keydown", "input", "change", "wheel", "drop", "popstate", "visibilitychange", "message",
  ];
  for (const type of inputs)
    addEventListener(type, () => { input += 1; }, { capture: true, passive: true });
  const answer = (name, counts) => addEventListener(name, event => {
    event.stopImmediatePropagation();
    for (const [id, timer] of due) {
      if (timer.at < now() - horizonMs) due.delete(id);
      else if (timer.cause > observed && counts(timer)) return event.preventDefault();
    }
  }, { capture: true });
  answer(eventName, () => true);
  // Timers that change the page soon, rather than end what it shows meanwhile.
  answer(`${eventName}-short`, ({ wait }) => wait < longMs);
  addEventListener(`${eventName}-worker`, event => {
    event.stopImmediatePropagation();
    for (const cause of workers.values()) if (cause > observed) event.preventDefault();
  }, { capture: true });
  addEventListener(`${eventName}-observed`, event => {
    event.stopImmediatePropagation();
    observed = input;
  }, { capture: true });

  // A worker has its own clock, which page time does not move. Wait until it answers the last message it was sent.
  const workers = new Map();
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (...args) {
    workers.set(this, running ?? input);
    return apply(postMessage, this, args);
  };
  globalThis.Worker = new Proxy(Worker, {
    construct(target, args, newTarget) {
      const worker = Reflect.construct(target, args, newTarget);
      workers.set(worker, running ?? input);
      EventTarget.prototype.addEventListener.call(worker, "message", () => workers.delete(worker));
      return worker;
    },
  });

  // The same applies to what the browser computes outside the page's scripts.
  const { then } = Promise.prototype;
  const follow = (owner, names) => {
    for (const name of names) {
      const compute = owner?.[name];
      if (typeof compute !== "function") continue;
      owner[name] = function (...args) {
        const work = {};
        workers.set(work, running ?? input);
        const ended = () => workers.delete(work);
        return apply(then, apply(compute, this, args), [
          result => { ended(); return result; },
          error => { ended(); throw error; },
        ]);
      };
    }
  };
  follow(globalThis.SubtleCrypto?.prototype, [
    "decrypt", "deriveBits", "deriveKey", "digest", "encrypt", "exportKey", "generateKey", "importKey", "sign", "unwrapKey", "verify",
    "wrapKey",
  ]);
  follow(globalThis.WebAssembly, ["compile", "compileStreaming", "instantiate", "instantiateStreaming"]);
  follow(globalThis, ["createImageBitmap"]);

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
