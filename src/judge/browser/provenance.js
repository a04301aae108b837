// Determines what in a snapshot was typed. Runs in Playwright's isolated world of a document, where no page has
// access. Read by `provenance.py`; installed by `settle/target.cjs`.
//
// Names and texts are Playwright's: as soon as it has made its accessibility tree, its own function makes the tree once
// more, in which each typed character reads as one that no text contains. Both trees have the same elements, so a name or
// a text of the first one was typed where the second one has such characters. Nothing in the document changes: what reads
// differently are the functions of this world through which Playwright reads it, and only while it does.
//
// Typed is, whatever the roles: the value of a form control that takes text, and everything inside an editing host, whose
// computed style says so in each of its forms (`contenteditable`, design mode, `-webkit-user-modify`, EditContext, all of
// them inherited). What the judge put into the document as an attack (`attacks.js`, asked by events whose names begin with
// `attacks`) is told apart in the same way, and elements that it renamed have the name of the site beside them.
({ getter, method, tag, shadowOf, slotOf, parentOf, hostOf, isHost }, attacks) => {
  const LAST = "_lastAriaSnapshotForQuery";
  const MAX_VALUE_CHARS = 1000;
  const MAX_ADDRESS_CHARS = 2000;
  // Characters that no text contains; sixteen, so that different words rarely become the same.
  const [TYPED, ADDED, NUMBER] = [0xfdd0, 0xfde0, 16];
  const SEEN = /[^\s\u200b\u00ad]/g;
  // The types of inputs whose value nobody types.
  const WITHOUT_TEXT = new Set(["button", "checkbox", "hidden", "image", "radio", "reset", "submit"]);
  // Attributes that say what an element is, not what it says.
  const STRUCTURE = /^(?:role|id|for|list|href|scope|tabindex|type|aria-(?!label$|value).*)$/;
  const FIELDS = new Set(["textbox", "searchbox", "combobox"]);

  const first = { element: getter(Element, "firstElementChild"), fragment: getter(DocumentFragment, "firstElementChild") };
  const next = getter(Element, "nextElementSibling");
  const slotOfText = getter(Text, "assignedSlot");
  const textOf = getter(HTMLElement, "innerText"), typeOf = getter(HTMLInputElement, "type");
  const attribute = method(Element, "getAttribute");
  const valueOf = { input: getter(HTMLInputElement, "value"), area: getter(HTMLTextAreaElement, "value") };
  const nodeValue = getter(Node, "nodeValue"), textContent = getter(Node, "textContent");
  const styleOf = getComputedStyle;
  // The attributes of a field that repeat its value.
  const VALUES = new Set(["value", "aria-valuenow", "aria-valuetext"]);
  const takesText = element => element instanceof HTMLTextAreaElement ||
    (element instanceof HTMLInputElement && !WITHOUT_TEXT.has(typeOf(element)));
  const valueIn = element => element instanceof HTMLTextAreaElement ? valueOf.area(element) : valueOf.input(element);

  const ask = name => dispatchEvent(new Event(`${attacks}-${name}`));
  // What the judge put in: the roots of it, the page's elements in them, and the renamed elements.
  const put = () => {
    const found = { root: new Set(), foreign: new Set(), label: new Set() };
    if (!attacks) return found;
    const listeners = Object.entries(found).map(([name, set]) => [`${attacks}-${name}`, event => {
      event.stopImmediatePropagation();
      set.add(event.target);
    }]);
    for (const [name, listener] of listeners) addEventListener(name, listener, true);
    ask("tell");
    for (const [name, listener] of listeners) removeEventListener(name, listener, true);
    return found;
  };

  // Who wrote what is in the document: `around` has the author of each element, `inside` the author of what is in it. Elements in
  // neither are the site's, and so is their content.
  const authors = judges => {
    const [around, inside, hosts] = [new Map(), new Map(), new Set()];
    let hasText = judges.root.size > 0;
    // Not recursive, because a document can be thousands of levels deep.
    const waiting = [[document.documentElement, null]];
    while (waiting.length) {
      const [element, parent] = waiting.pop();
      if (!element) continue;
      // Siblings wait below the children, so that shadow trees are walked before what is slotted into them.
      waiting.push([next(element), parent]);
      let author = inside.get(parent) ?? inside.get(slotOf(element));
      if (judges.root.has(element)) author = ADDED;
      else if (author === ADDED && judges.foreign.has(element)) author = TYPED;
      if (author !== undefined) around.set(element, author);
      else if (isHost(element)) hosts.add(element);
      if (author !== undefined) inside.set(element, author);
      else if (hosts.has(element) || element instanceof HTMLTextAreaElement) inside.set(element, TYPED);
      hasText ||= hosts.has(element) || (takesText(element) && (valueIn(element) || attribute(element, "value")));
      waiting.push([first.element(element), element]);
      const shadow = shadowOf(element);
      if (shadow) waiting.push([first.fragment(shadow), element]);
    }
    return { around, inside, hosts, hasText };
  };

  const marked = (text, author) => author === undefined ? text :
    text.replace(SEEN, char => String.fromCharCode(author + char.charCodeAt(0) % NUMBER));
  // Calls a function while everything typed reads as marked.
  const whileMarked = ({ around, inside }, call) => {
    const ofText = text => {
      const parent = parentOf(text);
      return inside.get(parent instanceof ShadowRoot ? hostOf(parent) : parent) ?? inside.get(slotOfText(text));
    };
    const ofValue = element => takesText(element) ? TYPED : around.get(element);
    const markedText = node => {
      if (node instanceof Text) return marked(nodeValue(node), ofText(node));
      const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
      let text = "";
      while (walker.nextNode()) text += marked(nodeValue(walker.currentNode), ofText(walker.currentNode));
      return text;
    };
    // Strings in generated content.
    const styled = (style, author) => author === undefined || style.content === "normal" || style.content === "none" ? style :
      new Proxy(style, { get: (of, name) => {
        const value = Reflect.get(of, name, of);
        if (name === "content") return value.replace(/"(?:[^"\\]|\\.)*"/gs, each => `"${marked(each.slice(1, -1), author)}"`);
        return typeof value === "function" ? value.bind(of) : value;
      } });
    const readers = [
      [HTMLInputElement.prototype, "value", { get() { return marked(valueOf.input(this), ofValue(this)); } }],
      [HTMLTextAreaElement.prototype, "value", { get() { return marked(valueOf.area(this), TYPED); } }],
      [Node.prototype, "nodeValue", { get() { return this instanceof Text ? markedText(this) : nodeValue(this); } }],
      [Node.prototype, "textContent", { get() { return this instanceof Document ? textContent(this) : markedText(this); } }],
      [Element.prototype, "getAttribute", { value(name) {
        const value = attribute(this, name);
        if (value === null || STRUCTURE.test(name)) return value;
        return marked(value, VALUES.has(name) ? ofValue(this) : around.get(this));
      } }],
      [globalThis, "getComputedStyle", { value: (element, pseudo) => styled(styleOf(element, pseudo),
        pseudo ? inside.get(element) ?? around.get(element) : around.get(element)) }],
    ];
    const own = readers.map(([type, name]) => Object.getOwnPropertyDescriptor(type, name));
    try {
      for (const [type, name, reader] of readers) Object.defineProperty(type, name, { configurable: true, ...reader });
      return call();
    } finally {
      readers.forEach(([type, name], place) => Object.defineProperty(type, name, own[place]));
    }
  };

  // Playwright's tree with everything typed marked: the name of each element, and its node. The elements keep their
  // references, which Playwright renews when a name changes.
  const markedTree = (injected, root, symbol, written) => {
    const [names, nodes, refs] = [new Map(), new Map(), []];
    // Assigned to each node of the tree just before it gets its reference.
    Object.defineProperty(Object.prototype, symbol, { configurable: true, set(element) {
      Object.defineProperty(this, symbol, { value: element });
      names.set(element, this.name);
      const ref = element._ariaRef;
      if (!ref || this.role === "fragment") return;
      refs.push([element, ref]);
      element._ariaRef = { ...ref, role: this.role, name: this.name };
    } });
    try {
      const tree = whileMarked(written, () => injected.utils.generateAriaTree(root, { mode: "ai" }));
      const waiting = [tree.root];
      while (waiting.length) {
        const node = waiting.pop();
        nodes.set(node[symbol], node);
        for (const child of node.children) if (typeof child !== "string") waiting.push(child);
      }
      return { names, nodes };
    } finally {
      delete Object.prototype[symbol];
      for (const [element, ref] of refs.reverse()) element._ariaRef = ref;
    }
  };

  const authorOf = char => {
    const code = char.charCodeAt(0);
    return code < TYPED || code >= ADDED + NUMBER ? undefined : code < ADDED ? TYPED : ADDED;
  };
  // Where a text was typed and where the judge added it, as ranges of characters; all of it was typed if unknown.
  const ranges = (text, twin) => {
    const isKnown = twin?.length === text.length && [...Array(text.length).keys()].every(at => twin[at] === text[at] || authorOf(twin[at]));
    const found = { [TYPED]: [], [ADDED]: [] };
    let at = 0, unit = 0, begin, end, open;
    const close = () => {
      if (open !== undefined) found[open].push(`${begin}-${end}`);
      open = undefined;
    };
    for (const char of text) {
      const author = isKnown ? authorOf(twin[unit]) : TYPED;
      // White space belongs to what is around it.
      if (author !== open && !/^[\s\u200b\u00ad]$/.test(char)) close();
      if (author !== undefined && open === undefined) [open, begin] = [author, at];
      at += 1;
      if (author !== undefined) end = at;
      unit += char.length;
    }
    close();
    return [found[TYPED].join(), found[ADDED].join()];
  };
  // The typed characters of a name that no text of the site inside the element repeats: the tree leaves such a text out.
  const nameTwin = (name, twin, node) => {
    if (twin?.length !== name.length) return twin;
    const single = child => typeof child === "string" ? child : child.role !== "generic" ? "" :
      child.name || (child.children.length === 1 && typeof child.children[0] === "string" ? child.children[0] : "");
    const same = (node?.children ?? []).map(single).filter(text => text.length === name.length);
    return [...Array(name.length).keys()].map(at => same.find(text => text[at] === name[at])?.[at] ?? twin[at]).join("");
  };

  const strings = node => node?.children.filter(each => typeof each === "string") ?? [];
  // The lines of a tree in the order in which Playwright writes them: an element with its text, or a text. Frames have
  // the lines of their own documents.
  const linesOf = function* (root, symbol, nodes) {
    const waiting = [];
    const enter = node => {
      const [own, twins] = [strings(node), strings(nodes.get(node[symbol]))];
      let at = own.length;
      for (const child of node.children.toReversed()) {
        if (typeof child === "string") at -= 1;
        waiting.push([child, twins.length === own.length ? twins[at] : undefined]);
      }
    };
    enter(root);
    while (waiting.length) {
      const [node, textTwin] = waiting.pop();
      if (typeof node === "string") {
        yield { text: node, textTwin };
        continue;
      }
      // A text between other lines, or after properties, has a separate line.
      const { children: [text], children: { length }, props: { url, placeholder } } = node;
      const isOnLine = length === 1 && typeof text === "string" && url === undefined && placeholder === undefined;
      yield { node, text: isOnLine ? text : "", textTwin: strings(nodes.get(node[symbol])).join("") };
      if (!isOnLine && node.role !== "iframe") enter(node);
    }
  };

  const describe = (line, node, element, { around, hosts }) => {
    const author = around.get(element);
    if (author !== undefined) line.author = author === TYPED ? "typed" : "judge";
    line.is_control = takesText(element) && valueIn(element) !== "";
    line.is_host = hosts.has(element);
    // The tree does not show what was typed into a text box other than a form control.
    if (line.is_host && FIELDS.has(node.role) && element instanceof HTMLElement) line.value = textOf(element).slice(0, MAX_VALUE_CHARS);
  };

  const read = (injected, tree) => {
    const judges = put();
    const written = authors(judges);
    const [symbol] = Object.getOwnPropertySymbols(tree.root);
    const root = tree.root[symbol];
    const { names, nodes } = written.hasText ? markedTree(injected, root, symbol, written) : { names: new Map(), nodes: new Map() };
    const nameOf = element => injected.utils.getElementAccessibleNameText(element, false);
    const [refs, lines] = [[], []];
    const renamed = [];
    let count = 0;
    for (const { node, text, textTwin } of linesOf(tree.root, symbol, nodes)) {
      const line = { at: count++ }, element = node?.[symbol];
      if (node?.ref) refs.push(node.ref);
      if (judges.label.has(element)) renamed.push([element, line]);
      if (!written.hasText) continue;
      if (element) describe(line, node, element, written);
      if (node?.name) [line.name, line.added_name] = ranges(node.name, nameTwin(node.name, names.get(element), nodes.get(element)));
      if (text) [line.text, line.added_text] = ranges(text, textTwin);
      if (Object.entries(line).some(([key, value]) => key !== "at" && value)) lines.push(line);
    }
    if (renamed.length) {
      ask("away");
      for (const [element, line] of renamed) {
        line.label = nameOf(element);
        [line.name, line.added_name] = ranges(line.label, whileMarked(written, () => nameOf(element)));
        if (!lines.includes(line)) lines.push(line);
      }
      ask("back");
    }
    return {
      is_main: self === top,
      // The reference of its frame, as far as the document around it is of the same origin.
      frame: self === top ? "" : frameElement?._ariaRef?.ref ?? "",
      address: location.href.slice(0, MAX_ADDRESS_CHARS),
      // The first is the address's, also in a sandbox; the second the document's, as inherited.
      address_origin: location.origin,
      origin: self.origin,
      // Of a page that the judge itself wrote (`judge.network.interception`).
      is_judges: document.documentElement?.getAttribute("data-wabe-author") === "judge",
      refs: refs.join(" "),
      count,
      lines,
    };
  };

  // Playwright keeps its tree here. From the first one on, each is read at the moment at which it is made.
  const watch = (injected, tree) => {
    let last;
    Object.defineProperty(injected, LAST, { configurable: true, get: () => last, set(made) {
      last = made;
      globalThis.wabeRead = undefined;
      try {
        globalThis.wabeRead = read(injected, made);
      } catch {
        // Nothing is known of the document then.
      }
    } });
    injected[LAST] = tree;
  };
  globalThis.wabeWatch = watch;
  Object.defineProperty(Object.prototype, LAST, { configurable: true, set(tree) {
    delete Object.prototype[LAST];
    watch(this, tree);
  } });
}
