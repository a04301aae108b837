// Sorting and filtering of the task table. The filters are in the address, so that it can be shared: `#verdict=failure`.
(function () {
  const table = document.getElementById("task-table");
  if (!table) return;
  const [body, rest] = table.tBodies;
  const rows = Array.from(table.tBodies).flatMap((part) => Array.from(part.rows));
  // The number of rows shown at first, and added on demand.
  const page = rest ? body.rows.length : rows.length;
  let found = rows;
  if (rest) rest.remove();
  // Searching ignores number columns: a search for "7" means a name.
  const words = (row) => Array.from(row.cells, (cell) => (cell.classList.contains("num") ? "" : cell.textContent));
  const texts = new Map();
  const text = (row) => {
    if (!texts.has(row)) texts.set(row, words(row).join(" ").toLowerCase());
    return texts.get(row);
  };
  const form = document.getElementById("filters");
  const more = document.querySelector("#more button");
  const query = document.getElementById("q");
  const selects = Array.from(form.querySelectorAll("select"));
  const fields = [query, ...selects];

  // `data-list` marks a value that is a list of names.
  const has = (row, select) => {
    const value = row.dataset[select.dataset.of];
    return select.dataset.list === undefined ? value === select.value : value.split(" ").includes(select.value);
  };
  function filter() {
    const wanted = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const used = selects.filter((select) => select.value);
    found = rows.filter((row) => used.every((select) => has(row, select)) && wanted.every((word) => text(row).includes(word)));
    const count = document.getElementById("count");
    count.textContent = (found.length === rows.length ? "" : found.length + " of ") + rows.length + " " + (count.dataset.unit || "tasks");
    document.getElementById("none").hidden = found.length > 0;
    body.replaceChildren();
    showMore();
  }
  function showMore() {
    body.append(...found.slice(body.rows.length, body.rows.length + page));
    const left = found.length - body.rows.length;
    more.parentElement.hidden = !left;
    more.textContent = "Show " + Math.min(left, page) + " more of " + left;
  }

  function read() {
    const kept = new URLSearchParams(location.hash.slice(1));
    // The address of a section, such as #charts, contains no filters.
    if (location.hash.length > 1 && !fields.some((field) => kept.has(field.name))) return;
    for (const field of fields) {
      field.value = kept.get(field.name) || "";
      // The address may name a value that this table does not have.
      if (field.selectedIndex === -1) field.value = "";
    }
    filter();
  }
  function write(isNew) {
    const kept = new URLSearchParams(fields.filter((field) => field.value).map((field) => [field.name, field.value]));
    const address = location.href.split("#")[0] + (String(kept) && "#" + kept);
    if (address !== location.href) history[isNew ? "pushState" : "replaceState"](null, "", address);
    filter();
  }

  sortable(table, rows, filter);
  form.hidden = false;
  more.addEventListener("click", showMore);
  // A choice adds a history entry; typing in the search field does not.
  query.addEventListener("input", () => write(false));
  selects.forEach((select) => select.addEventListener("change", () => write(true)));
  form.addEventListener("submit", (event) => event.preventDefault());
  // The fields are cleared only after this event.
  form.addEventListener("reset", () => setTimeout(() => write(true)));
  window.addEventListener("hashchange", read);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      query.focus();
    }
  });
  read();
  filter();
})();
