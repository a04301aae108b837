// Labels by keyboard: 1, 0 and 2 decide and go on, u undoes, arrows look, n writes a note. Everything is sent at once.
(function () {
  const page = document.getElementById("label");
  const problem = document.getElementById("problem");
  const note = page.querySelector("textarea");
  const steps = Array.from(page.querySelectorAll("[data-step]"));
  const begun = performance.now();
  const narrow = window.matchMedia("(max-width: 860px)");
  const typing = 600;
  const keys = { 1: "success", 0: "failure", 2: "undecided" };
  let current = 0;
  let waiting = 0;
  let sent = note ? note.value : "";
  let sending = Promise.resolve();
  // From a decision until the next page: a second key is meant for that one.
  let isLeaving = false;

  async function send(path, change) {
    try {
      const value = await sendChange(path, change);
      problem.textContent = "";
      return value;
    } catch (error) {
      problem.textContent = error.message;
      return null;
    }
  }
  // One after the other, in the order of the keys.
  function inTurn(work) {
    sending = sending.then(work, work);
    return sending;
  }
  function pressed() {
    const button = page.querySelector("[data-label][aria-pressed=true]");
    return button ? button.dataset.label : null;
  }
  function change(label) {
    sent = note.value;
    return { place: Number(page.dataset.place), label, note: note.value, seconds: (performance.now() - begun) / 1000 };
  }
  function decide(label) {
    if (isLeaving) return sending;
    isLeaving = true;
    clearTimeout(waiting);
    return inTurn(async () => {
      const answer = await send("/label", change(label));
      isLeaving = Boolean(answer);
      if (answer) location.assign(answer.next);
      else sent = null;
    });
  }
  function keepNote() {
    clearTimeout(waiting);
    if (!note || note.value === sent) return sending;
    return inTurn(async () => {
      if (!await send("/label", change(pressed()))) sent = null;
    });
  }
  function undo() {
    if (isLeaving) return sending;
    isLeaving = true;
    return inTurn(async () => {
      const answer = await send("/undo", {});
      isLeaving = Boolean(answer && answer.next);
      if (isLeaving) location.assign(answer.next);
      else if (answer) problem.textContent = "nothing to undo";
    });
  }
  function show(number) {
    if (!steps.length) return;
    current = Math.min(Math.max(number, 0), steps.length - 1);
    steps.forEach((step, place) => { step.hidden = place !== current; });
    page.querySelectorAll("[data-go]").forEach((button) => {
      const isCurrent = Number(button.dataset.go) === current + 1;
      if (isCurrent) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
      if (isCurrent && button.parentElement.classList.contains("strip")) {
        button.parentElement.scrollLeft = button.offsetLeft - button.parentElement.clientWidth / 2;
      }
    });
  }
  async function leave(direction) {
    await keepNote();
    const link = document.querySelector("a[rel=" + direction + "]");
    if (link) location.assign(link.href);
  }

  page.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.label) decide(button.dataset.label);
    else if (button.dataset.go) {
      show(Number(button.dataset.go) - 1);
      // On a phone, the screenshot is below.
      if (narrow.matches) page.querySelector(".strip").scrollIntoView();
    }
    else if (button.dataset.do === "undo") undo();
  });
  if (note) {
    note.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(keepNote, typing); });
    note.addEventListener("change", keepNote);
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (event.target === note) {
      if (event.key === "Escape") note.blur();
      return;
    }
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (direction && event.shiftKey) leave(direction < 0 ? "prev" : "next");
    else if (direction) show(current + direction);
    else if (event.key === "u") undo();
    else if (event.key === "n" && note) note.focus();
    else if (note && Object.hasOwn(keys, event.key)) decide(keys[event.key]);
    else return;
    event.preventDefault();
  });
  show(steps.length - 1);
})();
