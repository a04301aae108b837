// What happens between an action and the page's final state, by kind. `config.delay` is in milliseconds.
"use strict";

const delay = config.delay;
const served = (path, ms, more = "") => `/${path}?token=${token}&ms=${ms}${more}`;

// As client libraries do it: a time limit that the server keeps with 1.5 seconds to spare.
async function ask(url, limit = delay + 1500) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), limit);
  try {
    const response = await fetch(url, { signal: controller.signal });
    return await response.text();
  } catch (error) {
    if (controller.signal.aborted) wrong("the client gave up although the server answered in time");
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

// Timers that were set for a later time run later, and not before their time.
function timer(done, ms = delay) {
  const began = Date.now();
  let before = false;
  setTimeout(() => {
    if (!before) return wrong("a later timer ran before an earlier one");
    if (Date.now() - began < ms - 20) return wrong("a timer ran before its time");
    done();
  }, ms);
  setTimeout(() => (before = true), ms - 50);
}

function landing(then) {
  location.href = `/page?token=${token}&start=load&kind=${then}&delay=${delay}`;
}

function inFrame(address) {
  at("outcome").remove();
  const frame = document.createElement("iframe");
  frame.title = "Outcome";
  frame.src = address;
  document.body.append(frame);
  return frame;
}

const framed = (origin, start) => `${origin}/page?token=${token}&kind=timer&delay=${delay}&start=${start}`;
// Frames that are there before the action, and what lives as long as the page.
let frame = null;
let socket = null;
let messages = null;

const prepare = {
  same_site_frame: () => (frame = inFrame(framed("", "message"))),
  cross_site_frame: () => (frame = inFrame(framed(config.peer, "message"))),
  socket_reply: () => (socket = new WebSocket(`ws://${location.host}/socket`)),
  socket_work: () => (socket = new WebSocket(`ws://${location.host}/socket`)),
  event_stream: () => (messages = new EventSource(served("messages", 0))),
  endless_request: () => {
    fetch(served("endless", 0));
    fetch(served("unanswered", 0)).catch(() => {});
  },
  // About as long as the delay on a quick processor.
  crypto: async () => {
    const key = await crypto.subtle.importKey("raw", new Uint8Array(16), "PBKDF2", false, ["deriveBits"]);
    const how = { name: "PBKDF2", hash: "SHA-256", salt: new Uint8Array(16), iterations: delay * 2000 };
    await crypto.subtle.deriveBits(how, key, 256);
    finish();
  },
  css_transition: () => {
    at("swatch").hidden = true;
    for (const id of ["place", "moving"]) {
      const element = document.createElement("button");
      element.id = id;
      element.textContent = `${id} ${token}`;
      document.body.append(element);
    }
  },
  smooth_scroll: () => {
    const end = document.createElement("button");
    end.id = "end";
    end.textContent = `end ${token}`;
    end.style.top = `${1500 + delay * 3}px`;
    document.body.append(end);
  },
};

const kinds = {
  nothing: finish,
  timer: () => timer(finish),
  fetch: async () => {
    await ask(served("late", delay));
    finish();
  },
  chain: async () => {
    await ask(served("late", delay / 3));
    await new Promise((resolve) => setTimeout(resolve, delay / 3));
    await ask(served("late", delay / 3));
    finish();
  },
  debounce: () => {
    let waiting;
    const again = () => {
      clearTimeout(waiting);
      waiting = setTimeout(finish, delay);
    };
    for (const ms of [0, 40, 80]) setTimeout(again, ms);
  },
  polling: async () => {
    while ((await ask(served("poll", delay))) !== "done") await new Promise((resolve) => setTimeout(resolve, 100));
    finish();
  },
  slow_navigation: () => {
    location.href = `/page?token=${token}&start=load&kind=nothing&delay=0&held=${delay}`;
  },
  timer_after_navigation: () => landing("timer"),
  fetch_after_navigation: () => landing("fetch"),
  same_site_frame: () => frame.contentWindow.postMessage("start", "*"),
  cross_site_frame: () => frame.contentWindow.postMessage("start", "*"),
  late_frame: () => inFrame(`${config.peer}/page?token=${token}&start=load&kind=nothing&delay=0&held=${delay}`),
  worker: () => {
    const worker = new Worker("/static/worker.js");
    worker.onmessage = finish;
    worker.postMessage(delay);
  },
  css_transition: () => {
    at("moving").style.transition = `transform ${delay}ms ease-in-out`;
    at("moving").style.transform = "none";
    finish();
  },
  smooth_scroll: () => {
    // After the wheel's own events: a turn of the wheel would end the movement.
    setTimeout(() => at("end").scrollIntoView({ behavior: "smooth", block: "center" }), 50);
    finish();
  },
  new_tab: () => {
    open(`/page?token=${token}&start=load&kind=timer&delay=${delay}`);
  },
  event_stream: () => {
    messages.onmessage = finish;
    fetch(served("publish", delay));
  },
  endless_request: async () => {
    await ask(served("late", delay));
    finish();
  },
  socket_reply: () => {
    const send = () => socket.send(String(delay));
    socket.onmessage = finish;
    if (socket.readyState === WebSocket.OPEN) send();
    else socket.onopen = send;
  },
  // The server says at once that it has begun, and the page shows that until the result comes.
  socket_work: () => {
    const send = () => {
      socket.send("0");
      socket.send(String(delay));
    };
    socket.onmessage = () => {
      const image = document.createElement("img");
      image.alt = "Running...";
      at("first").replaceChildren(image);
      socket.onmessage = finish;
    };
    if (socket.readyState === WebSocket.OPEN) send();
    else socket.onopen = send;
  },
  tab_that_fetches: () => {
    open(`/page?token=${token}&start=load&kind=fetch&delay=${delay}`);
  },
  busy_wait: () => {
    const end = Date.now() + delay;
    while (Date.now() < end);
    finish();
  },
  toast: () => {
    timer(() => {
      at("toast").hidden = false;
      at("toast").textContent = `toast ${token}`;
      setTimeout(() => at("toast").remove(), config.visible);
    });
  },
};

prepare[config.kind]?.();
