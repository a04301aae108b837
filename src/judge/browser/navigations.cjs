// Records every request for a page, redirects included, at the moment it is sent. Loaded by Playwright's MCP server into
// its own process (option `browser.initPage`), where no page has access. Read by `requests.py`.
//
// It appends to a file in the working folder, so the evidence includes pages that never arrive, and survives a hanging tab
// and a killed browser or server.

const fs = require("fs");

// Enough for the longest origin, which is the part that matters.
const MAX_URL_CHARS = 300;
// After this many lines only changes of origin are recorded, so that a page that reloads itself cannot fill the disk.
const MAX_LINES = 2000;
const LOG = "navigations.jsonl";

const recorded = new WeakSet();

function isInFrame(request) {
  try {
    return request.frame().parentFrame() !== null;
  } catch {
    // The first request of a new tab has no frame yet, and belongs to a main frame by definition.
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
