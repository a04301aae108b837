// What every library's page shows: Start, two texts that change together, and a button that must react at once.
export const { token, delay, start } = window.config;
export const text = (place, state) => `${place} ${state} ${token}`;
export const clicked = `clicked ${token}`;
export const url = (path, ms = delay) => `/${path}?token=${token}&ms=${ms}`;
export const late = async (ms = delay) => (await fetch(url("late", ms))).text();
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const onLoad = (begin) => start === "load" && addEventListener("load", begin);

// For libraries that leave the markup to the page.
export function markup() {
  const app = document.getElementById("app");
  app.innerHTML = `<button id="start">Start</button><p id="first">${text("first", "initial")}</p>
    <p id="second">${text("second", "initial")}</p><button id="react">React</button><p id="said"></p>`;
  return (id) => document.getElementById(id);
}

export function plain(begin) {
  const at = markup();
  at("start").addEventListener("click", begin);
  at("react").addEventListener("click", () => (at("said").textContent = clicked));
  onLoad(begin);
  return at;
}

export function show(state) {
  for (const place of ["first", "second"]) document.getElementById(place).textContent = text(place, state);
}
