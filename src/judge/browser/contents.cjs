// Writes down what an element contains once an action has given it something: the options of a select, whether a box is
// checked, files, text. Runs in the process of Playwright's MCP server; read by `contents.py`.
//
// Options, boxes and files are read when the `change` event has ended, because a page may then take them back, and may remove
// the element soon afterwards. Where the page is gone before the answer arrives, or waits in a dialog, what was given counts.

"use strict";
const fs = require("fs");
const path = require("path");
const { soon } = require("./settle/timing.cjs");

const LOG = "contents.jsonl";
const LOOK_LIMIT = 1000;

const SOURCE = fs.readFileSync(path.join(__dirname, "contents.js"), "utf8");
const [choose, watch] = ["choose", "watch"].map(name => new Function("element", "given", `return (${SOURCE})().${name}(element, given)`));

// Carries out an action on an element, and writes down what that contains afterwards; `given` if the page does not say.
const giving = async (element, tab, given, action) => {
  if (tab.modalStates().some(({ type }) => type === "dialog")) throw new Error("A dialog is open; answer it first");
  const seen = element && await soon(element.evaluateHandle(watch), LOOK_LIMIT);
  // Asked for now, because a page may navigate in the event.
  const read = seen?.evaluate(({ contents }) => contents).catch(() => {});
  await tab._raceAgainstModalStates(async () => {
    await action();
    void seen?.evaluate(({ end }) => end()).catch(() => {});
    if (read) given = await soon(read, LOOK_LIMIT) ?? given;
  });
  note(given);
};
const note = contents => fs.appendFileSync(LOG, `${JSON.stringify(contents)}\n`);

// The element with the focus, in whichever frame or shadow tree.
const focused = async page => {
  let frame = page.mainFrame();
  for (;;) {
    const handle = await frame.evaluateHandle(() => {
      let found = document.activeElement;
      while (found?.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
      return found;
    });
    const element = handle.asElement();
    const inside = await element?.contentFrame();
    if (!inside) return element;
    frame = inside;
  }
};

// Types into the element with the focus. A page's handlers may take long for each of many keys.
const typing = async (page, { tab, drive }, { text, submit, slowly, limit_ms: limit }) => {
  const typed = async () => {
    // No key tells the page's recorder that this is an act.
    if (!slowly) return drive(() => page.keyboard.insertText(text));
    const end = Date.now() + limit;
    for (const [at, key] of [...text].entries()) {
      if (Date.now() > end) throw new Error(`Timeout ${limit}ms exceeded: typed ${at} of ${[...text].length} characters`);
      await page.keyboard.type(key);
    }
  };
  const element = await soon(focused(page), LOOK_LIMIT);
  if (element) await giving(element, tab, {}, typed);
  else await typed();
  if (submit) await page.keyboard.press("Enter");
};

module.exports = { choose, giving, note, typing };
