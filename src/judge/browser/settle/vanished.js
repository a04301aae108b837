// Describes an element while it stands on the page, for the case that it vanishes before an observation (`recorder.js`).
// Runs in the recorder's isolated world: no page has access. Roles, names and texts come from Playwright's functions
// (`playwright.cjs`), as in every snapshot; who wrote them, from the document. Properties are read from prototypes, because
// elements can shadow properties of documents and forms (`<img name=body>`).
//
// Everything inside an editing host or a control that takes text counts as typed, and so does every name and text that
// includes some of it, or may: a reference to elsewhere whose own references are not followed counts as typed.
(playwright, { getter, method, tag, shadowOf, slotOf, parentOf, hostOf, isHost, isInEditor, put, isInserted }) => {
  if (globalThis.wabeVanished) return;
  const MAX_ELEMENTS = 300;
  const MAX_CHARS = 4000;
  const MAX_AROUND = 20;
  const MAX_ADDRESS_CHARS = 2000;
  const MAX_NAME_CHARS = 200;
  const TEXTLESS = new Set(["button", "checkbox", "color", "hidden", "image", "radio", "range", "reset", "submit"]);
  const REFERENCES = ["aria-labelledby", "aria-owns"];
  const REFLECTED = ["ariaLabelledByElements", "ariaOwnsElements"];
  const PLACES = new Set([
    "alert", "alertdialog", "article", "banner", "complementary", "contentinfo", "dialog", "feed", "form", "group", "list",
    "log", "main", "navigation", "region", "search", "status", "tabpanel", "toolbar",
  ]);
  const LIVE = "[role=alert], [role=status], [role=log], [role=alertdialog], [aria-live=polite], [aria-live=assertive], output";
  const textOf = getter(Node, "textContent");
  const attribute = method(Element, "getAttribute"), matches = method(Element, "matches"), all = method(Element, "querySelectorAll");
  const allIn = method(DocumentFragment, "querySelectorAll"), rootOf = method(Node, "getRootNode");
  const byId = { document: method(Document, "getElementById"), fragment: method(DocumentFragment, "getElementById") };
  const typeOf = getter(HTMLInputElement, "type");
  const assigned = method(HTMLSlotElement, "assignedElements");

  // The elements around one in the drawn tree, from itself outwards.
  const outwards = function* (element) {
    for (let at = element; at;) {
      if (at instanceof Element) {
        yield at;
        at = slotOf(at) ?? parentOf(at);
      } else at = at instanceof ShadowRoot ? hostOf(at) : null;
    }
  };
  // The elements in one, itself first, with those in shadow trees and slots; `null` if there are too many.
  const inside = element => {
    const found = new Set(), waiting = [element];
    while (waiting.length) {
      const at = waiting.pop();
      if (found.has(at)) continue;
      found.add(at);
      const shadow = shadowOf(at);
      waiting.push(...all(at, "*"), ...shadow ? allIn(shadow, "*") : [], ...at instanceof HTMLSlotElement ? assigned(at) : []);
      if (found.size + waiting.length > 3 * MAX_ELEMENTS) return null;
    }
    return found;
  };
  const takesText = element =>
    tag(element) === "TEXTAREA" || (element instanceof HTMLInputElement && !TEXTLESS.has(typeOf(element))) || isHost(element);
  const isTyped = element => isInEditor(element) || [...outwards(element)].some(takesText);
  const holdsTyped = element => {
    if (isTyped(element)) return true;
    const found = inside(element);
    return !found || [...found].some(takesText);
  };
  // What a name or a text comes from, apart from what the element contains.
  const referencesOf = element => {
    const root = rootOf(element), find = root instanceof Document ? byId.document : root instanceof ShadowRoot ? byId.fragment : () => null;
    const ids = REFERENCES.flatMap(name => (attribute(element, name) ?? "").split(/\s+/).filter(Boolean));
    const reflected = REFLECTED.flatMap(name => [...element[name] ?? []]);
    return [...ids.map(id => find(root, id)), ...reflected, ...element.labels instanceof NodeList ? element.labels : []]
      .filter(each => each instanceof Element);
  };
  const isNamedByTyped = element => referencesOf(element).some(each =>
    each !== element && (holdsTyped(each) || [each, ...inside(each) ?? []].some(inner => referencesOf(inner).length > 0)));
  const isRenamed = element => put.renamed.has(element);
  const holdsInserted = element => [...inside(element) ?? [element]].some(isInserted);

  // Whether the element is, is in, or contains what a page announces.
  const isLive = element => {
    for (const each of outwards(element)) if (matches(each, LIVE)) return true;
    return [...inside(element) ?? []].some(each => matches(each, LIVE));
  };
  const isInAny = (tops, node) => {
    if (!tops.length) return false;
    for (const each of outwards(node instanceof Element ? node : parentOf(node) ?? node)) if (tops.includes(each)) return true;
    return false;
  };
  // The element to describe: the message that it belongs to, if it is as short.
  const whole = (element, maxChars) => {
    let found = element;
    for (const each of outwards(element)) {
      if (textOf(each).length > 2 * maxChars) break;
      if (matches(each, LIVE) || textOf(each).trim() === textOf(element).trim()) found = each;
    }
    return found;
  };
  // Regions around the element, outermost first, with the names that only they give themselves.
  const places = (element, { utils }) => {
    const found = [];
    for (const each of outwards(parentOf(element))) {
      const role = utils.getAriaRole(each);
      if (!PLACES.has(role)) continue;
      const isNamed = !attribute(each, "aria-labelledby") && !each.ariaLabelledByElements?.length && !isRenamed(each);
      found.unshift([role, isNamed ? (attribute(each, "aria-label") ?? "").trim().slice(0, MAX_NAME_CHARS) : ""]);
      if (found.length === MAX_AROUND) break;
    }
    return found;
  };

  // A form's fields can shadow it; then nothing is known of its line.
  const refOf = element => element._ariaRef?.ref;
  const described = (element, maxChars) => {
    const top = whole(element, maxChars), elements = inside(top);
    if (!elements || elements.size > MAX_ELEMENTS) return null;
    const made = playwright();
    const snapshot = made.ariaSnapshot(top, { mode: "ai", boxes: true });
    if (snapshot.length > MAX_CHARS) return null;
    const refs = [], typed = [], mixed = [], named = [], inserted = [], foreign = [];
    for (const each of elements) {
      const ref = refOf(each);
      if (!ref) continue;
      refs.push(ref);
      if (isInserted(each)) inserted.push(ref);
      else if (isTyped(each)) typed.push(ref);
      else if (holdsInserted(each)) foreign.push(ref);
      else if (holdsTyped(each)) mixed.push(ref);
      else if (isNamedByTyped(each) || isRenamed(each)) named.push(ref);
    }
    return {
      snapshot, refs, typed, mixed, named, inserted, foreign,
      is_typed: isTyped(top),
      is_mixed: holdsTyped(top) || [...elements].some(each => isNamedByTyped(each) || isRenamed(each)),
      is_inserted: isInserted(top) || (!refOf(top) && holdsInserted(top)),
      around: places(top, made),
      is_main: self === top.ownerDocument.defaultView.top,
      address: location.href.slice(0, MAX_ADDRESS_CHARS),
      // As in `provenance.js`. A `srcdoc` document belongs to its parent.
      address_origin: location.origin,
      origin: self.origin,
      parent: location.ancestorOrigins[0] ?? null,
    };
  };
  globalThis.wabeVanished = {
    isLive,
    isInAny,
    messages: document => [...Reflect.apply(Document.prototype.querySelectorAll, document, [LIVE])],
    whole,
    inside: element => [...inside(element) ?? []],
    // `null` if the element cannot be described within bounds.
    describe(element, maxChars) {
      try {
        return described(element, maxChars);
      } catch {
        return null;
      }
    },
  };
}
