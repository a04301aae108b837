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
const { choose, giving, note, typing } = require("../contents.cjs");
const { clickAgain, drag, press, pressHere } = require("./mouse.cjs");
const { soon } = require("./timing.cjs");

// `../traces.py` sets `TRACED` of a context.
const [TRACED, TYPING, UPLOADS] = ["wabe.traced", "wabe.typing", "wabe.uploads"].map(Symbol.for);
const LOOK_LIMIT = 1000;
const STEP_LIMIT = 1000;
const PLACE_TRIES = 20;
// For an action that something prevents: it is tried with the page scrolled in several ways.
const PREVENTED_LIMIT = 1500;
// How the server's log of an action ends that ran out of time afterwards. Lines that quote the page contain `<`.
const CARRIED_OUT = /\n[^\n<]*- \w+ action done[^\n<]*\n[^\n<]*- waiting for scheduled navigations to finish[^\n<]*\s*$/;
const MAX_DEFAULT_CHARS = 1000;
const PLACES = fs.readFileSync(path.join(__dirname, "../places.js"), "utf8");
// In the page.
const [barrier, decide, isOn, obstacle, shown] = ["barrier", "decide", "isOn", "obstacle", "shown"]
  .map(name => new Function("element", "given", `return (${PLACES})().${name}(element, given)`));

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
const originOf = async (element, page) => {
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
const inPage = async (element, page, { x, y }) => {
  const origin = await originOf(element, page);
  return { x: origin.x + x, y: origin.y + y };
};
// The middle of an element, in view. A page may replace the element meanwhile.
const middleOf = async (locator, page) => {
  for (let tries = 0; tries < PLACE_TRIES; tries++) {
    const element = await soon(locator.elementHandle({ timeout: STEP_LIMIT }), LOOK_LIMIT);
    const found = element && await soon(element.evaluate(shown), LOOK_LIMIT);
    const point = found && await soon(inPage(element, page, found), LOOK_LIMIT);
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

  // Found once, because every search costs as much as a question.
  element() {
    return this.found ??= this.locator.elementHandle({ timeout: STEP_LIMIT });
  }

  ask(question, given) {
    return soon(this.element().then(element => element.evaluate(question, given)), LOOK_LIMIT);
  }

  async giving(given, action) {
    await giving(await soon(this.element(), LOOK_LIMIT), this.tab, given, () => this.time.drive(action));
  }

  // Carries out one of the server's actions; if something prevents it (`why`, then `what` asked again), it fails soon and says
  // what. Settling waits for the document that it opens.
  async usually(name, options, why, what, ...given) {
    const timeout = why ? Math.min(options?.timeout || PREVENTED_LIMIT, PREVENTED_LIMIT) : options?.timeout;
    try {
      await this.own[name](...given, { ...options, timeout });
    } catch (error) {
      if (CARRIED_OUT.test(error.message)) return;
      const reason = why && await soon(this.locator.evaluate(what), LOOK_LIMIT);
      throw reason ? new Error(`The element cannot be used: ${reason}`) : error;
    }
  }

  // How the element is acted on: as `usual`, although something may prevent it (`why`); by `focus`; `at` a point of the page;
  // or as usual, but `there` at once.
  async way() {
    const usual = { how: "usual" };
    const [isStill] = await Promise.all([this.time.isStill(), this.element()].map(each => soon(each, LOOK_LIMIT)));
    const found = await this.ask(decide, isStill) ?? usual;
    // A trace names elements in the server's actions only.
    if (found.how === "there" && this.page.context()[TRACED]) return usual;
    if (["usual", "focus", "there"].includes(found.how)) return found;
    const point = found.how === "moving" ? await this.caught() : await soon(inPage(await this.element(), this.page, found), LOOK_LIMIT);
    return point ? { how: "at", point } : usual;
  }

  // Where a moving element is now; `null` if something covers it all the time. Nothing else is asked in between, because
  // it moves on.
  async caught() {
    const element = await this.element();
    const origin = await soon(originOf(element, this.page), LOOK_LIMIT);
    for (let tries = 0; origin && tries < PLACE_TRIES; tries++) {
      const found = await soon(element.evaluate(isOn), LOOK_LIMIT);
      if (found) return { x: origin.x + found.x, y: origin.y + found.y };
    }
    return null;
  }

  // Moves the mouse to a point; whether the element is still there.
  async isUnder([x, y]) {
    await soon(this.page.mouse.move(x, y), STEP_LIMIT);
    return this.ask(isOn, [x, y]);
  }

  async click(options) {
    const { how, why, point, at } = await this.way();
    if (how === "focus") return this.locator.focus(options);
    const isThere = how === "there" && await this.isUnder(at);
    if (isThere) return pressHere(this.page, this.time.pass, { ...options, hold: this.hold });
    const isUsual = how === "usual" || how === "there";
    if (isUsual && !this.hold) return this.usually("click", options, why, obstacle);
    if (isUsual) await this.usually("click", { ...options, trial: true }, why, obstacle);
    await press(this.page, point ?? await middleOf(this.locator, this.page), this.time.pass, { ...options, hold: this.hold });
  }

  async dblclick(options) {
    await this.click(options);
    await clickAgain(this.page, this.time.pause, this.time.pass, options);
  }

  async hover(options) {
    const { how, why, point, at } = await this.way();
    if (how === "there" && await this.isUnder(at)) return;
    if (how !== "at") return this.usually("hover", options, why, obstacle);
    await this.page.mouse.move(point.x, point.y);
  }

  async setChecked(checked, options) {
    const way = await this.way();
    await this.giving({ shown: [String(checked)] }, async () => {
      if (way.how === "usual" || way.how === "there") await this.usually("setChecked", options, way.why, obstacle, checked);
      else if (await this.locator.isChecked(options) !== checked) await this.click(options);
    });
  }

  // `wanted` are texts, or one `label`.
  async selectOption(wanted, options) {
    const texts = [wanted].flat().map(each => each.label ?? each);
    const [asked, why] = await Promise.all([this.ask(choose, texts), this.ask(barrier)]);
    const found = asked ?? await this.locator.evaluate(choose, texts, options);
    if (found.problem) throw new Error(found.problem);
    await this.giving({ shown: found.labels }, () =>
      this.usually("selectOption", options, why, barrier, found.indices.map(index => ({ index }))));
  }

  async pressSequentially(text, options) {
    const why = this.ask(barrier);
    await this.giving({}, async () => this.usually("pressSequentially", options, await why, barrier, text));
  }

  async fill(value, options) {
    const asked = Promise.all([this.ask(beside, value), this.ask(barrier)]);
    await this.giving({}, async () => {
      const [near, why] = await asked;
      await (near ? this.slid(value, near, options) : this.usually("fill", options, why, barrier, value));
    });
  }

  async slid(value, near, options) {
    await this.own.fill(near.value, options);
    await soon(this.locator.press(near.key, { timeout: STEP_LIMIT }), STEP_LIMIT);
    // A component may handle keys differently.
    if (await soon(this.locator.inputValue({ timeout: STEP_LIMIT }), STEP_LIMIT) !== value) await this.own.fill(value, options);
  }

  async dragTo(target, options) {
    const { how, why, point } = await this.way();
    // Waits until the element can be acted on, and scrolls to it.
    if (how === "focus") await this.own.hover({ ...options, force: true });
    else if (how !== "at") await this.usually("hover", options, why, obstacle);
    const from = point ?? await middleOf(this.locator, this.page);
    await this.page.mouse.move(from.x, from.y);
    await drag(this.page, from, () => middleOf(target, this.page), this.time.pass, this.hold);
  }
}

const ADAPTED = ["click", "dblclick", "dragTo", "fill", "hover", "pressSequentially", "selectOption", "setChecked"];
const adaptLocator = (locator, ...rest) => {
  const adapted = new Adapted(locator, ...rest);
  for (const name of ADAPTED) locator[name] = adapted[name].bind(adapted);
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
    const session = await time.session() || await page.context().newCDPSession(page);
    if (!(await session.send("Page.getNavigationHistory")).currentIndex) throw new Error("There is no earlier page in this tab");
    await goBack();
  };
  const capture = tab.captureSnapshot.bind(tab);
  tab.captureSnapshot = (root, depth, boxes, relativeTo, format, ...rest) => {
    if (format !== "none") void time.shoot().catch(() => {});
    return capture(root, depth, boxes, relativeTo, format, ...rest);
  };
  const snapshot = page.ariaSnapshot.bind(page);
  // With boxes as the judge looks at the page.
  page.ariaSnapshot = options => options?.boxes ? time.snapshot(() => snapshot(options)) : snapshot(options);
  page[TYPING] = given => typing(page, { tab, drive: time.drive }, given);
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
