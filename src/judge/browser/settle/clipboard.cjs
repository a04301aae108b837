// Empties the browser's clipboard, of which it has one, also for what was copied in earlier attempts.

"use strict";
// Copies nothing, over what was copied before.
const EMPTY_CLIPBOARD = `(() => {
  const copy = event => {
    event.clipboardData.setData("text/plain", "");
    event.preventDefault();
  };
  addEventListener("copy", copy);
  document.execCommand("copy");
  removeEventListener("copy", copy);
})()`;

exports.emptyClipboard = async page => {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: EMPTY_CLIPBOARD, userGesture: true });
  await session.detach();
};
