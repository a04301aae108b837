"use strict";
// Light or dark theme; remembered where the browser allows a file to store anything.
(function () {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const recall = () => { try { return localStorage.getItem("wabe-theme"); } catch { return null; } };
  const keep = (value) => { try { localStorage.setItem("wabe-theme", value); } catch { /* private mode */ } };
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const show = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  const kept = recall();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    keep(root.dataset.theme);
    show();
  });
  system.addEventListener("change", show);
  show();
})();
