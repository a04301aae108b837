// Shows one group of comparable rows at a time, with search and sorting within it. Without scripts, all are there.
(function () {
  const form = document.getElementById("filters");
  const choice = document.getElementById("group");
  const query = document.getElementById("q");
  const count = document.getElementById("count");
  const others = document.getElementById("others");
  const groups = Array.from(document.querySelectorAll("section.group"));
  if (!groups.length) return;

  function show() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const group of groups) {
      group.hidden = group.id !== choice.value;
      if (group.hidden) continue;
      const rows = Array.from(group.querySelectorAll(".board tbody tr"));
      for (const row of rows) {
        const text = row.cells[1].textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      const found = rows.filter((row) => !row.hidden).length;
      count.textContent = (found === rows.length ? "" : found + " of ") + rows.length + (rows.length === 1 ? " row" : " rows");
    }
    if (others) others.hidden = true;
  }
  for (const group of groups) {
    const table = group.querySelector(".board table");
    sortable(table, Array.from(table.tBodies[0].rows), (sorted) => table.tBodies[0].append(...sorted));
  }
  const kept = decodeURIComponent(location.hash.slice(1));
  if (groups.some((group) => group.id === kept)) choice.value = kept;
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  query.addEventListener("input", show);
  choice.addEventListener("change", () => {
    history.replaceState(null, "", "#" + choice.value);
    show();
  });
  show();
})();
