// Shared by the scripts that read a document as it is drawn (`provenance.js`, `joins.js`), or ask where an element is, in an
// editor or in what was inserted (`settle/recorder.js`, `settle/vanished.js`, and `site_tools.js` through the recorder). They
// run in an isolated world to which no page has access, but elements can shadow properties of documents and forms
// (`<img name=body>`), so properties are read from prototypes.
() => {
  const getter = (type, name) => {
    const { get } = Object.getOwnPropertyDescriptor(type.prototype, name);
    return object => Reflect.apply(get, object, []);
  };
  const method = (type, name) => {
    const called = type.prototype[name];
    return (object, ...args) => Reflect.apply(called, object, args);
  };
  const firstNode = getter(Node, "firstChild"), nextNode = getter(Node, "nextSibling");
  const tag = getter(Element, "tagName"), shadowOf = getter(Element, "shadowRoot"), data = getter(CharacterData, "data");
  const assignedNodes = method(HTMLSlotElement, "assignedNodes");
  // Returns a function that yields the nodes drawn in an element one after the other, including slots and shadow trees.
  const childrenOf = element => {
    const shadow = shadowOf(element);
    const assigned = !shadow && element instanceof HTMLSlotElement ? assignedNodes(element) : [];
    if (assigned.length) return () => assigned.shift();
    let at = firstNode(shadow ?? element);
    return () => {
      const found = at;
      at = at && nextNode(at);
      return found;
    };
  };
  const [slotOf, parentOf, typeOf] = [getter(Element, "assignedSlot"), getter(Node, "parentNode"), getter(Node, "nodeType")];
  const [hostOf, windowOf] = [getter(ShadowRoot, "host"), getter(Document, "defaultView")];
  const styleOf = getComputedStyle;
  // What an element is drawn in, also through the frames of this origin, whose elements are instances of other classes.
  const around = element => {
    const parent = slotOf(element) ?? parentOf(element);
    const type = parent && typeOf(parent);
    return type === Node.DOCUMENT_FRAGMENT_NODE ? hostOf(parent) : type === Node.DOCUMENT_NODE ? windowOf(parent)?.frameElement : parent;
  };
  // In each of its forms: `contenteditable`, design mode, `-webkit-user-modify`, EditContext. All of them are inherited.
  const isHost = element => styleOf(element).webkitUserModify !== "read-only";
  // Also below `contenteditable="false"`, which can be pasted as well. The host itself is the site's.
  const isInEditor = element => {
    for (let at = around(element); at; at = around(at)) if (isHost(at)) return true;
    return false;
  };
  // What the judge put into the document as an attack (`attacks.js`): the outermost elements, and those that it renamed, each
  // with the value that the page gave its attribute.
  const put = { kind: undefined, roots: new Set(), renamed: new Map() };
  const isInserted = element => {
    if (put.roots.size) for (let at = element; at; at = around(at)) if (put.roots.has(at)) return true;
    return false;
  };
  return { root: getter(Document, "documentElement")(document), getter, method, tag, shadowOf, data, childrenOf, slotOf, parentOf, typeOf, hostOf, around, isHost, isInEditor, put, isInserted };
}
