// A person's labels of a run's tasks, kept by the browser, and saved as the file that `wabe agreement --labels` reads.
(function () {
  const WORDS = { "1": "1", "0": "0", "?": "" }; // A blank label is one that could not be given.
  const unkept = {};
  const key = (run) => "wabe-labels:" + run;
  // The label and a note for each task, either of which may be empty. Older pages stored the label only.
  function labelsOf(run) {
    let found = unkept[run];
    try { found = JSON.parse(localStorage.getItem(key(run))) || found; } catch { /* private mode, or not ours */ }
    const entries = Object.entries(found || {}).map(([task, kept]) => [task, typeof kept === "string" ? { label: kept, note: "" } : kept]);
    const isKnown = ({ label, note } = {}) => (label === "" || Object.hasOwn(WORDS, label)) && typeof note === "string";
    return new Map(entries.filter(([task, kept]) => /^[\w-]+$/.test(task) && kept && isKnown(kept)));
  }
  function keep(run, labels) {
    unkept[run] = Object.fromEntries(labels);
    try { localStorage.setItem(key(run), JSON.stringify(unkept[run])); } catch { /* kept until the page is left */ }
  }
  function show() {
    document.querySelectorAll("[data-labels]").forEach((group) => {
      const { label, note } = labelsOf(group.dataset.labels).get(group.dataset.task) || { label: "", note: "" };
      const field = group.querySelector("[data-note]");
      if (field !== document.activeElement) field.value = note;
      group.querySelectorAll("[data-label]").forEach((button) =>
        button.setAttribute("aria-pressed", String(button.dataset.label === label)));
      group.hidden = false;
    });
    document.querySelectorAll("[data-save-labels]").forEach((button) => {
      const count = labelsOf(button.dataset.saveLabels).size;
      button.textContent = count ? "Save labels (" + count + ")" : "Save labels";
      button.disabled = !count;
      button.hidden = false;
    });
  }
  function save(run) {
    const labels = labelsOf(run);
    const hasNotes = [...labels.values()].some(({ note }) => note);
    // An apostrophe precedes what a spreadsheet would read as a formula.
    const quoted = (note) => '"' + note.replace(/^(?=[=+\-@\t\r])/, "'").replace(/"/g, '""') + '"';
    const lines = Array.from(labels, ([task, { label, note }]) =>
      [task, WORDS[label] || "", ...(hasNotes ? [quoted(note)] : [])].join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([(hasNotes ? "task_id,human,note\n" : "task_id,human\n") + lines.join("\n") + "\n"], { type: "text/csv" }));
    link.download = "labels-" + run.replace(/[^\w-]/g, "-") + ".csv";
    link.click();
    // Later, because a browser may read the file only after this handler has returned.
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }
  function change(run, task, by) {
    const labels = labelsOf(run);
    const kept = { label: "", note: "", ...labels.get(task), ...by };
    if (kept.label || kept.note) labels.set(task, kept);
    else labels.delete(task);
    keep(run, labels);
    show();
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-label], [data-save-labels]");
    if (!button) return;
    if (button.dataset.saveLabels !== undefined) return save(button.dataset.saveLabels);
    const { labels: run, task } = button.closest("[data-labels]").dataset;
    const label = (labelsOf(run).get(task) || {}).label === button.dataset.label ? "" : button.dataset.label;
    change(run, task, { label });
  });
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-note]")) return;
    const { labels: run, task } = event.target.closest("[data-labels]").dataset;
    change(run, task, { note: event.target.value });
  });
  window.addEventListener("storage", show);
  window.addEventListener("pageshow", show);
  show();
})();
