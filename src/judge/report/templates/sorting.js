// Makes the headings of a table sort its rows, by what their cells say or by their `data-v`. `show` gets them in order.
function sortable(table, rows, show) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => {
      const isDown = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const key = ({ dataset, textContent }) => dataset.v === undefined ? textContent.trim().toLowerCase() : Number(dataset.v);
      const keys = new Map(rows.map((row) => [row, key(row.cells[column])]));
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      show(rows.sort((a, b) => (isDown ? -1 : 1) * order(keys.get(a), keys.get(b))));
    });
    head.replaceChildren(button);
  });
}
