// Follows the judge's events. Everything received is inserted as text, never as markup.
(function () {
  const symbols = { success: "✓", failure: "✗", unscored: "?", aborted: "⊘" };
  const outcomes = Object.keys(symbols);
  const runs = new Map();
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
    const whole = Math.round(seconds);
    return (whole >= 60 ? Math.floor(whole / 60) + " min " : "") + (whole % 60) + " s";
  };

  function runOf(id) {
    if (runs.has(id)) return runs.get(id);
    const part = byId("t-run").content.cloneNode(true).firstElementChild;
    part.querySelector("h2").textContent = "Run " + id;
    byId("runs").prepend(part);
    const run = { part, cards: new Map(), rows: new Map() };
    runs.set(id, run);
    return run;
  }
  function showRun(view) {
    const run = runOf(view.id);
    const done = outcomes.reduce((sum, name) => sum + view.counts[name], 0);
    const bar = run.part.querySelector(".progress");
    bar.setAttribute("aria-label", done + view.kept + " of " + view.total + " tasks done");
    let x = 0;
    bar.replaceChildren(...outcomes.map((name) => {
      const piece = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const width = view.total ? 100 * view.counts[name] / view.total : 0;
      piece.setAttribute("x", x);
      piece.setAttribute("width", width);
      piece.setAttribute("height", 3);
      piece.setAttribute("class", "o-" + name);
      x += width;
      return piece;
    }));
    run.part.querySelector(".counts").replaceChildren(...outcomes.map((name) => {
      const item = make("span", "count");
      item.append(badge(name), " " + view.counts[name]);
      return item;
    }));
    const kept = view.kept ? ", " + view.kept + " kept from before" : "";
    return "Run " + view.id + ": " + done + " of " + (view.total - view.kept) + " tasks" + kept + ", " +
      time(view.seconds) + (view.done ? ", done" : "");
  }
  function showRunning(run, task) {
    let card = run.cards.get(task.id);
    if (!card) {
      card = byId("t-task").content.cloneNode(true).firstElementChild;
      card.querySelector("h4").textContent = task.id;
      run.part.querySelector(".running").append(card);
      run.cards.set(task.id, card);
    }
    card.querySelector(".state").textContent =
      (task.state === "judging" ? "judging after step " : "step ") + task.step + " of " + task.max_steps +
      (task.attempt > 1 ? ", attempt " + task.attempt : "");
    card.querySelector("ol").replaceChildren(...task.actions.slice().reverse().map((action) => {
      const item = make("li");
      item.append(make("span", "soft num", action[0] + " "), make("bdi", "", action[1]));
      return item;
    }));
    const image = card.querySelector("img");
    if (task.step > 0) {
      image.src = "/live/" + encodeURIComponent(task.run) + "/shot/" + encodeURIComponent(task.id) +
        "?step=" + task.attempt + "-" + task.step;
      image.alt = "Newest screenshot of " + task.id + ", step " + task.step;
      image.onload = () => { image.hidden = false; card.querySelector(".frame p").hidden = true; };
      image.onerror = () => { image.hidden = true; card.querySelector(".frame p").hidden = false; };
    }
  }
  function showDone(run, task) {
    const card = run.cards.get(task.id);
    if (card) { card.remove(); run.cards.delete(task.id); }
    const row = make("tr");
    const link = make("a", "", task.id);
    link.href = "/live/" + encodeURIComponent(task.run) + "/tasks/" + encodeURIComponent(task.id) + ".html";
    const cells = [make("td"), make("td"), make("td", "num", task.step), make("td")];
    cells[0].append(badge(task.state));
    cells[1].append(link);
    cells[3].append(make("bdi", "small", task.reason));
    row.append(...cells);
    const old = run.rows.get(task.id);
    if (old) old.replaceWith(row);
    else run.part.querySelector("tbody").prepend(row);
    run.rows.set(task.id, row);
  }
  function show(update) {
    const known = new Set(update.runs.map((run) => run.id));
    for (const [id, run] of runs) if (!known.has(id)) { run.part.remove(); runs.delete(id); }
    const lines = update.runs.map(showRun);
    for (const task of update.tasks) {
      const run = runOf(task.run);
      if (symbols[task.state] || task.state === "stopped") showDone(run, task);
      else {
        const row = run.rows.get(task.id);
        if (row) { row.remove(); run.rows.delete(task.id); }
        showRunning(run, task);
      }
    }
    for (const run of runs.values()) {
      run.part.querySelector(".n-running").textContent = run.cards.size;
      run.part.querySelector(".n-done").textContent = run.rows.size;
    }
    const open = update.runs.filter((run) => !run.done).length;
    byId("title").textContent = !update.runs.length ? "No assessment yet"
      : open ? (open === 1 ? "An assessment is running" : open + " assessments are running") : "All assessments are done";
    byId("totals").replaceChildren(...lines.map((line) => make("span", "", line)));
    byId("waiting").hidden = update.runs.length > 0;
  }
  const source = new EventSource("/events");
  source.onopen = () => { byId("link").textContent = "live"; };
  source.onerror = () => { byId("link").textContent = "connection lost, trying again …"; };
  let fresh = true;
  source.addEventListener("open", () => { fresh = true; });
  source.onmessage = (message) => {
    // The first message of a connection holds everything: what was shown before may be gone.
    if (fresh) { for (const run of runs.values()) run.part.remove(); runs.clear(); fresh = false; }
    show(JSON.parse(message.data));
  };
})();
