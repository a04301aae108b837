// Changes how the server's tab carries out actions, where a page would notice the difference to a person:
//
// - After an action the server waits by itself, up to 5 s for the page's requests and up to 10 s for a new document's load
//   event. Settling does that.
// - Its double clicks take no time on the page's clock, so applications treat them as a single click, or as none.
// - It keeps trying to click what is hidden under its label, drawn elsewhere, or moving all the time, until it times
//   out. A person clicks what is shown there (`../places.js`).
// - It cannot click a slider hidden under its track either. A person drags it, which gives it the focus.
// - Its drags consist of one move, which few components notice (`mouse.cjs`).
// - It sets a slider's value without the key or pointer that many components wait for.
// - Where something prevents an action, it tries until the action times out, and answers with its own log.
// - Of a dropdown's options it takes the first one with the text as its value or its label. Participants see labels.
// - What a select, a box or a field contains afterwards, it does not say (`../contents.cjs`); and while a dialog is open that
//   such an action has caused, it waits for the action to time out.
// - It goes back although there is no earlier page.
// - It refuses all other tools while a file chooser is open, and where it cancels one, the page is not told
//   (`../uploads.cjs`).
// - It accepts a prompt without a text as an empty one, where a person keeps the default.
//
// A server without this tab, or with another one, does what it always does.

"use strict";
const fs = require("fs");
const path = require("path");
const { chosen, giving, note, typing } = require("../contents.cjs");
const { clickAgain, drag, press } = require("./mouse.cjs");
const { soon } = require("./timing.cjs");

const [TYPING, UPLOADS] = ["wabe.typing", "wabe.uploads"].map(Symbol.for);
const LOOK_LIMIT = 1000;
const STEP_LIMIT = 1000;
const PLACE_TRIES = 20;
// For an action that something prevents: it is tried with the page scrolled in several ways.
const PREVENTED_LIMIT = 1500;
const MAX_DEFAULT_CHARS = 1000;
const PLACES = fs.readFileSync(path.join(__dirname, "../places.js"), "utf8");
// In the page.
const [barrier, decide, isOn, obstacle, shown] = ["barrier", "decide", "isOn", "obstacle", "shown"]
  .map(name => new Function("element", `return (${PLACES})().${name}(element)`));

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

// Where the viewport of an element's document is in the page's.
const originOf = async (locator, page) => {
  const element = await locator.elementHandle({ timeout: STEP_LIMIT });
  const frame = await element.ownerFrame();
  if (!frame || frame === page.mainFrame()) return { x: 0, y: 0 };
  const holder = await frame.frameElement();
  const box = await holder.boundingBox();
  const edge = await holder.evaluate(each => {
    const style = getComputedStyle(each);
    return { left: each.clientLeft + parseFloat(style.paddingLeft), top: each.clientTop + parseFloat(style.paddingTop) };
  });
  return { x: box.x + edge.left, y: box.y + edge.top };
};
const inPage = async (locator, page, { x, y }) => {
  const origin = await originOf(locator, page);
  return { x: origin.x + x, y: origin.y + y };
};
// The middle of an element, in view. A page may replace the element meanwhile.
const middleOf = async (locator, page) => {
  for (let tries = 0; tries < PLACE_TRIES; tries++) {
    const found = await soon(locator.evaluate(shown), LOOK_LIMIT);
    const point = found && await soon(inPage(locator, page, found), LOOK_LIMIT);
    if (point) return point;
  }
  throw new Error("the element is not visible");
};

// How actions on one element differ from the server's. `time` lets time pass on the page's clock: `pause` between two clicks,
// `pass` as long as given, and `drive` tells the page's recorder that the server changes an element.
class Adapted {
  constructor(locator, page, tab, time, hold) {
    Object.assign(this, { locator, page, tab, time, hold });
    const names = ["click", "fill", "hover", "pressSequentially", "selectOption", "setChecked"];
    this.own = Object.fromEntries(names.map(name => [name, locator[name].bind(locator)]));
  }

  async giving(given, action) {
    await giving(this.locator, this.tab, given, () => this.time.drive(action));
  }

  // Carries out one of the server's actions; if something prevents it, it fails soon and says what.
  async usually(name, options, what, ...given) {
    const why = () => soon(this.locator.evaluate(what), LOOK_LIMIT);
    if (!await why()) return this.own[name](...given, options);
    const timeout = Math.min(options?.timeout || PREVENTED_LIMIT, PREVENTED_LIMIT);
    try {
      await this.own[name](...given, { ...options, timeout });
    } catch (error) {
      const reason = await why();
      throw reason ? new Error(`The element cannot be used: ${reason}`) : error;
    }
  }

  // `null` for an element acted on as usual; otherwise the way: `focus`, or a point of the page.
  async way() {
    const found = await soon(this.locator.evaluate(decide), LOOK_LIMIT);
    if (!found || found.how === "focus") return found ?? null;
    const point = found.how === "moving" ? await this.caught() : await soon(inPage(this.locator, this.page, found), LOOK_LIMIT);
    return point ? { how: "at", point } : null;
  }

  // Where a moving element is now; `null` if something covers it all the time. Nothing else is asked in between, because
  // it moves on.
  async caught() {
    const origin = await soon(originOf(this.locator, this.page), LOOK_LIMIT);
    for (let tries = 0; origin && tries < PLACE_TRIES; tries++) {
      const found = await soon(this.locator.evaluate(isOn), LOOK_LIMIT);
      if (found) return { x: origin.x + found.x, y: origin.y + found.y };
    }
    return null;
  }

  async click(options) {
    const way = await this.way();
    if (way?.how === "focus") return this.locator.focus(options);
    if (!way && !this.hold) return this.usually("click", options, obstacle);
    if (!way) await this.usually("click", { ...options, trial: true }, obstacle);
    const point = way?.point ?? await middleOf(this.locator, this.page);
    await press(this.page, point, this.time.pass, { ...options, hold: this.hold });
  }

  async dblclick(options) {
    await this.click(options);
    await clickAgain(this.page, this.time.pause, this.time.pass, options);
  }

  async hover(options) {
    const way = await this.way();
    if (way?.how !== "at") return this.usually("hover", options, obstacle);
    await this.page.mouse.move(way.point.x, way.point.y);
  }

  async setChecked(checked, options) {
    const way = await this.way();
    await this.giving({ shown: [String(checked)] }, async () => {
      if (!way) await this.usually("setChecked", options, obstacle, checked);
      else if (await this.locator.isChecked(options) !== checked) await this.click(options);
    });
  }

  // `wanted` are texts, or one `label`.
  async selectOption(wanted, options) {
    const { indices, labels } = await chosen(this.locator, [wanted].flat().map(each => each.label ?? each), options);
    await this.giving({ shown: labels }, () =>
      this.usually("selectOption", options, barrier, indices.map(index => ({ index }))));
  }

  async pressSequentially(text, options) {
    await this.giving({}, () => this.usually("pressSequentially", options, barrier, text));
  }

  async fill(value, options) {
    await this.giving({}, () => this.filled(value, options));
  }

  async filled(value, options) {
    const near = await soon(this.locator.evaluate(beside, value), LOOK_LIMIT);
    if (!near) return this.usually("fill", options, barrier, value);
    await this.own.fill(near.value, options);
    await soon(this.locator.press(near.key, { timeout: STEP_LIMIT }), STEP_LIMIT);
    // A component may handle keys differently.
    if (await soon(this.locator.inputValue({ timeout: STEP_LIMIT }), STEP_LIMIT) !== value) await this.own.fill(value, options);
  }

  async dragTo(target, options) {
    const way = await this.way();
    // Waits until the element can be acted on, and scrolls to it.
    if (way?.how === "focus") await this.own.hover({ ...options, force: true });
    else if (way?.how !== "at") await this.usually("hover", options, obstacle);
    const from = way?.point ?? await middleOf(this.locator, this.page);
    await this.page.mouse.move(from.x, from.y);
    await drag(this.page, from, () => middleOf(target, this.page), this.time.pass, this.hold);
  }
}

const ADAPTED = ["click", "dblclick", "dragTo", "fill", "hover", "pressSequentially", "selectOption", "setChecked"];
const adaptLocator = (locator, ...rest) => {
  const adapted = new Adapted(locator, ...rest);
  for (const name of ADAPTED) locator[name] = adapted[name].bind(adapted);
};

const hasEarlier = async page => {
  const session = await page.context().newCDPSession(page);
  const { currentIndex } = await session.send("Page.getNavigationHistory").finally(() => session.detach());
  return currentIndex > 0;
};

exports.adapt = (page, time) => {
  const symbol = Object.getOwnPropertySymbols(page).find(each => each.description === "tabSymbol");
  const tab = symbol && page[symbol];
  if (!tab) return;
  const locators = tab.targetLocators.bind(tab);
  tab.targetLocators = async targets => {
    const hold = time.takeHold();
    const found = await locators(targets);
    for (const { locator } of found) adaptLocator(locator, page, tab, time, hold);
    return found;
  };
  tab.waitForCompletion = async action => {
    await tab._initializedPromise;
    await tab._raceAgainstModalStates(action);
  };
  const goBack = tab.goBack.bind(tab);
  tab.goBack = async () => {
    if (!await hasEarlier(page)) throw new Error("There is no earlier page in this tab");
    await goBack();
  };
  page[TYPING] = given => typing(page, tab, given);
  page.on("filechooser", chooser => page.context()[UPLOADS]?.opened(page, tab, chooser));
  page.on("dialog", dialog => {
    const accept = dialog.accept.bind(dialog);
    const isPrompt = dialog.type() === "prompt";
    dialog.accept = text => {
      note({ shown: isPrompt && text !== undefined ? [text] : [] });
      return accept(text ?? dialog.defaultValue());
    };
    if (!isPrompt) return;
    const state = tab.modalStates().find(each => each.dialog === dialog);
    // Read by `judge.browser.responses`.
    if (state)
      state.description += ` and default "${encodeURIComponent(dialog.defaultValue().slice(0, MAX_DEFAULT_CHARS).toWellFormed())}"`;
  });
};
