// Records what a context's pages write to the console, and their uncaught errors. Loaded by Playwright's MCP server into
// its own process (option `browser.initPage`), where no page has access. Read by `console.py`.

"use strict";
const fs = require("fs");

const LOG = "console.jsonl";
const MAX_MESSAGES = 1000;
const MAX_TEXT_CHARS = 1000;
const MAX_URL_CHARS = 300;

const recorded = new WeakSet();

exports.default = async ({ page }) => {
  // The context, not the page, sees the first messages of a new tab.
  const context = page.context();
  if (recorded.has(context)) return;
  recorded.add(context);
  let count = 0;
  let isClosed = false;
  // Late messages must not end up in the file of the next context.
  context.on("close", () => { isClosed = true; });
  const write = (level, text, place = {}) => {
    if (isClosed) return;
    count += 1;
    if (count <= MAX_MESSAGES) {
      const url = String(place.url ?? "").slice(0, MAX_URL_CHARS);
      const line = Number.isInteger(place.lineNumber) ? place.lineNumber + 1 : undefined;
      fs.appendFileSync(LOG, JSON.stringify({ level, text: text.slice(0, MAX_TEXT_CHARS), url, line }) + "\n");
    } else if ((count & (count - 1)) === 0) {
      // Only at powers of two, so that a page that logs without end cannot fill the disk with this either.
      fs.appendFileSync(LOG, JSON.stringify({ dropped: count - MAX_MESSAGES }) + "\n");
    }
  };
  context.on("console", message => write(message.type(), message.text(), message.location()));
  context.on("weberror", failure => {
    const error = failure.error();
    write("uncaught", String(error?.stack || error?.message || error));
  });
};
