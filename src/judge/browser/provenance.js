// Determines who wrote the text in a snapshot. Runs in Playwright's own isolated world of a document, right after the
// snapshot: there each element carries the reference that the snapshot gave it. Properties are read from prototypes
// (`drawn.js`). Called by `settle/settle.cjs`, read by `provenance.py`.
//
// Everything inside an editing host (`contenteditable`, design mode) counts as written by whoever types, also below
// `contenteditable="false"` in it and in its shadow trees. Where a host's text becomes part of an element outside it, that
// element is listed: its name (a heading around the host, an element labelled by it), or its own text (a host without a
// reference of its own, whose text the snapshot shows in the nearest element that has one). The value of a text field that
// becomes part of another element's name (a cell around the field) is listed like the text of a host.
//
// References do not tell everything apart: an element that takes no clicks has none, and text beside a host is shown as
// that of what is around both. So the drawn text of a document with hosts is told as well, in order, each piece with who
// wrote it, and elements as far as they have a reference or a role that is certain (`pieces.py`).
//
// What the judge put into the document as an attack (`attacks.js`, asked by events whose names begin with `attacks`) counts
// as a host as well, and elements that it renamed are told with the name that they have without that.
({ root, getter, method, tag, shadowOf, data, childrenOf }, attacks) => {
  const MAX_VALUE_CHARS = 1000;
  const MAX_ADDRESS_CHARS = 2000;
  const MAX_CHAIN = 8;
  const MAX_NODES = 150000;
  const MAX_PIECES = 20000;
  const MAX_PIECES_CHARS = 200000;
  const FROM_CONTENT = new Set([
    "button", "cell", "checkbox", "columnheader", "gridcell", "heading", "link", "menuitem", "menuitemcheckbox",
    "menuitemradio", "option", "radio", "row", "rowheader", "switch", "tab", "tooltip", "treeitem",
  ]);
  const FIELDS = new Set(["textbox", "searchbox", "combobox"]);
  // An element that is not drawn is not editable, but its text may name others.
  const EDITABLE = new Set(["", "true", "plaintext-only"]);
  const TEXT_TYPES = new Set(["text", "search", "email", "url", "tel", "password"]);
  // Elements that name the element around them.
  const NAMING = new Set(["CAPTION", "FIGCAPTION", "LEGEND", "SUMMARY", "title"]);
  const ROLES = {
    A: "link", BUTTON: "button", H1: "heading", H2: "heading", H3: "heading", H4: "heading", H5: "heading", H6: "heading",
    LI: "listitem", OL: "list", P: "paragraph", TABLE: "table", TBODY: "rowgroup", TD: "cell", TR: "row", UL: "list",
  };
  // Not drawn, or drawn by the browser from something other than their children.
  const WITHOUT_TEXT = new Set([
    "AUDIO", "CANVAS", "EMBED", "FRAME", "HEAD", "IFRAME", "INPUT", "NOSCRIPT", "OBJECT", "SCRIPT", "SELECT", "STYLE",
    "TEMPLATE", "TEXTAREA", "VIDEO", "svg",
  ]);
  const LABELLED = [HTMLInputElement, HTMLTextAreaElement, HTMLSelectElement, HTMLButtonElement, HTMLMeterElement,
    HTMLOutputElement, HTMLProgressElement];
  const firstOf = { element: getter(Element, "firstElementChild"), fragment: getter(DocumentFragment, "firstElementChild") };
  const next = getter(Element, "nextElementSibling");
  const slotOf = getter(Element, "assignedSlot");
  const attribute = method(Element, "getAttribute");
  const editable = getter(HTMLElement, "isContentEditable");
  const textOf = getter(HTMLElement, "innerText");
  const byId = { document: method(Document, "getElementById"), fragment: method(DocumentFragment, "getElementById") };
  const rootNode = method(Node, "getRootNode");
  const typeOf = getter(HTMLInputElement, "type");
  const isTextField = element => element instanceof HTMLTextAreaElement ||
    (element instanceof HTMLInputElement && TEXT_TYPES.has(typeOf(element)));
  const labelsOf = new Map(LABELLED.map(type => [type, getter(type, "labels")]));

  const isVisible = method(Element, "checkVisibility");
  const rects = method(Range, "getClientRects");

  const refOf = element => element._ariaRef?.ref;
  const [roots, added, renamed] = [new Set(), new Set(), new Map()];
  const ask = name => dispatchEvent(new Event(`${attacks}-${name}`));
  if (attacks) {
    const takers = { root: element => roots.add(element), foreign: element => added.add(element) };
    const told = Object.entries({ ...takers, label: element => renamed.set(element, "") })
      .map(([name, add]) => [`${attacks}-${name}`, event => { event.stopImmediatePropagation(); add(event.target); }]);
    for (const [name, listener] of told) addEventListener(name, listener, true);
    ask("tell");
    for (const [name, listener] of told) removeEventListener(name, listener, true);
  }
  const inside = new Set();
  const inserted = new Set();
  const hosts = [];
  const fields = new Set();
  // The parent in the tree that is drawn: slots and shadow hosts included.
  const around = new Map();
  const referring = [];
  const refs = [];
  const insideRefs = [];
  const insertedRefs = [];
  // Not recursive, because a document can be thousands of levels deep.
  const waiting = [[root, null]];
  while (waiting.length) {
    const [element, parent] = waiting.pop();
    if (!element) continue;
    // Siblings wait below the children, so that shadow trees are walked before what is slotted into them.
    waiting.push([next(element), parent]);
    const slot = slotOf(element);
    around.set(element, slot ?? parent);
    const isInside = inside.has(parent) || (slot !== null && inside.has(slot));
    if (roots.has(element) || (inserted.has(parent) && !added.has(element))) inserted.add(element);
    // What is not drawn, and not in the snapshot, becomes part of no text.
    const isHost = !isInside && element instanceof HTMLElement && (roots.has(element) ? refOf(element) || isVisible(element) :
      editable(element) || EDITABLE.has(attribute(element, "contenteditable")));
    if (isInside || isHost || inserted.has(element)) inside.add(element);
    if (isHost) hosts.push(element);
    if (!isInside && isTextField(element)) fields.add(element);
    const ref = refOf(element);
    if (ref) refs.push(ref);
    if (ref && inserted.has(element)) insertedRefs.push(ref);
    else if (ref && isInside) insideRefs.push(ref);
    if (attribute(element, "aria-labelledby") || attribute(element, "aria-owns") || LABELLED.some(type => element instanceof type))
      referring.push(element);
    waiting.push([firstOf.element(element), element]);
    const shadow = shadowOf(element);
    if (shadow) waiting.push([firstOf.fragment(shadow), element]);
  }

  const outwards = function* (element) {
    for (let at = element; at; at = around.get(at)) yield at;
  };
  // The nearest references from an element outwards. The snapshot may not show the first ones: references outlive it.
  const chain = element => [...outwards(element)].map(refOf).filter(Boolean).slice(0, MAX_CHAIN);
  // The snapshot does not show what was typed into a text box that is not a form field.
  const valueOf = host => FIELDS.has(host._ariaRef?.role) ? textOf(host).slice(0, MAX_VALUE_CHARS) : "";
  // The names that the site gave to renamed elements: as far as they do not come from their content.
  const ownNames = () => {
    const named = [...renamed.keys()].filter(refOf);
    if (!named.length) return [];
    ask("away");
    const words = (element, name) => attribute(element, name)?.trim() ?? "";
    const found = named.map(element => {
      const type = LABELLED.find(type => element instanceof type);
      const labels = type ? [...labelsOf.get(type)(element) ?? []].map(label => textOf(label)).join(" ") : "";
      const pointed = words(element, "aria-labelledby").split(/\s+/).filter(Boolean)
        .map(id => byId.document(document, id)?.textContent ?? "").join(" ");
      const isNamed = !isFromContent(element);
      const name = pointed.trim() || words(element, "aria-label") || labels.trim() || words(element, "alt") ||
        (isNamed ? words(element, "title") || words(element, "placeholder") : "");
      return [refOf(element), name.replace(/\s+/g, " ").trim().slice(0, MAX_VALUE_CHARS)];
    });
    ask("back");
    return found;
  };
  const isFromContent = element => FROM_CONTENT.has(element._ariaRef?.role);
  const found = {
    is_main: self === top,
    address: location.href.slice(0, MAX_ADDRESS_CHARS),
    // The first is that of the address, also in a sandbox; the second that of the document, as inherited.
    address_origin: location.origin,
    origin: self.origin,
    refs: refs.join(" "),
    inside: insideRefs.join(" "),
    inserted: insertedRefs.join(" "),
    labels: ownNames(),
    hosts: hosts.map(host => {
      const isInserted = inserted.has(host);
      return { ref: refOf(host) ?? "", text: isInserted ? "" : valueOf(host), around: chain(around.get(host)), inserted: isInserted };
    }),
    named: [],
    foreign_names: [],
    owners: [],
    foreign_owners: [],
    pieces: [],
  };
  if (!hosts.length && !fields.size) return found;

  const roleOf = element => attribute(element, "role")?.trim().split(/\s+/)[0] || ROLES[tag(element)];
  // Whether a text is drawn in the innermost of the open elements. Text that the snapshot leaves out must not be
  // attributed to the site, or typed text could take its place.
  const isDrawn = (open, text) => {
    const styled = open.findLast(each => {
      each.display ??= getComputedStyle(each.element).display;
      return each.display !== "contents";
    });
    const inner = open.at(-1);
    inner.visibility ??= getComputedStyle(inner.element).visibility;
    if (inner.visibility !== "visible" || !styled || !isVisible(styled.element)) return false;
    const range = new Range();
    range.selectNode(text);
    return rects(range).length > 0;
  };
  // `in` and the reference, or `as` and the role, begin an element; `out` ends it; `site` and `typed` are text. None of a
  // document that is too large.
  const pieces = () => {
    const told = [];
    let chars = 0, nodes = 0;
    const enter = element => {
      const ref = refOf(element), role = ref || inside.has(element) ? "" : roleOf(element);
      if (ref) told.push(["in", ref]);
      else if (role) told.push(["as", role]);
      const isHidden = attribute(element, "aria-hidden") === "true" || WITHOUT_TEXT.has(tag(element));
      return { element, following: isHidden ? () => null : childrenOf(element), isOpen: Boolean(ref || role) };
    };
    const open = root ? [enter(root)] : [];
    while (open.length) {
      const { element, following, isOpen } = open.at(-1);
      const node = following();
      if (!node) {
        open.pop();
        if (isOpen) told.push(["out", ""]);
      } else if (node instanceof Text) {
        const text = data(node).replace(/[\s\u200b\u00ad]+/g, "");
        if (!text || !isDrawn(open, node)) continue;
        chars += text.length;
        told.push([inside.has(element) ? "typed" : "site", text]);
      } else if (node instanceof Element) {
        open.push(enter(node));
      }
      if (++nodes > MAX_NODES || chars > MAX_PIECES_CHARS || told.length > MAX_PIECES) return [];
    }
    return told;
  };

  const aroundAny = listed => {
    const found = new Set();
    for (const host of listed)
      for (const element of outwards(around.get(host))) {
        if (found.has(element)) break;
        found.add(element);
      }
    return found;
  };
  const containing = aroundAny(hosts);
  const containingInserted = aroundAny(hosts.filter(host => inserted.has(host)));
  const isForeign = element => inserted.has(element) || containingInserted.has(element);
  const isTyped = element => inside.has(element) || containing.has(element);
  const pointedAt = (element, name) => {
    const root = rootNode(element);
    const find = root instanceof Document ? byId.document : byId.fragment;
    const ids = (attribute(element, name) ?? "").split(/\s+/).filter(Boolean);
    return root instanceof Document || root instanceof DocumentFragment ? ids.map(id => find(root, id)).filter(Boolean) : [];
  };
  const labels = element => {
    const type = LABELLED.find(type => element instanceof type);
    return type ? [...labelsOf.get(type)(element) ?? []] : [];
  };
  // By reference, whether what the judge put in is part of the name.
  const named = new Map();
  const name = (ref, isForeign) => named.set(ref, isForeign || named.get(ref) === true);
  const isNamedByContent = element => {
    if (pointedAt(element, "aria-labelledby").length || attribute(element, "aria-label")?.trim()) return false;
    return isFromContent(element);
  };
  // Elements through which typed text reaches the names of others: the hosts, and what refers to them.
  const sources = [...hosts, ...[...fields].map(field => around.get(field)).filter(Boolean)]
    .map(element => [element, inserted.has(element)]);
  for (const element of referring) {
    if (inside.has(element)) continue;
    const owned = pointedAt(element, "aria-owns").filter(isTyped);
    const pointed = pointedAt(element, "aria-labelledby");
    const naming = [...pointed, ...labels(element)].filter(isTyped).concat(pointed.filter(each => fields.has(each) && each !== element));
    if (!owned.length && !naming.length) continue;
    const includesInserted = [...owned, ...naming].some(isForeign);
    sources.push([element, includesInserted]);
    if (naming.length && refOf(element)) name(refOf(element), includesInserted);
    // The snapshot may show what it owns as its own text.
    if (owned.length) (includesInserted ? found.foreign_owners : found.owners).push(chain(element));
  }
  for (const [source, includesInserted] of sources)
    for (const element of outwards(source)) {
      if (refOf(element) && isNamedByContent(element)) name(refOf(element), includesInserted);
      const owner = NAMING.has(tag(element)) && around.get(element);
      if (owner && refOf(owner) && !attribute(owner, "aria-label")?.trim()) name(refOf(owner), includesInserted);
    }
  // What an element owns is shown in a different place from where it is found here.
  const isTold = hosts.length && !found.owners.length && !found.foreign_owners.length;
  const foreign = [...named.keys()].filter(ref => named.get(ref));
  return { ...found, named: [...named.keys()], foreign_names: foreign, pieces: isTold ? pieces() : [] };
}
