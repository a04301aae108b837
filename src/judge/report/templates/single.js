"use strict";
// Shows one page of a file that contains a complete report. `?tasks/a.html` in its address names the page.
(function () {
  const named = () => { try { return decodeURIComponent(location.search.slice(1)); } catch { return ""; } };
  const page = document.getElementById("page:" + named()) || document.getElementById("page:index.html");
  const path = page.id.slice("page:".length);
  // The host only serves to resolve relative addresses; nothing is loaded from it.
  const target = (address) => new URL(address, "https://report.invalid/" + path);
  const embedded = (address) => {
    const file = document.getElementById("file:" + target(address).pathname.slice(1));
    return file && "data:" + file.dataset.type + ";base64," + file.textContent;
  };
  // Resources in a template are not loaded yet, so their addresses can still be replaced.
  for (const image of page.content.querySelectorAll("img[src]")) {
    const data = embedded(image.getAttribute("src"));
    if (data) image.src = data;
    else image.removeAttribute("src");
  }
  for (const link of page.content.querySelectorAll("a[href]")) {
    const address = link.getAttribute("href");
    if (/^(#|[a-z]+:)/i.test(address)) continue;
    const { pathname, hash } = target(address);
    const data = embedded(address);
    if (data) link.href = data;
    else if (document.getElementById("page:" + pathname.slice(1))) link.href = "?" + pathname.slice(1) + hash;
    else link.removeAttribute("href");
  }
  document.title = page.content.querySelector("title").textContent;
  document.body.prepend(document.importNode(page.content, true));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
})();
