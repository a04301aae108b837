// Follows the judge's events. Everything received is inserted as text, never as markup.
(function () {
  const symbols = { success: "✓", failure: "✗", unscored: "?", aborted: "⊘" };
  const outcomes = Object.keys(symbols);
  const states = { running: "running", finished: "finished", stopped: "stopped before its end" };
  // The server sends something every 15 s.
  const silence = 45000;
  const longest = 15000;
  let runs = new Map();
  let opened = null;
  const byId = (id) => document.getElementById(id);
  const make = (name, kind, text) => {
    const element = document.createElement(name);
    if (kind) element.className = kind;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const badge = (outcome) => {
    const element = make("span", "o t-" + outcome);
    const mark = make("i", "", symbols[outcome] || "·");
    mark.setAttribute("aria-hidden", "true");
    element.append(mark, outcome);
    return element;
  };
  const time = (seconds) => {
    const whole = Math.max(0, Math.round(seconds));
    const minutes = Math.floor(whole / 60);
    const parts = [Math.floor(minutes / 60), minutes % 60, whole % 60].map(String);
    return parts[0] !== "0" ? parts[0] + " h " + parts[1] + " min" : (minutes ? minutes + " min " : "") + parts[2] + " s";
  };
  const plural = (count, noun) => count + " " + noun + (count === 1 ? "" : "s");
  const doneCount = (view) => outcomes.reduce((sum, name) => sum + view.counts[name], 0);
  const unit = (view) => (view.epochs > 1 ? "attempt" : "task");
  const doneOf = (view) => doneCount(view) + " of " + plural(view.total, unit(view)) + " done";
  const isOpen = (task) => task.state === "running" || task.state === "judging";
  const place = (task, kind) => "/live/" + encodeURIComponent(task.run) + "/" + kind + "/" + encodeURIComponent(task.id);
  const newest = (task) => place(task, "shot") + "?page=" + [task.attempt, task.page, task.state].join("-");
  const named = (task) => task.id + (task.task ? ": " + task.task : "");
  const doing = (task) =>
    (task.state === "judging" ? "judging after " + plural(task.step, "step") : isOpen(task)
      ? "step " + Math.max(1, task.page) + " of " + task.max_steps
      : plural(task.step, "step")) + (task.attempt > 1 ? ", attempt " + task.attempt : "");
  function picture(image, address, text) {
    if (image.getAttribute("src") === address) return;
    image.onload = () => { image.hidden = false; };
    image.onerror = () => { image.hidden = true; };
    image.src = address;
    image.alt = text;
  }
  function bars(svg, pieces, label) {
    let x = 0;
    svg.setAttribute("aria-label", label);
    svg.replaceChildren(...pieces.map(([kind, share]) => {
      const piece = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [name, value] of [["x", x], ["width", 100 * share], ["height", 3], ["class", kind]]) piece.setAttribute(name, value);
      x += 100 * share;
      return piece;
    }));
  }

  // --- the list of runs -------------------------------------------------------------------------------------------
  function runOf(id) {
    if (!runs.has(id)) {
      const part = byId("t-run").content.cloneNode(true).firstElementChild;
      byId("runs").prepend(part);
      runs.set(id, { part, tasks: new Map(), cards: new Map(), rows: new Map(), find: (name) => part.querySelector(name) });
    }
    return runs.get(id);
  }
  function showRun(view) {
    const run = runOf(view.id);
    Object.assign(run, { view, received: Date.now() });
    const done = doneCount(view);
    const playing = [...run.tasks.values()].filter(isOpen).length;
    const waiting = Math.max(0, view.total - done - playing);
    run.find("h2").textContent = view.scenario || "Run " + view.id;
    run.find(".r-state").textContent = states[view.state];
    bars(run.find(".progress"), [...outcomes.map((name) => ["o-" + name, view.total ? view.counts[name] / view.total : 0]),
      ["bar-running", view.total ? playing / view.total : 0]], doneOf(view));
    const counts = outcomes.map((name) => { const item = make("span"); item.append(badge(name), " " + view.counts[name]); return item; });
    if (waiting) counts.push(make("span", "soft", waiting + (view.state === "running" ? " waiting" : " not played")));
    run.find(".r-counts").replaceChildren(...counts);
    const rate = run.find(".r-rate");
    rate.hidden = view.state === "running";
    rate.textContent = view.rate[0].toUpperCase() + view.rate.slice(1);
    if (!rate.hidden) rate.append(make("small", "", doneOf(view) + "; of all " + unit(view) + "s: " + view.rate_of_all + " %"));
    const report = run.find(".r-report");
    report.hidden = !view.report;
    if (view.report) {
      const path = make("span", "mono", view.report.path);
      const page = make("a", "", "Open the report");
      page.href = view.report.url || "";
      report.replaceChildren(...(view.report.url && link.isUp ? [page, " · "] : []),
        "Files: ", path, " (if there are none, write them with ", make("span", "mono", "wabe report " + view.id), ")");
    }
    run.find(".r-running").hidden = !playing;
    run.find(".r-running .num").textContent = playing;
    run.find(".r-done").hidden = !run.rows.size;
    run.find(".r-done .num").textContent = run.rows.size;
    tick(run);
  }
  function tick(run) {
    const passed = run.view.state === "running" && link.isUp ? (Date.now() - run.received) / 1000 : 0;
    const left = run.view.state === "running" && run.view.left_s !== null ? "about " + time(run.view.left_s - passed) + " left" : "";
    const facts = [run.view.player, "run " + run.view.id, time(run.view.seconds + passed), left,
      run.view.kept ? run.view.kept + " kept from before" : ""].filter(Boolean);
    run.find(".r-facts").replaceChildren(...facts.map((fact) => make("bdi", "", fact)));
  }
  function showCard(run, task) {
    let card = run.cards.get(task.id);
    if (!card) {
      card = byId("t-task").content.cloneNode(true).firstElementChild;
      card.querySelector("h4").textContent = task.id;
      card.querySelector("a").href = "#" + encodeURIComponent(task.run) + "/" + encodeURIComponent(task.id);
      run.find(".cards").append(card);
      run.cards.set(task.id, card);
    }
    card.querySelector(".what").textContent = task.task;
    card.querySelector(".state").textContent = doing(task);
    card.querySelector("rect").setAttribute("width", task.max_steps ? 100 * task.step / task.max_steps : 0);
    const action = task.actions[task.actions.length - 1];
    card.querySelector("bdi").textContent = action ? action[1] : "";
    if (task.page) picture(card.querySelector("img"), newest(task), "Newest screenshot of " + named(task));
  }
  function showRow(run, task) {
    const row = make("tr");
    const name = make("a", "", task.id);
    name.href = place(task, "tasks") + ".html";
    const cells = [make("td"), make("td"), make("td", "num", task.step), make("td")];
    cells[0].append(badge(task.state));
    cells[1].append(name);
    cells[3].append(make("bdi", "small", task.reason));
    row.append(...cells);
    if (run.rows.has(task.id)) run.rows.get(task.id).replaceWith(row);
    else run.find("tbody").prepend(row);
    run.rows.set(task.id, row);
  }
  function drop(shown, id) {
    if (shown.has(id)) shown.get(id).remove();
    shown.delete(id);
  }
  function show(update) {
    const known = new Set(update.runs.map((view) => view.id));
    // After a new connection everything may be different.
    for (const [id, run] of runs) if (update.full || !known.has(id)) { run.part.remove(); runs.delete(id); }
    for (const [at, view] of update.runs.entries()) {
      const { part } = runOf(view.id);
      if (update.full) part.querySelector("details").open = at === update.runs.length - 1;
    }
    for (const task of update.tasks) {
      const run = runOf(task.run);
      run.tasks.set(task.id, task);
      drop(isOpen(task) ? run.rows : run.cards, task.id);
      if (isOpen(task)) showCard(run, task);
      else showRow(run, task);
    }
    for (const view of update.runs) showRun(view);
    const busy = update.runs.filter((view) => view.state === "running");
    byId("title").textContent = !known.size ? "No assessment yet" : busy.length > 1 ? busy.length + " assessments are running"
      : busy.length ? (busy[0].total ? doneOf(busy[0]) : "An assessment is starting") : "Assessment " + states[update.runs[update.runs.length - 1].state];
    byId("waiting").hidden = known.size > 0;
    showOpened();
  }

  // --- one task ---------------------------------------------------------------------------------------------------
  function route() {
    const [run, task] = location.hash.slice(1).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return ""; } });
    opened = run && task ? { run, id: task, attempt: 0, steps: [], asked: 0, chosen: null } : null;
    showOpened();
    window.scrollTo(0, 0);
  }
  function showOpened() {
    const run = opened && runs.get(opened.run);
    const task = run && run.tasks.get(opened.id);
    byId("watch").hidden = !task;
    byId("overview").hidden = Boolean(task);
    document.title = (task ? task.id + " · " : "") + "Live · WABE judge";
    if (!task) return;
    if (opened.attempt !== task.attempt) Object.assign(opened, { attempt: task.attempt, steps: [], asked: 0, chosen: null });
    byId("w-title").textContent = task.task || task.id;
    const facts = [make("b", "", task.id), isOpen(task) ? make("span", "", doing(task)) : badge(task.state)];
    if (task.url && isOpen(task)) facts.push(make("bdi", "", task.url));
    byId("w-facts").replaceChildren(...facts);
    showResult(task);
    showSteps(task);
    if (opened.asked < task.step) loadSteps(task);
  }
  function showResult(task) {
    const box = byId("w-result");
    box.hidden = isOpen(task);
    const page = make("a", "", "Open the task's page");
    page.href = place(task, "tasks") + ".html";
    box.replaceChildren(make("bdi", "", task.reason), " ", page);
    const { report } = runs.get(task.run).view || {};
    if (report && report.url && link.isUp) {
      const whole = make("a", "", "Open the report");
      whole.href = report.url;
      box.append(" · ", whole);
    }
  }
  async function loadSteps(task) {
    const mine = opened;
    mine.asked = task.step;
    try {
      const answer = await fetch(place(task, "steps") + ".json?after=" + mine.steps.length);
      if (!answer.ok) throw new Error(answer.status);
      const fresh = (await answer.json()).filter((step) => step.step > mine.steps.length);
      // Meanwhile the viewer may have opened another task, or a new attempt may have begun.
      if (mine === opened && mine.attempt === task.attempt) { mine.steps.push(...fresh); showOpened(); }
    } catch { mine.asked = mine.steps.length; }
  }
  function stepButton(task, step) {
    const button = make("button");
    button.type = "button";
    button.append(make("span", "n num", step.step), make("b", step.line ? "" : "problem", step.line || step.problem || "…"));
    if (step.thought) button.append(make("span", "thought", step.thought));
    button.addEventListener("click", () => choose(step.step));
    return button;
  }
  function showSteps(task) {
    const list = byId("w-steps");
    if (list.owner !== opened || list.attempt !== opened.attempt) list.replaceChildren();
    Object.assign(list, { owner: opened, attempt: opened.attempt });
    while (list.children.length < opened.steps.length) {
      const item = make("li");
      item.append(stepButton(task, opened.steps[list.children.length]));
      list.append(item);
    }
    const step = opened.steps[opened.chosen - 1];
    for (const [at, item] of [...list.children].entries()) {
      if (at + 1 === opened.chosen) item.firstChild.setAttribute("aria-current", "step");
      else item.firstChild.removeAttribute("aria-current");
    }
    byId("w-follow").hidden = !step;
    if (!step) list.scrollTop = list.scrollHeight;
    const image = byId("w-image");
    if (step && step.image) picture(image, place(task, "images") + "/" + encodeURIComponent(step.image), "What the participant saw at step " + step.step + " of " + named(task));
    else if (step) image.hidden = true;
    else if (task.page) picture(image, newest(task), "Newest screenshot of " + named(task));
    byId("w-shot").lastElementChild.textContent = step ? "This step has no screenshot." : "The first screenshot appears with the first page.";
    byId("w-caption").textContent = step ? "What the participant saw before step " + step.step + " · " + step.url
      : task.page > task.step && task.step ? "After step " + task.step : task.page ? "Newest screenshot" : "";
  }
  function choose(number) {
    opened.chosen = number >= 1 && number <= opened.steps.length ? number : null;
    showOpened();
    const item = byId("w-steps").children[number - 1];
    if (item && opened.chosen) item.scrollIntoView({ block: "nearest" });
  }
  byId("w-follow").addEventListener("click", () => choose(0));
  document.addEventListener("keydown", (event) => {
    if (!opened || event.altKey || event.ctrlKey || event.metaKey) return;
    const at = opened.chosen || opened.steps.length + 1;
    if (event.key === "ArrowLeft") choose(Math.max(1, at - 1));
    else if (event.key === "ArrowRight") choose(at + 1);
    else if (event.key === "Escape") location.hash = "";
  });
  window.addEventListener("hashchange", route);

  // --- the connection ---------------------------------------------------------------------------------------------
  const link = { source: null, isUp: false, wait: 1000, timer: 0, since: null };
  function say(text, kind) {
    byId("link").className = "link " + kind;
    if (byId("link").textContent !== text) byId("link").textContent = text;
  }
  function connect() {
    link.source = new EventSource("/events");
    link.source.onerror = lost;
    link.source.onmessage = (message) => {
      clearTimeout(link.timer);
      link.timer = setTimeout(lost, silence);
      Object.assign(link, { isUp: true, wait: 1000, since: null });
      say("live", "on");
      show(JSON.parse(message.data));
    };
  }
  function lost() {
    clearTimeout(link.timer);
    link.source.close();
    link.isUp = false;
    const isOver = runs.size && [...runs.values()].every((run) => run.view.state !== "running");
    // A judge started for one run ends with it: nothing is wrong then, and a next one may come.
    link.since = link.since || new Date();
    say(isOver ? "the judge has ended" : "reconnecting … (no answer since " + link.since.toLocaleTimeString() + ")", isOver ? "" : "off");
    // Randomised, so that the viewers of a restarted judge do not all reconnect at once.
    link.timer = setTimeout(connect, link.wait * (0.75 + Math.random() / 2));
    link.wait = Math.min(2 * link.wait, longest);
    // Pages that only the judge can show; a new connection brings everything back.
    for (const page of document.querySelectorAll("a[href^='/live/']")) page.removeAttribute("href");
    for (const run of runs.values()) showRun(run.view);
  }
  setInterval(() => { for (const run of runs.values()) if (run.view.state === "running") tick(run); }, 1000);
  route();
  connect();
})();
