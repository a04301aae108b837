// The list of all runs: filters while typing, selects runs to compare, keeps tags and notes.
(function () {
  const form = document.getElementById("filters");
  const dialog = document.getElementById("notes");
  const status = document.getElementById("status");
  const byId = (id) => document.getElementById(id);
  const typing = 120;
  const often = 5000;
  const most = 12;
  const selected = new Set();
  const asked = {};
  let waiting = 0;

  function address() {
    const filled = Array.from(new FormData(form)).filter(([, value]) => value);
    return "/" + (filled.length ? "?" + new URLSearchParams(filled) : "");
  }
  // Everything on the server's page is escaped there; scripts in it would not run.
  async function replace(url, id) {
    const number = asked[id] = (asked[id] || 0) + 1;
    try {
      const answer = await fetch(url, { cache: "no-store" });
      if (!answer.ok) throw new Error((await answer.text()).slice(0, 300));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      // A later search may have been faster.
      if (number !== asked[id]) return;
      byId(id).replaceWith(page.getElementById(id));
      status.textContent = "";
      prepare();
    } catch (error) {
      status.textContent = error instanceof TypeError ? "the server does not answer" : error.message;
    }
  }
  function search(isNew) {
    const url = address();
    if (url !== location.pathname + location.search) history[isNew ? "pushState" : "replaceState"](null, "", url);
    return replace(url, "found");
  }
  function prepare() {
    document.querySelectorAll(".edit").forEach((button) => { button.hidden = false; });
    document.querySelectorAll("input[name=run]").forEach((box) => { box.checked = selected.has(box.value); });
    const isUsable = selected.size > 1 && selected.size <= most;
    byId("compare").querySelector("button").disabled = !isUsable;
    byId("chosen").textContent = selected.size > most ? selected.size + " selected, at most " + most
      : selected.size ? selected.size + " selected" : "select 2 to " + most + " runs";
  }
  function edit(row) {
    const [tags, note] = [dialog.querySelector("[name=tags]"), dialog.querySelector("[name=note]")];
    dialog.dataset.key = row.dataset.key;
    byId("notes-of").textContent = row.querySelector(".id").textContent;
    byId("notes-problem").textContent = "";
    tags.value = row.dataset.tags;
    note.value = row.dataset.note;
    dialog.showModal();
    tags.focus();
  }
  async function save() {
    const [tags, note] = [dialog.querySelector("[name=tags]"), dialog.querySelector("[name=note]")];
    const change = {
      key: dialog.dataset.key,
      notes: { tags: tags.value.split(",").map((tag) => tag.trim()).filter(Boolean), note: note.value.trim() },
    };
    try {
      await sendChange("/notes", change);
    } catch (error) {
      byId("notes-problem").textContent = error.message;
      return;
    }
    byId("notes-problem").textContent = "";
    dialog.close();
    await replace(location.pathname + location.search, "found");
    const row = document.querySelector('tr[data-key="' + CSS.escape(change.key) + '"] .edit');
    if (row) row.focus();
  }

  byId("apply").hidden = true;
  form.addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search(event.target.type !== "search"), event.target.type === "search" ? typing : 0);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); search(true); });
  document.addEventListener("change", (event) => {
    if (!event.target.matches("input[name=run]")) return;
    selected[event.target.checked ? "add" : "delete"](event.target.value);
    prepare();
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "compare") return;
    event.preventDefault();
    // Also runs of other pages of the list.
    location.assign("/compare/" + Array.from(selected, encodeURIComponent).join(",") + "/index.html");
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".edit");
    if (button) edit(button.closest("tr"));
  });
  dialog.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); save(); });
  byId("notes-cancel").addEventListener("click", () => dialog.close());
  // Fields are not in the history.
  window.addEventListener("popstate", () => location.reload());
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      form.querySelector("[type=search]").focus();
    }
  });
  setInterval(async () => {
    if (document.hidden || dialog.open) return;
    const before = byId("running").dataset.runs;
    await replace(location.pathname + location.search, "running");
    if (byId("running").dataset.runs !== before) replace(location.pathname + location.search, "found");
  }, often);
  prepare();
})();
