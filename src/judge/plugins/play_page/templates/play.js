// Shows what the judge sends, and sends what the person does. All text is set as text, never as markup.
(function () {
  const byId = (id) => document.getElementById(id);
  const path = location.pathname;
  const image = byId("image");
  const counts = { click: 1, twice: 2, thrice: 3, right: 1 };
  let version = -1;
  let turn = 0;
  let view = null;
  let chosen = null;
  let dragFrom = null;
  let isBusy = true;
  let hasPlayed = false;
  let aiming = 0;
  let pressed = null;
  let wheel = null;
  const hint = byId("under").textContent;

  function say(text, state) {
    const status = byId("status");
    if (status.textContent !== text) status.textContent = text;
    status.className = "link " + state;
  }
  function show(id, text) {
    byId(id).hidden = !text;
    byId(id).textContent = text;
  }
  function words(element) {
    return element.role + (element.name ? " “" + element.name + "”" : "");
  }

  // --- What is sent ---

  async function act(gesture) {
    if (isBusy) return;
    busy(true);
    say("sending …", "");
    try {
      await sendChange(path + "/move", { turn, do: gesture, by_program: navigator.webdriver === true });
    } catch (error) {
      busy(false);
      say("your turn", "on");
      show("problem", error.message);
    }
  }
  const call = (tool, params) => act({ kind: "call", tool, params: params || {} });
  function busy(is) {
    isBusy = is;
    byId("play").classList.toggle("busy", is);
  }
  // What a click on the picture, or the button of a selected element, does at a place.
  function at(place, how) {
    if (how === "hover") return act({ kind: "hover", at: place });
    if (how === "drag") {
      dragFrom = place;
      show("under", "Now choose where the drag ends.");
      return mark();
    }
    return act({ kind: "click", at: place, button: how === "right" ? "right" : "left", count: counts[how] });
  }
  async function pointed(place) {
    if (isBusy) return;
    const how = byId("mode").value;
    if (dragFrom) return act({ kind: "drag", start: dragFrom, end: place });
    if (how !== "click" && how !== "choose") return at(place, how);
    const element = place.exact ? null : await aim(place);
    // To type or choose, it is enough to name the field.
    const isFilled = element && (element.is_field || element.options.length);
    if (how === "choose" || (isFilled && !place.exact)) return choose(element, true);
    at(place, how);
  }
  async function aim(place) {
    const query = new URLSearchParams({ turn, x: place.x, y: place.y });
    try {
      const answer = await fetch(path + "/element?" + query, { cache: "no-store" });
      return answer.ok ? await answer.json() : null;
    } catch {
      return null;
    }
  }

  // --- The picture ---

  function placeOf(event) {
    const box = image.getBoundingClientRect();
    const scale = image.naturalWidth / box.width;
    const within = (value, size) => Math.min(Math.max(0, Math.round(value * scale * 10) / 10), size - 1);
    return {
      x: within(event.clientX - box.left, image.naturalWidth),
      y: within(event.clientY - box.top, image.naturalHeight),
      exact: byId("exact").checked || event.shiftKey,
    };
  }
  function frame(id, box) {
    const mark = byId(id);
    mark.hidden = !box || !image.naturalWidth;
    if (mark.hidden) return;
    const part = (value, whole) => (100 * value) / whole + "%";
    const [left, top] = [Math.max(0, box[0]), Math.max(0, box[1])];
    const right = Math.min(image.naturalWidth, box[0] + box[2]);
    const bottom = Math.min(image.naturalHeight, box[1] + box[3]);
    mark.hidden = right <= left || bottom <= top;
    Object.assign(mark.style, {
      left: part(left, image.naturalWidth), top: part(top, image.naturalHeight),
      width: part(right - left, image.naturalWidth), height: part(bottom - top, image.naturalHeight),
    });
  }
  function mark() {
    frame("chosen", chosen && chosen.box);
    const point = byId("point");
    point.hidden = !dragFrom || dragFrom.x === undefined || dragFrom.x === null;
    if (point.hidden) return;
    point.style.left = (100 * dragFrom.x) / image.naturalWidth + "%";
    point.style.top = (100 * dragFrom.y) / image.naturalHeight + "%";
  }
  image.addEventListener("load", mark);
  image.addEventListener("pointermove", (event) => {
    if (isBusy || event.pointerType !== "mouse") return;
    const place = placeOf(event);
    const number = ++aiming;
    // Not for every movement, and only the newest answer counts.
    setTimeout(async () => {
      if (number !== aiming) return;
      const element = place.exact ? null : await aim(place);
      if (number !== aiming || isBusy) return;
      frame("aim", element && element.box);
      byId("under").textContent = element ? words(element) : "the point " + Math.round(place.x) + ", " + Math.round(place.y);
    }, 60);
  });
  image.addEventListener("pointerleave", () => { aiming += 1; frame("aim", null); });
  image.addEventListener("pointerdown", (event) => {
    pressed = event.button === 0 ? { place: placeOf(event), x: event.clientX, y: event.clientY, id: event.pointerId } : null;
  });
  image.addEventListener("click", (event) => {
    const from = pressed;
    pressed = null;
    const hasMoved = from && Math.hypot(event.clientX - from.x, event.clientY - from.y) > 8;
    if (hasMoved) return act({ kind: "drag", start: from.place, end: placeOf(event) });
    pointed(placeOf(event));
  });
  image.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    act({ kind: "click", at: placeOf(event), button: "right", count: 1 });
  });
  image.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (isBusy) return;
    const unit = event.deltaMode === 1 ? 40 : event.deltaMode === 2 ? 600 : 1;
    wheel = wheel || { at: placeOf(event), dx: 0, dy: 0, timer: 0 };
    wheel.dx += event.deltaX * unit;
    wheel.dy += event.deltaY * unit;
    clearTimeout(wheel.timer);
    // Several turns are one action.
    wheel.timer = setTimeout(() => {
      const { at: place, dx, dy } = wheel;
      wheel = null;
      const bound = (value) => Math.round(Math.min(Math.max(value, -10000), 10000));
      if (bound(dx) || bound(dy)) act({ kind: "wheel", at: { ...place, exact: true }, dx: bound(dx), dy: bound(dy) });
    }, 250);
  }, { passive: false });
  byId("actual").addEventListener("change", (event) => byId("frame").classList.toggle("actual", event.target.checked));

  // --- The selected element ---

  function choose(element, hasFocus) {
    chosen = element;
    byId("selected").textContent = element ? words(element) : "Nothing selected";
    const facts = element ? [element.value && "holds “" + element.value + "”", element.states].filter(Boolean).join(", ") : "";
    byId("selected-more").textContent = element ? facts : "Select a field or a list on the picture or below, to type or choose.";
    byId("acts").hidden = !element;
    document.querySelector("[data-act=drop]").hidden = !dragFrom;
    byId("choose").hidden = !element || !element.options.length;
    const options = element ? element.options : [];
    byId("values").multiple = Boolean(element && element.role === "listbox");
    byId("values").replaceChildren(...options.map((each) => new Option(each.name, each.name, each.selected, each.selected)));
    byId("type-where").textContent = element && element.is_field ? "Type into " + words(element) : "Type at the caret";
    document.querySelectorAll("#elements button").forEach((button) =>
      button.setAttribute("aria-pressed", String(Boolean(element) && button.dataset.ref === element.ref)));
    mark();
    if (!element || !hasFocus) return;
    const first = element.options.length ? byId("values") : element.is_field ? byId("text") : byId("acts").querySelector("button:not([hidden])");
    first.focus();
  }
  byId("acts").addEventListener("click", (event) => {
    const how = event.target.dataset.act;
    if (!how || !chosen || isBusy) return;
    const place = { ref: chosen.ref };
    if (how !== "drop") {
      at(place, how);
      if (how === "drag") choose(chosen, false);
    } else if (dragFrom) act({ kind: "drag", start: dragFrom, end: place });
  });
  byId("choose").addEventListener("submit", (event) => {
    event.preventDefault();
    const values = Array.from(byId("values").selectedOptions, (option) => option.value);
    if (chosen && values.length) act({ kind: "select", at: { ref: chosen.ref }, values });
  });
  function type() {
    const place = chosen && chosen.is_field ? { ref: chosen.ref } : null;
    act({ kind: "type", at: place, text: byId("text").value, submit: byId("submit").checked, slowly: byId("slowly").checked });
  }
  byId("type").addEventListener("submit", (event) => { event.preventDefault(); type(); });
  byId("text").addEventListener("keydown", (event) => {
    // With Shift, Enter is a line break.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    type();
  });

  // --- The list of elements ---

  function list() {
    const searched = byId("search").value.toLowerCase();
    const found = view.elements.filter((each) => words(each).toLowerCase().includes(searched));
    byId("count").textContent = found.length;
    byId("elements").replaceChildren(...found.map((each) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.ref = each.ref;
      button.setAttribute("aria-pressed", String(Boolean(chosen) && chosen.ref === each.ref));
      const name = document.createElement("bdi");
      name.textContent = each.name || each.value || "(no name)";
      const role = document.createElement("span");
      role.className = "soft small";
      role.textContent = " " + each.role + (each.states ? ", " + each.states : "");
      button.append(name, role);
      button.addEventListener("click", () => choose(each, true));
      button.addEventListener("pointerenter", () => frame("aim", each.box));
      button.addEventListener("pointerleave", () => frame("aim", null));
      item.append(button);
      return item;
    }));
  }
  byId("search").addEventListener("input", () => { if (view) list(); });

  // --- Everything else ---

  byId("press").addEventListener("submit", (event) => {
    event.preventDefault();
    if (byId("key").value.trim()) call("browser_press_key", { key: byId("key").value.trim() });
  });
  byId("press").addEventListener("click", (event) => {
    if (event.target.dataset.key) call("browser_press_key", { key: event.target.dataset.key });
  });
  document.querySelectorAll("[data-scroll]").forEach((button) =>
    button.addEventListener("click", () => call("browser_scroll", { direction: button.dataset.scroll })));
  byId("back").addEventListener("click", () => call("browser_navigate_back"));
  byId("at").addEventListener("submit", (event) => {
    event.preventDefault();
    pointed({ x: byId("x").valueAsNumber, y: byId("y").valueAsNumber, exact: byId("exact").checked });
  });
  byId("wait").addEventListener("submit", (event) => {
    event.preventDefault();
    call("browser_wait_for", { time: byId("seconds").valueAsNumber });
  });
  byId("go").addEventListener("submit", (event) => {
    event.preventDefault();
    const url = byId("address").value;
    if (event.submitter && event.submitter.value === "tab") call("browser_tabs", { action: "new", url });
    else call("browser_navigate", { url });
  });
  byId("dialog").addEventListener("submit", (event) => {
    event.preventDefault();
    const answer = byId("dialog-answer").value;
    if (event.submitter && event.submitter.value === "no") call("browser_handle_dialog", { accept: false });
    else call("browser_handle_dialog", answer ? { accept: true, promptText: answer } : { accept: true });
  });
  byId("finish").addEventListener("submit", (event) => {
    event.preventDefault();
    byId("sure-answer").textContent = byId("answer").value || "(no answer)";
    byId("sure").returnValue = "";
    byId("sure").showModal();
  });
  byId("sure").addEventListener("close", () => {
    if (byId("sure").returnValue !== "finish" || isBusy) return;
    hasPlayed = true;
    call("finish", { answer: byId("answer").value });
  });
  byId("pass").addEventListener("click", () => sendChange(path + "/pass", { turn }).catch(() => {}));

  // A form for any tool, from its schema. What is neither text, number nor choice is written as JSON.
  function parameter(name, schema, isRequired) {
    const label = document.createElement("label");
    label.append(name + (isRequired ? " " : " (optional) "));
    const choices = schema.type === "boolean" ? ["true", "false"] : schema.enum;
    const input = document.createElement(choices ? "select" : "input");
    if (choices) input.append(new Option("", ""), ...choices.map((each) => new Option(each, each)));
    else if (schema.type === "number" || schema.type === "integer") Object.assign(input, { type: "number", step: "any" });
    else if (schema.type !== "string") input.placeholder = "JSON";
    Object.assign(input, { name, required: isRequired, autocomplete: "off" });
    label.append(input);
    if (schema.description) {
      const about = document.createElement("span");
      about.className = "soft small";
      about.textContent = schema.description;
      label.append(about);
    }
    return label;
  }
  function toolForm() {
    const tool = view.tools.find((each) => each.name === byId("tool-name").value);
    const ofSite = tool && tool.name === "site_tool" ? view.page_tools : [];
    byId("tool-about").textContent = tool ? [tool.description, ...ofSite].join("\n") : "";
    const { properties = {}, required = [] } = tool ? tool.parameters : {};
    byId("tool-params").replaceChildren(
      ...Object.entries(properties).map(([name, schema]) => parameter(name, schema, required.includes(name))));
  }
  byId("tool-name").addEventListener("change", toolForm);
  byId("tool").addEventListener("submit", (event) => {
    event.preventDefault();
    const tool = view.tools.find((each) => each.name === byId("tool-name").value);
    if (!tool) return;
    const params = {};
    try {
      byId("tool-params").querySelectorAll("input, select").forEach((input) => {
        if (input.value === "") return;
        const isText = tool.parameters.properties[input.name].type === "string";
        params[input.name] = isText ? input.value : JSON.parse(input.value);
      });
    } catch {
      return show("problem", "One of the parameters is not JSON.");
    }
    call(tool.name, params);
  });

  // --- What is shown ---

  function tabs() {
    byId("tabs").hidden = view.tabs.length < 2;
    byId("tabs").replaceChildren(...view.tabs.map((each) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = each.title || "Tab " + each.index;
      if (each.current) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => call("browser_tabs", { action: "select", index: each.index }));
      return button;
    }), ...(view.tabs.length < 2 ? [] : [closer()]));
  }
  function closer() {
    const button = document.createElement("button");
    const front = view.tabs.find((each) => each.current);
    button.type = "button";
    button.textContent = "Close this tab";
    button.addEventListener("click", () => call("browser_tabs", front ? { action: "close", index: front.index } : { action: "close" }));
    return button;
  }
  function picture() {
    image.hidden = !view.has_screenshot;
    byId("no-image").hidden = view.has_screenshot;
    if (view.has_screenshot) image.src = path + "/screenshot/" + turn;
    else image.removeAttribute("src");
  }
  function render(state) {
    const isNewTask = !view || view.task !== state.view.task || state.view.reply === 1;
    view = state.view;
    turn = state.turn;
    dragFrom = null;
    byId("task").textContent = view.task;
    byId("facts").textContent = "Reply " + view.reply + (view.website ? " · " + view.website : "");
    show("problem", view.problem);
    show("result", view.result);
    show("notice", view.notice);
    byId("url").textContent = view.title + (view.title ? " — " : "") + view.url;
    byId("dialog").hidden = view.dialog === null;
    byId("dialog-text").textContent = view.dialog || "";
    show("vanished", view.vanished.length ? "Appeared and vanished: " + view.vanished.join("; ") : "");
    for (const id of ["text", "key", "dialog-answer", "search"]) byId(id).value = "";
    for (const id of ["submit", "slowly"]) byId(id).checked = false;
    if (isNewTask) byId("answer").value = "";
    frame("aim", null);
    byId("under").textContent = hint;
    tabs();
    picture();
    const tool = byId("tool-name").value;
    byId("tool-name").replaceChildren(...view.tools.map((each) => new Option(each.name, each.name, false, each.name === tool)));
    toolForm();
    choose(null, false);
    list();
    byId("idle").hidden = true;
    byId("play").hidden = false;
    byId("play").dataset.turn = turn;
    busy(false);
    if (view.dialog !== null) byId("dialog").querySelector("button").focus();
    else if (isNewTask) byId("task").focus();
  }
  function update(state) {
    byId("others").hidden = !(state.phase === "sent" && state.others);
    byId("others").firstElementChild.textContent = "The judge may have ended this task. Others wait: " + state.others + ".";
    if (state.phase === "play") {
      if (state.turn !== turn || byId("play").hidden) render(state);
      return say("your turn", "on");
    }
    busy(true);
    if (state.phase === "sent") return say("the judge acts …", "");
    byId("play").hidden = true;
    byId("idle").hidden = false;
    if (hasPlayed) {
      byId("idle-title").textContent = "Handed in";
      byId("idle-text").textContent = "If there is another task, it appears here. The results are shown where the run was started.";
    }
    say("waiting for a task", "");
  }
  async function follow() {
    for (;;) {
      try {
        const answer = await fetch(path + "/state?seen=" + Math.max(0, version), { cache: "no-store" });
        if (!answer.ok) throw new Error((await answer.text()).slice(0, 300));
        const state = await answer.json();
        if (state.version !== version) update(state);
        version = state.version;
      } catch (error) {
        busy(true);
        version = -1;
        say(error instanceof TypeError ? "the participant does not answer: the run may be over" : error.message, "off");
        await new Promise((done) => setTimeout(done, 1500));
      }
    }
  }
  follow();
})();
