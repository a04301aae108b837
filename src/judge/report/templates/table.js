// Sorting and filtering of the task table.
(function () {
  const table = document.getElementById("task-table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  // Searching ignores number columns: a search for "7" means a name.
  const words = (row) => Array.from(row.cells, (cell) => (cell.classList.contains("num") ? "" : cell.textContent));
  const texts = new Map(rows.map((row) => [row, words(row).join(" ").toLowerCase()]));
  const form = document.getElementById("filters");
  const query = document.getElementById("q");
  const selects = ["outcome", "level", "site"].map((name) => [name, document.getElementById("f-" + name)]);
  const heads = Array.from(table.tHead.rows[0].cells);

  function filter() {
    const wanted = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits = selects.every(([name, select]) => !select.value || row.dataset[name] === select.value);
      row.hidden = !(fits && wanted.every((word) => texts.get(row).includes(word)));
      if (!row.hidden) shown += 1;
    }
    document.getElementById("count").textContent =
      shown === rows.length ? rows.length + " tasks" : shown + " of " + rows.length + " tasks";
    document.getElementById("none").hidden = shown > 0;
  }

  function sort(head, column) {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.v === undefined ? cell.textContent.trim().toLowerCase() : Number(cell.dataset.v);
    };
    const keys = new Map(rows.map((row) => [row, key(row)]));
    const place = new Map(rows.map((row, index) => [row, index]));
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    const sorted = rows.slice().sort(
      (a, b) => (down ? -1 : 1) * order(keys.get(a), keys.get(b)) || place.get(a) - place.get(b));
    body.append(...sorted);
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head, column));
    head.replaceChildren(button);
  });
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  document.querySelectorAll("[data-show]").forEach((link) => link.addEventListener("click", () => {
    form.reset();
    document.getElementById("f-outcome").value = link.dataset.show;
    filter();
  }));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      query.focus();
    }
  });
  filter();
})();
