// What can be read of a page without a snapshot.

"use strict";
const { origin } = require("./addresses.cjs");
const { delay, soon } = require("./timing.cjs");

const LIMIT = 3000;
const PAUSE = 15;

// Its address and title, and a picture, unless the page navigated to another origin meanwhile.
exports.glance = async (context, page) => {
  const settler = await context.attach(page);
  const { session } = settler.targets.get(page);
  settler.origins = new Set([origin(page)]);
  const url = page.url();
  const shot = soon(session.send("Page.captureScreenshot", { format: "jpeg", quality: 80 }), LIMIT);
  for (let isDone = false; !isDone;) {
    // Pictures are drawn only while the clock moves.
    isDone = await Promise.race([shot.then(() => true), delay(PAUSE).then(() => false)]);
    if (!isDone) await Promise.race([shot, settler.clocksPass()]);
  }
  const [title, picture] = [await soon(page.title(), LIMIT), await shot];
  const isSame = settler.origins.size === 1 && origin(page) === origin({ url: () => url });
  return { url, title: title ?? "", image: isSame ? picture?.data ?? null : null };
};
