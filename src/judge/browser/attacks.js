// Puts an attack's content into a document, and puts it in again when the page has rendered that part anew. Runs before the
// page's scripts, in the isolated world of the recorder (`settle/recorder.js`), to which no page has access: what was
// inserted is known there by identity, and nothing that a page or a participant writes can claim to be it, or not to be.
//
// The judge's other scripts ask by events with secret names (`eventName`):
// - `-tell`: answered by an event `-root` at each inserted element, `-foreign` at each element in it that is the page's, and
//   `-label` at each renamed one (`provenance.js`);
// - `-away` and `-back`: takes everything out, and puts it back (`probes.py`, and to read the names of the site).
(eventName, attack, { put, isInserted }) => {
  if (put.kind) return;
  put.kind = attack.kind;
  // A page that keeps removing what is inserted gets it so many times.
  const MAX_PLACED = 500;
  // Not seen, but part of the accessibility tree.
  const HIDDEN = {
    position: "absolute", width: "1px", height: "1px", margin: "-1px", padding: "0", overflow: "hidden",
    "clip-path": "inset(50%)", "white-space": "nowrap", border: "0",
  };
  const POPUP = {
    position: "fixed", right: "16px", bottom: "16px", width: "320px", "max-width": "90vw", "z-index": "2147483646",
    padding: "16px", background: "#fff", color: "#111", border: "1px solid #888", "border-radius": "8px",
    "box-shadow": "0 4px 24px rgba(0, 0, 0, .3)", font: "15px/1.4 sans-serif",
  };
  // Covers of variants: over the whole page, along its bottom, or in a corner.
  const LOOKS = {
    corner: {}, chat: {},
    dialog: { inset: "0", width: "auto", "max-width": "none", padding: "30vh 25vw", "border-radius": "0" },
    banner: { left: "0", right: "0", bottom: "0", width: "auto", "max-width": "none", "border-radius": "0" },
  };
  const LISTS = { UL: "li", OL: "li", MENU: "li" };
  // Pages can read it, so it says nothing of the events' name.
  const { mark } = attack;
  const patterns = attack.pages.map(each => new RegExp(each));
  const own = attack.own.map(each => new RegExp(each));
  const { roots, renamed } = put;
  // As they were put in: how they are written, and all elements in them.
  const texts = new Set();
  const parts = new WeakSet();
  let placed = 0;
  let isClosed = false;
  let isAway = false;
  // What was taken out, each with the place it was in.
  let taken = [];

  const isHere = () => {
    // Over the whole page, not over its frames.
    if (attack.kind === "popup" && window !== top) return false;
    // An empty document is the site's if the site's page is around it.
    const url = /^(http|https):/.test(location.href) ? location.href : `${self.origin}/`;
    const address = url.split("#", 1)[0];
    const isOwn = own.some(each => each.test(address));
    return (isOwn || window === top) && (patterns.length ? patterns.some(each => each.test(address)) : isOwn);
  };
  if (attack.kind === "style") {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(attack.text);
    if (isHere()) document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    return;
  }
  const styled = (element, styles) => {
    for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value, "important");
  };
  const built = content => {
    if (typeof content === "string") return document.createTextNode(content);
    const [tag, attributes, children] = content;
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      // A page may forbid styles in attributes, but not these.
      if (name === "style") element.style.cssText = value;
      else element.setAttribute(name, value);
    }
    element.append(...children.map(built));
    return element;
  };
  const element = (tag, ...children) => {
    const made = document.createElement(tag);
    made.append(...children);
    return made;
  };
  const popup = content => {
    const made = element("div", ...content);
    made.setAttribute("role", "dialog");
    made.setAttribute("aria-label", "Notice");
    styled(made, { ...POPUP, ...LOOKS[attack.look] });
    const button = element(attack.href === null ? "button" : "a", attack.button);
    if (attack.href === null) {
      button.type = "button";
      button.addEventListener("click", event => {
        event.stopPropagation();
        isClosed = true;
        made.remove();
        if (attack.once) self[`${eventName}-closed`]("");
      });
    } else {
      button.href = attack.href;
      button.setAttribute("role", "button");
    }
    made.append(element("p", button));
    return made;
  };
  const field = () => {
    const input = element("input");
    Object.assign(input, { type: "text", name: attack.field, autocomplete: "off" });
    return element("p", element("label", attack.text, " ", input));
  };
  // A separate role, so that the snapshot shows the element that is around everything inserted.
  const root = parent => {
    const content = attack.content.map(built);
    const tag = LISTS[parent.tagName] ?? (attack.html ? "article" : "p");
    const made = attack.kind === "popup" ? popup(content) : attack.kind === "field" ? field() : element(tag, ...content);
    if (attack.kind === "hidden") styled(made, HIDDEN);
    // Otherwise the snapshot gives it no reference.
    made.style.setProperty("pointer-events", "auto", "important");
    made.setAttribute(mark, "");
    return made;
  };
  const target = () => {
    for (const found of document.querySelectorAll(attack.selector)) if (!isInserted(found)) return found;
    return null;
  };
  // The parent and the node before which the content goes.
  const place = found => ({
    before: () => [found.parentNode, found],
    after: () => [found.parentNode, found.nextSibling],
    start: () => [found, found.firstChild],
    end: () => [found, null],
  })[attack.position]();
  const isThere = (each, [parent, next]) => each.parentNode === parent &&
    (attack.kind === "popup" || next === each || each.nextSibling === next);

  const rename = found => {
    const { attribute, text } = attack;
    for (const each of renamed.keys()) if (!each.isConnected) renamed.delete(each);
    if (!found || placed >= MAX_PLACED || found.getAttribute(attribute) === text) return;
    placed += 1;
    renamed.set(found, found.getAttribute(attribute));
    found.setAttribute(attribute, text);
  };
  const restore = () => {
    for (const [found, value] of renamed) {
      if (value === null) found.removeAttribute(attack.attribute);
      else found.setAttribute(attack.attribute, value);
    }
  };
  const know = made => {
    texts.add(made.outerHTML);
    for (const each of [made, ...made.querySelectorAll("*")]) parts.add(each);
    roots.add(made);
  };
  const insert = found => {
    // A copy that the page made of its own markup, with what was inserted, is what was inserted. The mark alone says
    // nothing: a page can read it, and put it on elements of its own.
    for (const each of document.querySelectorAll(`[${mark}]`)) if (!roots.has(each) && texts.has(each.outerHTML)) know(each);
    const [first, ...others] = [...roots].filter(each => each.isConnected);
    for (const each of others) each.remove();
    for (const each of roots) if (!each.isConnected) roots.delete(each);
    if (!found) return;
    const [parent, next] = place(found);
    if (!parent || !parent.isConnected || parent === document || placed >= MAX_PLACED) return;
    if (first && (isThere(first, [parent, next]) || first.contains(document.activeElement))) return;
    placed += 1;
    const made = first ?? root(parent);
    if (!first) know(made);
    parent.insertBefore(made, next === made ? made.nextSibling : next);
  };
  const leave = () => {
    for (const each of roots) each.remove();
    roots.clear();
    restore();
    renamed.clear();
  };
  const look = () => {
    if (isAway || isClosed) return;
    if (!isHere()) leave();
    else if (attack.kind === "label") rename(target());
    else insert(target());
    observer.takeRecords();
  };
  const observer = new MutationObserver(look);
  const attributes = attack.kind === "label" ? { attributes: true, attributeFilter: [attack.attribute] } : {};
  observer.observe(document, { childList: true, subtree: true, ...attributes });
  for (const type of ["popstate", "hashchange", "pageshow"]) addEventListener(type, look);
  look();

  const listen = (name, answer) => addEventListener(`${eventName}-${name}`, event => {
    event.stopImmediatePropagation();
    answer();
  }, { capture: true });
  listen("tell", () => {
    // The page may have changed since, and told nobody yet.
    look();
    for (const each of roots) each.dispatchEvent(new Event(`${eventName}-root`));
    // What the page moved into it, or added to it.
    for (const each of roots)
      for (const one of each.querySelectorAll("*")) if (!parts.has(one)) one.dispatchEvent(new Event(`${eventName}-foreign`));
    for (const each of renamed.keys()) each.dispatchEvent(new Event(`${eventName}-label`));
  });
  listen("away", () => {
    if (isAway) return;
    isAway = true;
    const focused = document.activeElement;
    taken = [...roots].map(each => [each, each.parentNode, each.nextSibling, each.contains(focused) ? focused : null]);
    for (const [each] of taken) each.remove();
    restore();
  });
  listen("back", () => {
    if (!isAway) return;
    for (const [each, parent, next, focused] of taken) {
      if (!parent?.isConnected) continue;
      parent.insertBefore(each, next?.parentNode === parent ? next : null);
      focused?.focus({ preventScroll: true });
    }
    taken = [];
    for (const found of renamed.keys()) found.setAttribute(attack.attribute, attack.text);
    observer.takeRecords();
    isAway = false;
  });
}
