// The task page: one step at a time with its screenshot, playback, and the snapshots with their differences. Without
// this script all steps are listed. A document may hold several viewers: only the visible one answers to keys.
(function () {
  const MAX_CELLS = 4e6; // The limit of the comparison's table; larger pages are shown as replaced.
  const HIDDEN = /[\p{Zl}\p{Zp}]|(?![\n\t\u200c\u200d])\p{C}/gu;
  const PLAY_MS = 1300;

  // The snapshot of each step; `judge.report.snapshots` describes the format.
  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const [order, ...texts] = (await new Response(stream).text()).split("\0");
    return order.split(" ").map((place) => texts[place - 1]);
  }

  // Pairs of a mark (" ", "-" or "+") and a line. References and boxes change with every page, so they do not count.
  function difference(before, after) {
    const bare = (line) => line.replace(/ \[ref=[^\]]*\]/g, "");
    const [a, b] = [before.map(bare), after.map(bare)];
    let start = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
    let [n, m] = [a.length, b.length];
    while (n > start && m > start && a[n - 1] === b[m - 1]) { n -= 1; m -= 1; }
    const [rows, width] = [n - start, m - start + 1];
    const result = after.slice(0, start).map((line) => [" ", line]);
    let [i, j] = [0, 0];
    if (rows * width <= MAX_CELLS) {
      // Lengths of the longest common subsequences of the lines from i and j on.
      // 16 bits suffice: the shorter side has at most 2,000 lines, the root of MAX_CELLS.
      const common = new Uint16Array((rows + 1) * width);
      for (let x = rows - 1; x >= 0; x -= 1) {
        for (let y = width - 2; y >= 0; y -= 1) {
          common[x * width + y] = a[start + x] === b[start + y]
            ? common[(x + 1) * width + y + 1] + 1
            : Math.max(common[(x + 1) * width + y], common[x * width + y + 1]);
        }
      }
      while (i < rows && j < width - 1) {
        if (a[start + i] === b[start + j]) { result.push([" ", after[start + j]]); i += 1; j += 1; }
        else if (common[(i + 1) * width + j] >= common[i * width + j + 1]) { result.push(["-", before[start + i]]); i += 1; }
        else { result.push(["+", after[start + j]]); j += 1; }
      }
    }
    before.slice(start + i, n).forEach((line) => result.push(["-", line]));
    after.slice(start + j, m).forEach((line) => result.push(["+", line]));
    after.slice(m).forEach((line) => result.push([" ", line]));
    return result;
  }

  function viewer(root) {
    const steps = Array.from(root.querySelectorAll(".step"));
    if (!steps.length) return;
    const find = (selector) => root.querySelector(selector);
    const button = (name) => find(`[data-do=${name}]`);
    const links = Array.from(root.querySelectorAll(".list a"));
    const [strip, large, text, said, speed] = [".strip", ".large", ".text", ".said-step", "[data-speed]"].map(find);
    const [query, which] = [".find input", ".find select"].map(find);
    const bars = Array.from(root.querySelectorAll(".axis g"));
    const picture = (step) => step && step.querySelector(".frame img");
    let [now, isAfter, tab, timer, packed] = [0, false, "step", 0, null];

    const films = steps.map((step, place) => {
      const link = document.createElement("a");
      link.href = "#" + step.id;
      link.title = links[place].querySelector(".clip").textContent;
      link.setAttribute("aria-label", step.querySelector("h2").textContent.trim());
      if (picture(step)) {
        const thumb = new Image();
        thumb.loading = "lazy";
        thumb.alt = "";
        thumb.setAttribute("src", picture(step).getAttribute("src"));
        link.append(thumb);
      }
      link.append(links[place].querySelector(".n").cloneNode(true), links[place].querySelector(".marks").cloneNode(true));
      return link;
    });
    strip.append(...films);

    // Marks a pane whose content continues below its lower edge.
    const panes = Array.from(root.querySelectorAll(".about, .text, .scrolled, .at-step, .list"));
    const mark = (pane) => pane.classList.toggle("goes-on", pane.scrollHeight - pane.clientHeight - pane.scrollTop > 8);
    const resized = new ResizeObserver((changed) => changed.forEach(({ target }) => mark(target.closest(".goes-on") || target)));
    for (const pane of panes) {
      pane.addEventListener("scroll", () => mark(pane), { passive: true });
      resized.observe(pane);
    }

    // The steps that match the search and the filter beside it.
    const texts = new Map();
    const textIn = (step) => {
      if (!texts.has(step)) texts.set(step, step.textContent.toLowerCase());
      return texts.get(step);
    };
    let found = steps.map(() => true);
    function filter() {
      const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
      const is = (step) => !which.value || step.dataset.is.split(" ").includes(which.value);
      found = steps.map((step) => is(step) && words.every((word) => textIn(step).includes(word)));
      [links, films].forEach((all) => all.forEach((link, place) => { (link.closest("li") || link).hidden = !found[place]; }));
      steps.forEach((step, place) => step.classList.toggle("left-out", !found[place]));
      const count = found.filter(Boolean).length;
      const result = find(".find p");
      result.hidden = count === steps.length;
      result.textContent = count ? `${count} of ${steps.length} steps` : "No step matches.";
      if (!found[now] && count) go(found.indexOf(true));
      else show(now, false);
    }
    const beside = (by) => {
      let place = now + by;
      while (place >= 0 && place < steps.length && !found[place]) place += by;
      return place;
    };

    function reveal(link, axis) {
      const box = link.closest(".strip, .list");
      const [size, from] = axis === "x" ? ["Width", "Left"] : ["Height", "Top"];
      box["scroll" + from] = link["offset" + from] - box["offset" + from] - (box["client" + size] - link["offset" + size]) / 2;
    }
    function show(place, isAnnounced) {
      now = Math.max(0, Math.min(steps.length - 1, place));
      steps.forEach((step, other) => step.classList.toggle("now", other === now));
      [links, films].forEach((all) => all.forEach((link, other) => {
        if (other === now) link.setAttribute("aria-current", "step");
        else link.removeAttribute("aria-current");
      }));
      root.querySelectorAll(".scored").forEach((part) => part.classList.toggle("now", part.dataset.of === steps[now].id));
      reveal(links[now], "y");
      reveal(films[now], "x");
      button("previous").disabled = beside(-1) < 0;
      button("next").disabled = beside(1) >= steps.length;
      bars.forEach((bar) => bar.classList.toggle("now", bar.dataset.of === steps[now].id));
      button("after").disabled = !picture(steps[now + 1]) || !picture(steps[now]);
      button("enlarge").disabled = !picture(steps[now]);
      find(".place").textContent = `${now + 1} / ${steps.length}`;
      find("[data-tab=requests]").textContent = `Requests (${steps[now].dataset.requests})`;
      find("[data-tab=console]").textContent = `Console (${steps[now].dataset.console})`;
      turn(false);
      write();
      // Loaded in advance, so that the next step appears at once.
      if (picture(steps[now + 1])) new Image().src = picture(steps[now + 1]).src;
      if (!isAnnounced) return;
      const line = steps[now].querySelector(".line");
      if (!timer) said.textContent = `${steps[now].querySelector("h2").textContent.trim()} of ${steps.length}: ${line ? line.textContent : ""}`;
      if (!root.classList.contains("on")) steps[now].scrollIntoView({ block: "start" });
    }
    // The screenshot after an action is the one that the next step began with.
    function turn(toAfter) {
      steps.forEach((step) => {
        const image = picture(step);
        if (!image || image.dataset.before === undefined) return;
        image.setAttribute("src", image.dataset.before);
        delete image.dataset.before;
      });
      isAfter = toAfter && !button("after").disabled;
      if (isAfter) {
        const image = picture(steps[now]);
        image.dataset.before = image.getAttribute("src");
        image.setAttribute("src", picture(steps[now + 1]).getAttribute("src"));
      }
      root.classList.toggle("after", isAfter);
      button("before").setAttribute("aria-pressed", String(!isAfter));
      button("after").setAttribute("aria-pressed", String(isAfter));
      if (large.open) fill();
    }
    function go(place) {
      if (place < 0 || place >= steps.length) return;
      history.replaceState(null, "", "#" + steps[place].id);
      show(place, true);
    }
    function play(isOn) {
      clearInterval(timer);
      timer = 0;
      if (isOn) {
        const isAtEnd = () => beside(1) >= steps.length;
        if (isAtEnd() && found.includes(true)) go(found.indexOf(true));
        timer = setInterval(() => {
          if (!isAtEnd()) go(beside(1));
          if (isAtEnd()) play(false);
        }, PLAY_MS / Number(speed.value));
      }
      button("play").textContent = isOn ? "❚❚ Pause" : "▶ Play";
      button("play").setAttribute("aria-pressed", String(isOn));
    }
    function list(isAll) {
      root.classList.toggle("on", !isAll);
      button("all").setAttribute("aria-pressed", String(isAll));
      button("all").textContent = isAll ? "One step" : "All steps";
      steps[now].scrollIntoView({ block: isAll ? "start" : "nearest" });
      if (!isAll) window.scrollTo(0, 0);
    }
    function fill() {
      const close = document.createElement("button");
      close.type = "button";
      close.textContent = "Close";
      close.addEventListener("click", () => large.close());
      large.replaceChildren(steps[now].querySelector(".frame").cloneNode(true), close);
    }
    // Pages not served securely have no clipboard.
    async function copyLink() {
      const address = location.href.split("#")[0] + "#" + steps[now].id;
      let isCopied = true;
      try { await navigator.clipboard.writeText(address); } catch {
        const field = document.createElement("textarea");
        field.value = address;
        root.append(field);
        field.select();
        isCopied = document.execCommand("copy");
        field.remove();
      }
      button("link").textContent = isCopied ? "Copied" : "Not copied";
      said.textContent = isCopied ? "The link to this step is copied" : "The link could not be copied";
      setTimeout(() => { button("link").textContent = "Copy link"; }, 2000);
    }
    function enlarge() {
      if (large.open || !picture(steps[now])) return;
      fill();
      large.showModal();
    }

    function row(mark, line) {
      const part = document.createElement("span");
      part.textContent = line.replace(HIDDEN, (hidden) => "\\u" + hidden.codePointAt(0).toString(16).padStart(4, "0"));
      if (mark) part.className = mark;
      return part;
    }
    // Lines far from any change are left out.
    function changes(before, after) {
      const all = difference(before, after);
      const near = new Set();
      all.forEach(([mark], place) => { if (mark !== " ") for (let by = -2; by <= 2; by += 1) near.add(place + by); });
      if (!near.size) return [row("", "The snapshot is the same as that of the previous step.")];
      let skipped = 0;
      const rows = [];
      const close = () => { if (skipped) rows.push(row("gap", `  ⋯ ${skipped} unchanged`)); skipped = 0; };
      all.forEach(([mark, line], place) => {
        if (!near.has(place)) { skipped += 1; return; }
        close();
        rows.push(row({ "+": "plus", "-": "minus", " ": "" }[mark], `${mark} ${line}`));
      });
      close();
      return rows;
    }
    async function write() {
      text.hidden = tab !== "snapshot" && tab !== "difference";
      root.dataset.shown = tab;
      if (text.hidden) return;
      const [place, wanted] = [now, tab];
      if (!packed && root.dataset.snapshots) packed = unpack(root.dataset.snapshots);
      const found = (await packed) || [];
      // While the snapshots were unpacked, the viewer may have chosen another step or tab.
      if (place !== now || wanted !== tab) return;
      // Participants see no boxes unless the scenario asks for them.
      const lines = (at) => {
        const whole = found[at];
        return whole === undefined ? null : whole.replace(/ \[box=[^\]]*\]/g, "").trimEnd().split("\n");
      };
      const [before, here] = [lines(now - 1), lines(now)];
      text.setAttribute("aria-label", tab === "snapshot" ? "Snapshot" : "Difference from the previous step's snapshot");
      if (!here) text.replaceChildren(row("", "No snapshot was recorded."));
      else if (tab === "difference" && !before) text.replaceChildren(row("", "There is no snapshot before this one."));
      else if (tab === "difference") text.replaceChildren(...changes(before, here));
      else {
        const mark = `[ref=${steps[now].dataset.target}]`;
        text.replaceChildren(...here.map((line) => row(line.includes(mark) ? "target" : "", line)));
      }
      const target = text.querySelector(".target");
      text.scrollTop = target ? target.offsetTop - text.offsetTop - 40 : 0;
    }

    const deeds = {
      previous: () => go(beside(-1)), next: () => go(beside(1)), link: copyLink, play: () => play(!timer), all: () => list(root.classList.contains("on")),
      before: () => turn(false), after: () => turn(true), enlarge,
    };
    root.addEventListener("click", (event) => {
      const bar = event.target.closest(".axis g");
      if (bar) return go(steps.findIndex((step) => step.id === bar.dataset.of));
      const hit = event.target.closest("[data-do], [data-tab], .strip a, .list a, .step .frame, dialog .frame");
      if (!hit) return;
      if (hit.dataset.do) {
        if (hit.dataset.do !== "play") play(false);
        deeds[hit.dataset.do]();
      } else if (hit.dataset.tab) {
        tab = hit.dataset.tab;
        root.querySelectorAll("[data-tab]").forEach((each) => each.setAttribute("aria-pressed", String(each === hit)));
        write();
      } else if (hit.matches("a")) {
        event.preventDefault();
        play(false);
        go(steps.findIndex((step) => "#" + step.id === hit.getAttribute("href")));
      } else if (large.open) large.close();
      else {
        const place = steps.indexOf(hit.closest(".step"));
        if (place !== now) go(place);
        enlarge();
      }
    });
    speed.addEventListener("change", () => { if (timer) { play(false); play(true); } });
    query.addEventListener("input", filter);
    which.addEventListener("change", filter);
    const wanted = () => steps.findIndex((step) => "#" + step.id === location.hash);
    window.addEventListener("hashchange", () => { if (wanted() >= 0) show(wanted(), true); });
    document.addEventListener("keydown", (event) => {
      if (!root.getClientRects().length || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, select, textarea")) return;
      const isOnControl = event.target.closest("button, a, summary");
      const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (side && event.shiftKey) {
        const link = document.querySelector(side < 0 ? "a[rel=prev]" : "a[rel=next]");
        if (link) link.click();
      } else if (side) { play(false); go(beside(side)); }
      else if (event.key === "Home") go(0);
      else if (event.key === "End") go(steps.length - 1);
      else if (event.key === " " && !(isOnControl && !isOnControl.matches("a"))) play(!timer);
      else if (event.key === "Enter" && !isOnControl) enlarge();
      else if (event.key === "b") turn(!isAfter);
      else if (event.key === "a") deeds.all();
      else return;
      event.preventDefault();
    });
    // On paper all steps are listed.
    let wasOn = true;
    window.addEventListener("beforeprint", () => { wasOn = root.classList.contains("on"); root.classList.remove("on"); });
    window.addEventListener("afterprint", () => root.classList.toggle("on", wasOn));
    root.querySelectorAll(".strip, .controls, .tabs, .find, .axis").forEach((part) => { part.hidden = false; });
    root.classList.add("on");
    const opens = steps.findIndex((step) => step.id === root.dataset.opens);
    show(Math.max(0, location.hash ? wanted() : opens), false);
  }
  document.querySelectorAll(".viewer").forEach(viewer);
})();
