// Opens an address.

"use strict";
const { delay } = require("./timing.cjs");

const REQUESTS = Symbol.for("wabe.requests");
// In milliseconds.
const LOOK_REAL = 30;
// Some pages never fire their `load` event.
const MAX_LOAD = 5000;
// The document of a truncated answer never becomes complete.
const BROKEN_OFF = 500;

// Waits for the document, and briefly for its images.
exports.open = async (context, page, url, limit) => {
  await context.wake(page);
  const until = performance.now() + limit;
  let isOver = false;
  // A script may navigate to a download, or to a site that answers with 204, before its document is complete. Chromium
  // then stops loading the document but stays on it, and the events that Playwright waits for never fire.
  const brokenOff = async () => {
    const settler = await context.attach(page);
    const target = settler.targets.get(page);
    for (let isComplete = false; !isOver && !(isComplete && !settler.isNavigating());) {
      await delay(LOOK_REAL);
      if (performance.now() - settler.brokenOffAt > BROKEN_OFF) return;
      // Not answered while the page is navigating; a script that does not end is stopped.
      const answer = await target.send("Runtime.evaluate", { expression: "document.readyState" }).catch(() => {});
      isComplete = answer?.result.value === "complete";
    }
  };
  try {
    const go = () => page.goto(url, { waitUntil: "commit", timeout: limit });
    const recorder = page.context()[REQUESTS];
    await (recorder ? recorder.judgeOpens(page, url, go) : go());
    const isComplete = brokenOff();
    // A timeout of 0 would mean no timeout.
    const timeout = Math.max(1, Math.round(until - performance.now()));
    await Promise.race([page.waitForLoadState("domcontentloaded", { timeout }), isComplete]);
    await Promise.race([page.waitForLoadState("load", { timeout: MAX_LOAD }), isComplete]).catch(() => {});
  } catch (error) {
    // For a download the page stays, and fires an event.
    if (!error.message.includes("Download is starting")) throw error;
  } finally {
    isOver = true;
  }
};
