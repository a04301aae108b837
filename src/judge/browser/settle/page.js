// Runs in every document, in the page's own world (page time only). It knows which timers the page set since the last
// input and which workers have not answered it. The recorder (`recorder.js`) asks by events, whose names no page knows,
// and hears the answer as `defaultPrevented`.
(eventName, horizonMs) => {
  const { setTimeout, clearTimeout, setInterval, clearInterval, addEventListener } = globalThis;
  const now = performance.now.bind(performance);
  const apply = Reflect.apply;
  const due = new Map();
  // Timers belong to the input that led to them, also through other timers: a carousel that was turning before a click
  // is not an effect of the click. Those of inputs that were observed already are not waited for.
  let input = 1;
  let observed = 0;
  let running = null;

  const watched = schedule => function (handler, delay, ...args) {
    const cause = running ?? input;
    const wait = Number(delay) || 0;
    let id;
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
    if (wait > 0 && wait <= horizonMs) due.set(id, { at: now() + wait, cause });
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

  // A frame learns of an input by a message.
  const inputs = [
    "pointerover", "pointermove", "pointerdown", "keydown", "input", "change", "wheel", "drop", "popstate", "visibilitychange", "message",
  ];
  for (const type of inputs)
    addEventListener(type, () => { input += 1; }, { capture: true, passive: true });
  addEventListener(eventName, event => {
    event.stopImmediatePropagation();
    for (const [id, timer] of due) {
      if (timer.at < now() - horizonMs) due.delete(id);
      else if (timer.cause > observed) return event.preventDefault();
    }
  }, { capture: true });
  addEventListener(`${eventName}-worker`, event => {
    event.stopImmediatePropagation();
    for (const cause of workers.values()) if (cause > observed) event.preventDefault();
  }, { capture: true });
  addEventListener(`${eventName}-observed`, event => {
    event.stopImmediatePropagation();
    observed = input;
  }, { capture: true });

  // A worker has a clock of its own, which nobody moves. It is waited for until it answers what it was last sent.
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

  // Page time moves `performance.now()` but not the time stamps of events. Vue 2 compares the two, and would ignore
  // every click on an element that it rendered later than the event seems to have happened.
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
