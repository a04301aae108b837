// Follows what the page schedules after an act that disqualifies (`../causes.cjs`), until the next act of the site. Runs in
// every document, in the page's own world, where it changes nothing before such an act. The recorder (`recorder.js`) says
// so by events with secret names, and is told when something begins that was scheduled then.
(eventName) => {
  const { apply } = Reflect;
  const { dispatchEvent, addEventListener, Event } = globalThis;
  const { then } = Promise.prototype;
  const listen = EventTarget.prototype.addEventListener;
  let isFollowing = false;
  let isInstalled = false;

  const late = () => apply(dispatchEvent, globalThis, [new Event(`${eventName}-late`)]);
  // A function that says so when it is called; any other value unchanged.
  const following = handler => typeof handler !== "function" || !isFollowing ? handler : function (...given) {
    const before = isFollowing;
    isFollowing = true;
    late();
    try {
      return apply(handler, this, given);
    } finally {
      isFollowing = before;
    }
  };
  const schedulers = ["setTimeout", "setInterval", "requestAnimationFrame", "requestIdleCallback", "queueMicrotask"];
  // What waits for the answer goes on when it has arrived.
  const promising = [
    [globalThis, ["fetch", "createImageBitmap"]],
    [Response.prototype, ["arrayBuffer", "blob", "formData", "json", "text"]],
    [globalThis.SubtleCrypto?.prototype, ["decrypt", "digest", "encrypt", "sign", "verify"]],
  ];
  const answering = [
    [XMLHttpRequest.prototype, "send", ["readystatechange", "load", "loadend"]],
    [WebSocket.prototype, "send", ["message"]],
    [Worker.prototype, "postMessage", ["message"]],
    [MessagePort.prototype, "postMessage", ["message"]],
  ];
  const install = () => {
    isInstalled = true;
    for (const name of schedulers) {
      const schedule = globalThis[name];
      globalThis[name] = function (handler, ...rest) {
        return apply(schedule, this, [following(handler), ...rest]);
      };
    }
    for (const [owner, names] of promising)
      for (const name of names) {
        const begin = owner?.[name];
        if (typeof begin !== "function") continue;
        owner[name] = function (...given) {
          const answer = apply(begin, this, given);
          // Told before anything else that waits for it.
          if (isFollowing) apply(then, answer, [late, late]);
          return answer;
        };
      }
    for (const [owner, name, events] of answering) {
      const send = owner[name];
      owner[name] = function (...given) {
        if (isFollowing) for (const each of events) apply(listen, this, [each, late, { once: true, capture: true }]);
        return apply(send, this, given);
      };
    }
  };
  addEventListener(`${eventName}-follow`, event => {
    event.stopImmediatePropagation();
    isFollowing = true;
    if (!isInstalled) install();
  }, true);
  addEventListener(`${eventName}-unfollow`, event => {
    event.stopImmediatePropagation();
    isFollowing = false;
  }, true);
}
