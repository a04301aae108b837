// Records every request for a page, redirects included, at the moment it is sent. Loaded by Playwright's MCP server into
// its own process (option `browser.initPage`), out of reach of every page. Read by `navigations.py`.
//
// It appends to a file in the working folder, so the evidence includes a page that never arrives, and survives a tab
// that hangs and a browser or server that is killed.

const fs = require("fs");

// Enough for the longest origin, which is what decides.
const MAX_URL_CHARS = 300;
// After so many lines only changes of origin are recorded: a page that reloads itself cannot fill the disk.
const MAX_LINES = 2000;
const LOG = "navigations.jsonl";

const recorded = new WeakSet();

function isInFrame(request) {
  try {
    return request.frame().parentFrame() !== null;
  } catch {
    // The first request of a new tab has no frame yet, and is a main frame's by definition.
    return false;
  }
}

exports.default = async ({ page }) => {
  // The context, not the page, sees the first request of a new tab.
  const context = page.context();
  if (recorded.has(context)) return;
  recorded.add(context);
  let lines = 0;
  let lastOrigin = "";
  context.on("request", request => {
    if (!request.isNavigationRequest() || isInFrame(request)) return;
    const url = request.url().slice(0, MAX_URL_CHARS);
    const origin = url.split("/", 3).join("/");
    if (origin === lastOrigin && lines >= MAX_LINES) return;
    lastOrigin = origin;
    lines += 1;
    fs.appendFileSync(LOG, JSON.stringify({ url, is_redirect: request.redirectedFrom() !== null }) + "\n");
  });
};
