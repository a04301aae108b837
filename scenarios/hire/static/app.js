// The client: views, a batch of operations per tick, and something random in every request.
const $ = (selector) => document.querySelector(selector);
const base36 = () => Math.random().toString(36).slice(2);
const nonce = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const client = (sessionStorage.client ??= base36());
let access = "";
let orderKey = crypto.randomUUID();
let [entries, waiting, socket, typing, dragged] = [[], []];

const escaped = (value) => value?.html ?? (Array.isArray(value) ? value.map(escaped).join("") : String(value).replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`));
const made = (parts, ...values) => ({ html: parts.reduce((done, part, n) => done + escaped(values[n - 1]) + part) });
const show = (...given) => { $("main").innerHTML = made(...given).html; };
const say = (text) => { $("#notice").textContent = text; };
const price = (value) => `€${value}`;
const dayText = (day) => `${Number(day.slice(8))} June 2031`;

async function call(method, path, body, more) {
  const headers = { "Content-Type": "application/json", "X-Client": client, "X-Nonce": nonce(), "X-Request-Id": crypto.randomUUID(), ...more };
  if (access) headers.Authorization = `Bearer ${access}`;
  const answer = await fetch(`${path}?_=${Date.now()}&r=${base36()}`, { method, headers, body: body && JSON.stringify(body) });
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error);
  return data;
}

const OPERATIONS = {
  boats: "query boats($q: String, $most: Int) { boats(q: $q, most: $most) { slug name price } }",
  boat: "query boat($slug: ID!) { boat(slug: $slug) { slug name price sheet } }",
  basket: "query basket { basket { day total lines { id name quantity } } }",
  entries: "query entries { entries { id text done } }",
  add_line: "mutation add_line($slug: ID!) { add_line(slug: $slug) }",
  set_line: "mutation set_line($id: ID!, $quantity: Int!) { set_line(id: $id, quantity: $quantity) }",
  set_day: "mutation set_day($day: String!) { set_day(day: $day) }",
  add_entry: "mutation add_entry($text: String!, $temp: ID!) { add_entry(text: $text, temp: $temp) { temp id } }",
  tick_entry: "mutation tick_entry($id: ID!, $done: Boolean!) { tick_entry(id: $id, done: $done) }",
};
const ask = (operationName, variables = {}) => new Promise((resolve, reject) => {
  if (!waiting.length) setTimeout(flush, 5);
  const operation = { operationName, query: OPERATIONS[operationName], variables, extensions: { requestId: crypto.randomUUID() } };
  waiting.push({ operation, resolve, reject });
});
async function flush() {
  const batch = waiting.splice(0).sort(() => Math.random() - 0.5);
  try {
    const done = await call("POST", "/graphql", batch.map((each) => each.operation));
    for (const { operation, resolve } of batch) resolve(done.find((each) => each.name === operation.operationName).data);
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}

// The access token is kept in memory only: a page gets a new one when it is loaded, and before each order.
function logged(session) {
  if (!access) listen();
  access = session.access_token;
  sessionStorage.refresh = session.refresh_token;
  $("#account").textContent = session.name;
}
const refreshed = async () => logged(await call("POST", "/api/session/refresh", { refresh_token: sessionStorage.refresh }));

const views = {
  async "/"() {
    const [boats] = await Promise.all([ask("boats", { q: $("#search").value, most: Number($("#most").value) }), ask("basket")]);
    show`<h1>Boats</h1><p role="status">${boats.length} boats up to ${price($("#most").value)}</p>
      <ul aria-label="Boats">${boats.map((boat) => made`<li><a href="/boats/${boat.slug}">${boat.name}</a> ${price(boat.price)} a day</li>`)}</ul>`;
  },
  async "/boats/"(slug) {
    const [boat, basket] = await Promise.all([ask("boat", { slug }), ask("basket")]);
    show`<h1>${boat.name}</h1><p>${price(boat.price)} a day</p><p id="watching"></p><p><a href="/sheets/${boat.sheet}">Safety sheet</a></p>
      <button data-add="${slug}">Add to basket</button> <p>In the basket: ${basket.lines.map((line) => line.name).join(", ") || "nothing"}</p>`;
    watch(slug);
  },
  async "/sheets/"(digest) {
    const sheet = await call("GET", `/api/sheets/${digest}`);
    show`<h1>Safety sheet: ${sheet.name}</h1><p>Do not use this boat above wind force ${sheet.wind}.</p>`;
  },
  async "/basket"() {
    const basket = await ask("basket");
    const days = Array.from({ length: 30 }, (_, n) => `2031-06-${String(n + 1).padStart(2, "0")}`);
    show`<h1>Basket</h1><ul aria-label="Basket">${basket.lines.map((line) => made`<li>${line.quantity} × ${line.name}
        <button data-line="${line.id}" data-quantity="${line.quantity - 1}" aria-label="Fewer ${line.name}">−</button>
        <button data-line="${line.id}" data-quantity="${line.quantity + 1}" aria-label="More ${line.name}">+</button></li>`)}</ul>
      <p>Total: ${price(basket.total)}</p><div class="month" role="group" aria-label="June 2031">${days.map((day) => made`<button
        data-day="${day}" aria-pressed="${basket.day === day}" aria-label="${dayText(day)}">${Number(day.slice(8))}</button>`)}</div>
      <label>Insurance in euros <input type="range" id="insurance" min="0" max="60" step="5" value="20"></label>
      <label>Voucher <input id="voucher"></label> <button data-voucher>Apply</button> <button data-order>Place order</button>`;
  },
  async "/login"() {
    show`<h1>Log in</h1><form id="login"><label>E-mail <input name="email"></label>
      <label>Password <input name="password" type="password"></label> <button>Log in</button></form>`;
  },
  async "/orders"() {
    const orders = await call("GET", "/api/orders");
    show`<h1>Orders</h1><ul aria-label="Orders">${orders.map((order) => made`<li><a href="/orders/${order.id}">Order ${order.number}</a>:
      ${order.lines.map((line) => line.name).join(", ")}, ${dayText(order.day)}, ${order.status}</li>`)}</ul>`;
  },
  async "/orders/"(id, changed) {
    const order = changed ?? (await call("GET", `/api/orders/${id}`));
    show`<h1>Order ${order.number}</h1><p>${dayText(order.day)}, ${order.status}, total ${price(order.total)}</p>
      <ul aria-label="Boats">${order.lines.map((line) => made`<li>${line.quantity} × ${line.name}</li>`)}</ul>
      <button data-cancel="${order.id}">Cancel order</button>`;
  },
  async "/messages"() {
    const messages = await call("GET", "/api/messages");
    show`<h1>Messages</h1><ul aria-label="Messages">${messages.map((each) => made`<li><a href="/messages/${each.id}">${each.subject}</a>
      ${each.read ? "read" : "unread"}</li>`)}</ul>`;
  },
  async "/messages/"(id, changed) {
    const message = changed ?? (await call("GET", `/api/messages/${id}`));
    show`<h1>${message.subject}</h1><p>${message.text}</p><p>${message.read ? "Read" : "Unread"}</p><button data-read="${id}">Mark as read</button>`;
  },
  async "/plan"() {
    const stops = await call("GET", "/api/plan");
    show`<h1>Tour plan</h1><p>Drag the stops into another order.</p>
      <ol aria-label="Stops">${stops.map((stop) => made`<li draggable="true" aria-label="${stop}">${stop}</li>`)}</ol>`;
  },
  async "/packing"(_, changed) {
    entries = changed ?? (await ask("entries"));
    show`<h1>Packing list</h1><form id="entry"><label>New entry <input name="text" autocomplete="off"></label> <button>Add</button></form>
      <ul aria-label="Entries">${entries.map((each) => made`<li><label><input type="checkbox" data-tick="${each.id}"
        ${each.done ? "checked" : ""}> ${each.text}</label></li>`)}</ul>`;
  },
};
async function open(path, changed) {
  const name = Object.keys(views).findLast((each) => each === path || (each.length > 1 && each.endsWith("/") && path.startsWith(each))) ?? "/";
  await views[name](path.slice(name.length), changed).catch((error) => show`<h1>${error.message}</h1>`);
}
function go(path, changed) {
  history.pushState(null, "", path);
  say("");
  return open(path, changed);
}

function watch(slug) {
  const send = () => socket.send(JSON.stringify({ type: "watch", slug, id: base36() }));
  if (socket?.readyState === WebSocket.OPEN) return send();
  socket = new WebSocket(`ws://${location.host}/api/live?client=${client}`);
  socket.onopen = send;
  socket.onmessage = ({ data }) => $("#watching")?.replaceChildren(`${JSON.parse(data).people} people look at this boat`);
}
function listen() {
  new EventSource(`/api/events?client=${client}&t=${Date.now()}`).onmessage = ({ data }) => {
    const event = JSON.parse(data);
    if (event.type === "notice") say(event.text);
    else $("#presence").textContent = `${event.people} people are here`;
  };
}

const clicked = {
  async add({ add }) {
    await ask("add_line", { slug: add });
    await open(location.pathname);
  },
  async line({ line, quantity }) {
    await ask("set_line", { id: Number(line), quantity: Number(quantity) });
    await open("/basket");
  },
  async day({ day }) {
    const { open: isOpen, free } = await call("GET", `/api/days/${day}`);
    if (isOpen) await ask("set_day", { day });
    await open("/basket");
    say(isOpen ? `${free} boats are free on ${dayText(day)}.` : "We are closed on this day.");
  },
  async voucher() {
    const { share } = await call("GET", `/api/vouchers/${encodeURIComponent($("#voucher").value)}`);
    say(`${share} % off`);
  },
  async order() {
    const { day } = await ask("basket");
    const [insurance, voucher] = [Number($("#insurance").value), $("#voucher").value || null];
    if (sessionStorage.refresh) await refreshed();
    const order = await call("POST", "/api/orders", { day, insurance, voucher }, { "Idempotency-Key": orderKey });
    orderKey = crypto.randomUUID();
    history.pushState(null, "", `/orders/${order.id}`);
    await open(location.pathname, order);
  },
  async cancel({ cancel }) { await open(`/orders/${cancel}`, await call("DELETE", `/api/orders/${cancel}`)); },
  async read({ read }) { await open(`/messages/${read}`, await call("PATCH", `/api/messages/${read}`, { read: true })); },
  async tick({ tick }) {
    const entry = entries.find((each) => String(each.id) === tick);
    entry.done = !entry.done;
    await ask("tick_entry", { id: entry.id, done: entry.done });
  },
};
document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  const [kind] = Object.keys(event.target.dataset);
  if (link) event.preventDefault();
  if (link) go(link.pathname);
  else if (clicked[kind]) clicked[kind](event.target.dataset).catch((error) => say(error.message));
});
const submitted = {
  async login(sent) {
    logged(await call("POST", "/api/session", sent));
    await go("/");
  },
  // An entry is shown before the site knows it, under a name that the site then maps to its own.
  async entry({ text }) {
    const entry = { id: `tmp-${base36()}`, text, done: false };
    await open("/packing", [...entries, entry]);
    const { temp, id } = await ask("add_entry", { text, temp: entry.id });
    await open("/packing", entries.map((each) => (each.id === temp ? { ...each, id } : each)));
  },
};
document.addEventListener("submit", (event) => {
  event.preventDefault();
  submitted[event.target.id](Object.fromEntries(new FormData(event.target))).catch((error) => say(error.message));
});
const later = () => {
  clearTimeout(typing);
  typing = setTimeout(() => go("/"), 300);
};
$("#search").addEventListener("input", later);
$("#most").addEventListener("change", later);
document.addEventListener("dragstart", ({ target }) => { dragged = target; });
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", async (event) => {
  event.preventDefault();
  const list = () => [...document.querySelectorAll("ol li")];
  const target = event.target.closest("ol li");
  target[list().indexOf(dragged) < list().indexOf(target) ? "after" : "before"](dragged);
  const stops = await call("PUT", "/api/plan", { stops: list().map((each) => each.textContent) });
  say(`Saved: ${stops.join(", ")}`);
});
addEventListener("popstate", () => open(location.pathname));

if (sessionStorage.refresh) await refreshed().catch(() => delete sessionStorage.refresh);
await open(location.pathname);
