// The page's own event for each action starts its kind, once.
"use strict";

const token = config.token;
const at = (id) => document.getElementById(id);

function show(state) {
  at("first").textContent = `first ${state} ${token}`;
  at("swatch").className = state;
  at("second").textContent = `second ${state} ${token}`;
}

function finish() {
  if (!document.body.classList.contains("wrong")) show("FINAL");
}

// A state that no reader of the page could ever see if clocks and requests behave.
function wrong(why) {
  document.body.classList.add("wrong");
  show("WRONG");
  at("said").textContent = `WRONG ${token}: ${why}`;
}

let started = false;
function start() {
  if (started) return;
  started = true;
  kinds[config.kind]();
}

function startOn(target, event) {
  target.addEventListener(event, start);
}

function onceClosed(tab) {
  const timer = setInterval(() => {
    if (!tab.closed) return;
    clearInterval(timer);
    start();
  }, 50);
}

const starters = {
  load: () => startOn(window, "load"),
  message: () => addEventListener("message", (event) => event.data === "start" && start()),
  click: () => startOn(at("click"), "click"),
  double_click: () => {
    const clicks = [];
    at("click").addEventListener("click", () => clicks.push(Date.now()));
    at("click").addEventListener("dblclick", () => {
      if (clicks[0] === clicks[1]) wrong("a double click took no time");
    });
    startOn(at("click"), "dblclick");
  },
  type: () => startOn(at("type"), "input"),
  type_slowly: () => startOn(at("type"), "keydown"),
  type_submit: () =>
    at("form").addEventListener("submit", (event) => {
      event.preventDefault();
      start();
    }),
  select: () => startOn(at("select"), "change"),
  hover: () => startOn(at("hover"), "mouseenter"),
  press_key: () => startOn(document, "keydown"),
  scroll: () => startOn(window, "scroll"),
  fill_form: () => startOn(at("city"), "input"),
  drag: () => {
    at("card").addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", "card"));
    at("basket").addEventListener("dragover", (event) => event.preventDefault());
    at("basket").addEventListener("drop", (event) => {
      event.preventDefault();
      start();
    });
  },
  back: () =>
    addEventListener("pageshow", (event) => {
      const [entry] = performance.getEntriesByType("navigation");
      if (event.persisted || entry.type === "back_forward") start();
    }),
  dialog: () => at("ask").addEventListener("click", () => confirm("Go on?") && start()),
  tab_close: () => at("window").addEventListener("click", () => onceClosed(open("/other"))),
  tab_select: () => {
    at("window").addEventListener("click", () => open("/other"));
    addEventListener("message", (event) => event.data === "opened" && start());
  },
};

at("react").addEventListener("click", () => {
  at("said").textContent = `clicked ${token}`;
});
at("form").addEventListener("submit", (event) => event.preventDefault());
show("initial");
// A frame shows its outcome only: the controls are those of the page around it.
document.querySelector(".controls").hidden = config.start === "message";
starters[config.start]();
