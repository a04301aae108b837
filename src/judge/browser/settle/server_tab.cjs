// Changes how the server's own tab carries out actions, where a page would notice the difference to a person:
//
// - After an action the server waits by itself, up to 5 s for the page's requests and up to 10 s for a new document's load
//   event. Settling does that.
// - Its double clicks take no time on the page's clock, so applications treat them as a single click, or as none.
// - It keeps trying to click a checkbox that is hidden under its own label until it times out. A person clicks what is
//   shown there.
// - It cannot click a slider that is hidden under its track either. A person drags it, which gives it the focus.
// - It sets a slider's value without the key or pointer that many components wait for.
//
// A server without this tab, or with another one, does what it always does.

"use strict";
const { delay, soon } = require("./timing.cjs");

const LOOK_LIMIT = 1000;
const STEP_LIMIT = 1000;

// In the page: what covers an input where it would be clicked; `label` for its own label.
const cover = input => {
  if (!(input instanceof HTMLInputElement) || !["checkbox", "radio", "range"].includes(input.type)) return null;
  input.scrollIntoViewIfNeeded();
  const { x, y, width, height } = input.getBoundingClientRect();
  const hit = input.getRootNode().elementFromPoint(x + width / 2, y + height / 2);
  if (!hit || hit === input) return null;
  if ([...input.labels].some(each => each.contains(hit))) return "label";
  return input.type === "range" ? "track" : null;
};
const labelOf = input => {
  const { x, y, width, height } = input.getBoundingClientRect();
  const hit = input.getRootNode().elementFromPoint(x + width / 2, y + height / 2);
  return [...input.labels].find(each => each.contains(hit)) ?? null;
};
const positionOn = (input, label) => {
  const [box, around] = [input.getBoundingClientRect(), label.getBoundingClientRect()];
  return { x: box.x + box.width / 2 - around.x, y: box.y + box.height / 2 - around.y };
};
// The value from which one key leads to the wanted one.
const beside = (input, wanted) => {
  if (!(input instanceof HTMLInputElement) || input.type !== "range") return null;
  const probe = input.cloneNode();
  probe.value = wanted;
  if (!probe.value || Number(probe.value) !== Number(wanted)) return null;
  probe.stepDown();
  if (probe.value !== wanted && Number(probe.value) < Number(wanted)) return { value: probe.value, key: "ArrowRight" };
  probe.value = wanted;
  probe.stepUp();
  return Number(probe.value) > Number(wanted) ? { value: probe.value, key: "ArrowLeft" } : null;
};

const CLICKS_LIMIT = 5000;
// Mouse and keys have no time limit of their own: a page whose first click starts an endless script would never answer.
const clickAgain = (page, pause, options) => {
  const clicks = clickMore(page, pause, options);
  clicks.catch(() => {});
  const limit = options?.timeout ?? CLICKS_LIMIT;
  return Promise.race([clicks, delay(limit).then(() => { throw new Error(`Timeout ${limit}ms exceeded.`); })]);
};

// Further clicks where the mouse is, after the first one. `pause` lets time pass on the page's clock.
const clickMore = async (page, pause, { button, modifiers = [], clickCount = 2 } = {}) => {
  for (let count = 2; count <= clickCount; count++) {
    await pause();
    try {
      for (const key of modifiers) await page.keyboard.down(key);
      await page.mouse.down({ button, clickCount: count });
      await page.mouse.up({ button, clickCount: count });
    } finally {
      for (const key of modifiers) await page.keyboard.up(key);
    }
  }
};

const adaptLocator = (locator, page, pause) => {
  const [click, fill, setChecked] = ["click", "fill", "setChecked"].map(name => locator[name].bind(locator));
  // The label that is in front of the element, as an element to click and a position in it.
  const label = async () => {
    const found = (await soon(locator.evaluateHandle(labelOf), LOOK_LIMIT))?.asElement();
    const position = found && await soon(locator.evaluate(positionOn, found), LOOK_LIMIT);
    return position ? options => found.click({ ...options, position }) : click;
  };
  locator.click = async options => {
    const covered = await soon(locator.evaluate(cover), LOOK_LIMIT);
    if (covered === "label") return (await label())(options);
    return covered === "track" ? locator.focus(options) : click(options);
  };
  locator.dblclick = async options => {
    await locator.click(options);
    await clickAgain(page, pause, options);
  };
  locator.setChecked = async (checked, options) => {
    const isLabelled = await soon(locator.evaluate(cover), LOOK_LIMIT) === "label";
    if (!isLabelled) return setChecked(checked, options);
    if (await locator.isChecked(options) !== checked) await (await label())(options);
  };
  locator.fill = async (value, options) => {
    const near = await soon(locator.evaluate(beside, value), LOOK_LIMIT);
    if (!near) return fill(value, options);
    await fill(near.value, options);
    await soon(locator.press(near.key, { timeout: STEP_LIMIT }), STEP_LIMIT);
    // A component may handle keys differently.
    if (await soon(locator.inputValue({ timeout: STEP_LIMIT }), STEP_LIMIT) !== value) await fill(value, options);
  };
};

exports.clickAgain = clickAgain;
exports.adapt = (page, pause) => {
  const symbol = Object.getOwnPropertySymbols(page).find(each => each.description === "tabSymbol");
  const tab = symbol && page[symbol];
  if (!tab) return;
  const locators = tab.targetLocators.bind(tab);
  tab.targetLocators = async targets => {
    const found = await locators(targets);
    for (const { locator } of found) adaptLocator(locator, page, pause);
    return found;
  };
  tab.waitForCompletion = async action => {
    await tab._initializedPromise;
    await tab._raceAgainstModalStates(action);
  };
};
