// Finds where text continues without a space although the snapshot shows it in two pieces: at the edges of inline
// elements (`<a>json</a>.<b>dumps</b>(` reads "json.dumps("). Runs with `provenance.js`, in the same world, where
// elements carry their references and no page has access; properties are read from prototypes, which elements cannot
// shadow (`drawn.js`). Called by `settle/settle.cjs`, read by `provenance.py`.
//
// The edge of an element counts if text without white space is on both sides of it, and everything in between is inline.
// Anything else drawn there than text (an image, a field, generated content) separates.
({ root, tag, data, childrenOf }) => {
  // Bounded, so that no page takes long. Text beyond the limit is joined with a space.
  const MAX_NODES = 150000;
  const MAX_STYLES = 15000;
  const SEPARATE = new Set([
    "AUDIO", "BR", "BUTTON", "CANVAS", "EMBED", "IFRAME", "IMG", "INPUT", "METER", "OBJECT", "PROGRESS", "SELECT", "TEXTAREA",
    "VIDEO", "math", "svg",
  ]);
  const UNSEEN = new Set(["HEAD", "NOSCRIPT", "SCRIPT", "STYLE", "TEMPLATE"]);
  const before = [], after = [];
  let styles = 0, nodes = 0;
  // Whether text that does not end in white space comes just before, and the edges since then.
  let isOpen = false, edges = [];
  const separate = () => { [isOpen, edges] = [false, []]; };
  // How an element is laid out: `inline`, `none` or anything else, which separates.
  const layout = (element, pseudo) => {
    if ((styles += 2) > MAX_STYLES) return "unknown";
    const { display, visibility } = getComputedStyle(element);
    if (display === "none") return "none";
    if ((display !== "inline" && display !== "contents") || visibility !== "visible") return display;
    const { content } = getComputedStyle(element, pseudo);
    return content === "none" || content === "normal" ? "inline" : "generated";
  };
  const edge = (element, list) => {
    const ref = element._ariaRef?.ref;
    if (ref) edges.push([ref, list]);
  };
  const read = text => {
    if (!text) return;
    if (isOpen && /^\S/.test(text)) for (const [ref, list] of edges) list.push(ref);
    isOpen = /\S$/.test(text);
    edges = [];
  };
  // Whether to go into the element.
  const enter = element => {
    const name = tag(element);
    if (UNSEEN.has(name)) return false;
    if (SEPARATE.has(name)) {
      separate();
      return false;
    }
    if (!isOpen) return true;
    const found = layout(element, "::before");
    if (found === "none") return false;
    if (found === "inline") edge(element, before);
    else separate();
    return true;
  };
  const leave = element => {
    if (!isOpen) return;
    if (layout(element, "::after") === "inline") edge(element, after);
    else separate();
  };
  // Not recursive, because a document can be thousands of levels deep.
  const open = root ? [[root, childrenOf(root)]] : [];
  while (open.length && nodes < MAX_NODES && styles < MAX_STYLES) {
    const [element, following] = open.at(-1);
    const node = following();
    nodes += 1;
    if (!node) {
      open.pop();
      leave(element);
    } else if (node instanceof Text) {
      read(data(node));
    } else if (node instanceof Element && enter(node)) {
      open.push([node, childrenOf(node)]);
    }
  }
  return { joined_before: before.join(" "), joined_after: after.join(" ") };
}
