// A person's labels of a run's tasks, kept by the browser, and saved as the file that `wabe agreement --labels` reads.
(function () {
  const WORDS = { "1": "1", "0": "0", "?": "" }; // A blank label is one that could not be given.
  const unkept = {};
  const key = (run) => "wabe-labels:" + run;
  function labelsOf(run) {
    let found = unkept[run];
    try { found = JSON.parse(localStorage.getItem(key(run))) || found; } catch { /* private mode, or not ours */ }
    const known = Object.entries(found || {}).filter(([task, label]) => /^[\w-]+$/.test(task) && Object.hasOwn(WORDS, label));
    return new Map(known);
  }
  function keep(run, labels) {
    unkept[run] = Object.fromEntries(labels);
    try { localStorage.setItem(key(run), JSON.stringify(unkept[run])); } catch { /* kept until the page is left */ }
  }
  function show() {
    document.querySelectorAll("[data-labels]").forEach((group) => {
      const label = labelsOf(group.dataset.labels).get(group.dataset.task);
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
    const lines = Array.from(labelsOf(run), ([task, label]) => task + "," + WORDS[label]);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["task_id,human\n" + lines.join("\n") + "\n"], { type: "text/csv" }));
    link.download = "labels-" + run.replace(/[^\w-]/g, "-") + ".csv";
    link.click();
    // Later, because a browser may read the file only after this handler has returned.
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-label], [data-save-labels]");
    if (!button) return;
    if (button.dataset.saveLabels !== undefined) return save(button.dataset.saveLabels);
    const { labels: run, task } = button.closest("[data-labels]").dataset;
    const labels = labelsOf(run);
    if (labels.get(task) === button.dataset.label) labels.delete(task);
    else labels.set(task, button.dataset.label);
    keep(run, labels);
    show();
  });
  window.addEventListener("storage", show);
  window.addEventListener("pageshow", show);
  show();
})();
