// Shared by the scripts that read a document as it is drawn (`provenance.js`, `joins.js`). They run in an isolated
// world to which no page has access, but elements can shadow properties of documents and forms (`<img name=body>`), so
// properties are read from prototypes.
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
  return { root: getter(Document, "documentElement")(document), getter, method, tag, shadowOf, data, childrenOf };
}
