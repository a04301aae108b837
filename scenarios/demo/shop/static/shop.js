"use strict";
const one = (selector) => document.querySelector(selector);
const all = (selector) => document.querySelectorAll(selector);

// Content that arrives late, as it does on real sites.
for (const box of all("[data-late]")) {
  setTimeout(async () => {
    box.innerHTML = await (await fetch(box.dataset.late)).text();
    box.removeAttribute("aria-busy");
  }, Number(box.dataset.delay));
}
for (const box of all("[data-late-text]")) setTimeout(() => { box.textContent = box.dataset.lateText; }, Number(box.dataset.delay));

// Cookie choice.
for (const button of all("[data-cookies]")) {
  button.onclick = () => {
    document.cookie = `cookies=${button.dataset.cookies}; path=/; samesite=lax`;
    button.closest("[role=dialog]").remove();
  };
}

// Suggestions while typing.
const field = one("[role=combobox]");
const list = one("#suggestions");
field?.addEventListener("input", async () => {
  const typed = field.value;
  const found = typed.length > 1 ? await (await fetch(`/api/suggest?q=${encodeURIComponent(typed)}`)).json() : [];
  if (field.value !== typed) return;
  list.replaceChildren(...found.map((item) => {
    const option = document.createElement("li");
    option.setAttribute("role", "option");
    option.textContent = item.name;
    option.onmousedown = () => { location.href = item.url; };
    return option;
  }));
  list.hidden = !found.length;
  field.setAttribute("aria-expanded", String(found.length > 0));
});
field?.addEventListener("blur", () => { list.hidden = true; field.setAttribute("aria-expanded", "false"); });

// Facets and the sort order take effect at once; prices wait for their button.
const filters = one("#filters");
const send = () => {
  for (const input of filters.querySelectorAll("input")) if (!input.value) input.disabled = true;
  filters.submit();
};
filters?.addEventListener("change", (event) => { if (event.target.type !== "number") send(); });
filters?.addEventListener("submit", (event) => { event.preventDefault(); send(); });

// Product page.
one("#add")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await (await fetch("/cart/add", { method: "POST", body: new URLSearchParams(new FormData(event.target)) })).json();
  if (answer.error) { alert(answer.error); return; }
  one("#added-text").textContent = answer.message;
  one("#cart-count").textContent = answer.count;
  one("#added").showModal();
});
one("[data-close]")?.addEventListener("click", () => one("#added").close());

// Dialogs of the browser.
for (const form of all("[data-confirm]")) form.onsubmit = () => confirm(form.dataset.confirm);
one("#newsletter")?.addEventListener("submit", (event) => { event.preventDefault(); alert("Thank you. Please look into your mailbox."); });

for (const button of all("[data-vote]")) button.onclick = () => { button.parentElement.querySelector("[role=status]").textContent = "Thank you for telling us."; };

// Tables that sort by their headings.
for (const table of all("table.sortable")) {
  table.querySelectorAll("th").forEach((heading, column) => {
    heading.querySelector("button").onclick = () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      for (const other of table.querySelectorAll("th")) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => { const cell = row.cells[column]; return cell.dataset.value ? Number(cell.dataset.value) : cell.textContent; };
      const rows = [...table.tBodies[0].rows].sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
    };
  });
}

// Tools for agents (WebMCP), in browsers that have them.
const text = (value) => ({ type: "string", description: value });
const count = (value) => ({ type: "integer", description: value });
const tool = (name, description, properties, required, run) => document.modelContext?.registerTool({
  name, description, inputSchema: { type: "object", properties, required }, execute: async (input) => {
    const { error, message } = await run(input);
    return { content: [{ type: "text", text: error ?? message }], isError: Boolean(error) };
  },
});
const go = (url, message) => { location.assign(url); return { message }; };
const post = (action, fields, message) => {
  const form = Object.assign(document.createElement("form"), { method: "post", action, hidden: true });
  for (const [name, value] of Object.entries(fields)) form.append(Object.assign(document.createElement("input"), { name, value }));
  document.body.append(form);
  form.submit();
  return { message };
};
const query = (fields) => `/search?${new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== undefined))}`;
tool("search_products", "Find products by words of their names", { query: text("The words") }, ["query"],
  (input) => go(query({ q: input.query }), `Searching for ${input.query}`));
tool("filter_products", "Show the products that meet all of these conditions", {
  category: text("Lamps, Desks, Chairs, Shelves or Rugs"), colour: text("Such as Red"), material: text("Such as Oak"),
  min_price: count("In euros"), max_price: count("In euros"), min_rating: count("3 or 4 stars"),
  sort: { type: "string", enum: ["relevance", "price-asc", "price-desc", "rating", "name"] }, page: count("From 1"),
}, [], ({ min_price: min, max_price: max, min_rating: rating, ...rest }) => go(query({ ...rest, min, max, rating }), "Showing the products"));
tool("add_to_cart", "Put pieces of a product into the cart", { product: text("Its name"), pieces: count("1 to 9, 1 if left out") }, ["product"],
  async ({ product, pieces = 1 }) => {
    const slug = product.trim().toLowerCase().replaceAll(" ", "-");
    const isWrong = "toolBug" in document.documentElement.dataset;
    const body = new URLSearchParams({ slug, pieces: isWrong ? 1 : pieces });
    const answer = await (await fetch("/cart/add", { method: "POST", body })).json();
    if (!answer.error) one("#cart-count").textContent = answer.count;
    return isWrong && !answer.error ? { message: `${pieces} × ${product} added to your cart` } : answer;
  });
tool("show_cart", "Open the cart", {}, [], () => go("/cart", "Opening the cart"));
tool("empty_cart", "Remove everything from the cart", {}, [], () => post("/cart/clear", {}, "Emptying the cart"));
tool("place_order", "Order what is in the cart", { name: text("The buyer's full name"), delivery: { type: "string", enum: ["standard", "express"] } },
  ["name", "delivery"], ({ name, delivery }) => post("/checkout", { name, delivery }, "Sending the order"));
