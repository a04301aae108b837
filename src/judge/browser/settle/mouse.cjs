// Presses and drags that a page can tell from a person's only by their regularity: a drag is many small moves with time on
// the page's clock in between, because components begin a drag after some pixels or a delay, and find the target of a drop
// in a later frame. Points are in CSS pixels of the page's viewport.

"use strict";
const { delay } = require("./timing.cjs");

const MOVES = 20;
const MOVE_TIME = 20;
// For what a page does a few frames after the press and after the last move.
const REST = 100;
// Of a component that begins a drag by distance, whatever the whole distance is.
const NUDGE = 6;
// Mouse and keys have no time limit: a page whose handler never ends would never answer.
const INPUT_LIMIT = 5000;

const limited = (input, limit) => {
  input.catch(() => {});
  return Promise.race([input, delay(limit).then(() => { throw new Error(`Timeout ${limit}ms exceeded.`); })]);
};

const holdingKeys = async (page, keys, action) => {
  const held = [];
  try {
    for (const key of keys) {
      await page.keyboard.down(key);
      held.push(key);
    }
    await action();
  } finally {
    for (const key of held.reverse()) await page.keyboard.up(key);
  }
};

// One of several clicks at the mouse's place: `count` says which one. `pass` lets time pass on the page's clock.
const clickOnce = (page, pass, { button, modifiers = [], count = 1, hold = 0 }) => holdingKeys(page, modifiers, async () => {
  await page.mouse.down({ button, clickCount: count });
  try {
    if (hold) await pass(hold);
  } finally {
    await page.mouse.up({ button, clickCount: count });
  }
});

// Where the mouse is.
const pressHere = (page, pass, { timeout = INPUT_LIMIT, ...options } = {}) =>
  limited(clickOnce(page, pass, options), timeout + (options.hold ?? 0));
const press = async (page, { x, y }, pass, options) => {
  await limited(page.mouse.move(x, y), options?.timeout ?? INPUT_LIMIT);
  await pressHere(page, pass, options);
};

// Further clicks where the mouse is, after the first one.
const clickMore = async (page, pause, pass, { button, modifiers, clickCount = 2 } = {}) => {
  for (let count = 2; count <= clickCount; count++) {
    await pause();
    await clickOnce(page, pass, { button, modifiers, count });
  }
};
const clickAgain = (page, pause, pass, options) => limited(clickMore(page, pause, pass, options), options?.timeout ?? INPUT_LIMIT);

// The way of a drag in small moves.
const wayBetween = (from, to) => {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const nudge = Math.min(NUDGE, length / 2) / length;
  return [nudge, ...Array.from({ length: MOVES }, (_, move) => nudge + (1 - nudge) * (move + 1) / MOVES)]
    .map(part => [from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part]);
};

// Drags what is under the mouse. `target` finds the point to drop it on, once the drag may have begun.
const dragNow = async (page, from, target, pass, hold) => {
  await page.mouse.down();
  try {
    await pass(hold || REST);
    const to = await target();
    for (const [x, y] of wayBetween(from, to)) {
      await page.mouse.move(x, y);
      await pass(MOVE_TIME);
    }
    await pass(REST);
    // A component may have moved what is under the mouse meanwhile, and learns of its new place by a move only.
    await page.mouse.move(to.x, to.y);
    await pass(REST);
  } finally {
    await page.mouse.up();
  }
  await pass(MOVE_TIME);
};
const DRAG_LIMIT = 15000;
const drag = (page, from, target, pass, hold = 0) => limited(dragNow(page, from, target, pass, hold), DRAG_LIMIT + hold);

module.exports = { clickAgain, drag, press, pressHere };
