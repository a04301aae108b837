// Closes a new tab if there are too many, and then the one that opens them.

"use strict";
const { soon } = require("./timing.cjs");

// Every tab costs a process and a line in each answer. A page that opens as many again is closed itself.
const MAX_TABS = 100;
const CLOSE_LIMIT = 5000;

// `context` is the settler's (`settle.cjs`).
exports.limitTabs = async (context, page) => {
  if (context.isReplacing || page.context().pages().length <= MAX_TABS) return;
  context.closedTabs += 1;
  const opener = await page.opener();
  void soon(page.close(), CLOSE_LIMIT);
  if (!opener) return;
  const opened = (context.floods.get(opener) ?? 0) + 1;
  context.floods.set(opener, opened);
  if (opened === MAX_TABS) void soon(opener.close(), CLOSE_LIMIT);
};
