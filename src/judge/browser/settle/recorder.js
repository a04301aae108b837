// Runs in every document, in an isolated world without access from the page. It records when the document last changed,
// and which text appeared and vanished again before an observation.
(eventName) => {
  if (globalThis.wabe) return;
  const MAX_TEXTS = 50;
  const MAX_WATCHED = 500;
  // The maximum length of a text that a person could have read while it was visible.
  const MAX_CHARS = 200;
  // On longer pages, nothing is reported as vanished.
  const MAX_SHOWN = 1_000_000;
  const LOOK_EVERY_MS = 50;
  // Longer animations are treated as decoration.
  const MAX_ANIMATION_MS = 5000;
  const LOADING = /^((loading|please wait)\b|running ?(\.{3}|…)).{0,40}$/i;
  const BUSY = '[aria-busy="true"], progress:not([value]), [role="progressbar"]:not([aria-valuenow])';
  const WORDS = ["Loading", "Please wait", "Running"];
  const NAMED = WORDS.flatMap(word => ["alt", "aria-label"].map(key => `[${key}^="${word}" i]`)).join(", ");
  // A page without text that shows one of these is not empty.
  const MEDIA = "img, svg, canvas, video, iframe, embed, object, input, textarea, select, button";
  const NO_TEXT = /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|HEAD|BODY|HTML|TITLE|META|LINK|OPTION)$/;
  const CONTROLS = "button, [role=button], a, label, [role=tooltip]";
  const LINKS = "a, area, iframe, frame, embed, object, form, [formaction]";
  const MAX_LINKS = 10000;
  const MAX_LINK_CHARS = 2000;
  const MAX_ELEMENTS = 50000;
  const INLINE = /^(A|ABBR|B|BDI|BDO|CITE|CODE|EM|I|KBD|LABEL|MARK|OUTPUT|Q|S|SMALL|SPAN|STRONG|SUB|SUP|TIME|U|VAR|WBR)$/;
  const now = () => performance.now();
  const LETTERS = /[\p{L}\p{N}]/u;
  const NOTHING = { raw: "", blocks: [] };
  let changedAt = now();
  let scrolls = 0;
  let lookedAt = -Infinity;
  // Elements that changed since the last observation, each with its text last seen, and the texts of its blocks.
  let watched = new Map();
  let gone = new Set();
  // Elements with their replacements.
  let replaced = new WeakMap();
  // The text of the last observation.
  let shown = "";

  const squeezed = text => text.replace(/\s+/g, " ").trim();
  const rawOf = element => element.textContent.slice(0, 10 * MAX_CHARS);
  // The texts of an element's blocks that a person can read, in all about `MAX_CHARS`: without scripts, without longer
  // texts, and without blocks that consist of controls.
  const blocksOf = element => {
    const blocks = [];
    let [run, plain, length] = ["", "", 0];
    const end = () => {
      const text = squeezed(run);
      if (LETTERS.test(plain) && text.length <= MAX_CHARS) blocks.push(text);
      length += text.length;
      [run, plain] = ["", ""];
    };
    const walk = (parent, isControl) => {
      for (let node = parent.firstChild; node && length + run.length < MAX_CHARS; node = node.nextSibling) {
        if (node.nodeType === Node.TEXT_NODE) {
          const text = node.data.slice(0, 10 * MAX_CHARS);
          run += text;
          plain += isControl ? "" : text;
        } else if (node.nodeType !== Node.ELEMENT_NODE || NO_TEXT.test(node.tagName) || !isShown(node)) continue;
        else if (INLINE.test(node.nodeName)) walk(node, isControl || node.matches(CONTROLS));
        else {
          end();
          walk(node, isControl || node.matches(CONTROLS));
          end();
        }
      }
    };
    walk(element, false);
    end();
    return blocks;
  };
  // White space between blocks differs between elements and the page, and styles may change the case of text.
  const packed = text => text.replace(/\s+/g, "").toLowerCase();
  const wordsOf = text => packed(text).replace(/[^\p{L}]/gu, "");
  const isShown = element => element.isConnected && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const isInView = element => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return right > Math.max(left, 0) && bottom > Math.max(top, 0) && left < innerWidth && top < innerHeight;
  };
  const watch = node => {
    const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
    if (element && watched.size < MAX_WATCHED && !watched.has(element) && !NO_TEXT.test(element.tagName) && !element.closest(CONTROLS))
      watched.set(element, NOTHING);
  };
  const kind = node => `${node.nodeName} ${node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("class") : ""}`;
  const count = (region, element) => [...region.getElementsByTagName(element.tagName)].filter(each => kind(each) === kind(element)).length;
  // Whether the element, or one of its kind in the region it was in, is there again.
  const isReplaced = element => {
    for (let region = element; region; region = region.parentElement) {
      const other = replaced.get(region);
      if (other) return region === element || count(other, element) >= count(region, element);
    }
    return false;
  };
  const look = () => {
    lookedAt = now();
    for (const [element, seen] of watched) {
      let raw = isShown(element) && isInView(element) ? rawOf(element) : "";
      if (raw === seen.raw) continue;
      const text = squeezed(raw);
      if (text.length >= MAX_CHARS && element.children.length) {
        // A large part of the page: if one of its texts vanishes, others remain. Watch its parts instead.
        for (const child of element.children) watch(child);
        raw = "";
      }
      const blocks = raw ? blocksOf(element) : [];
      // If only numbers changed, it is a live value.
      const words = new Set(blocks.map(wordsOf));
      for (const block of isReplaced(element) ? [] : seen.blocks)
        if (!text.includes(block) && !words.has(wordsOf(block)) && gone.size < MAX_TEXTS) gone.add(block);
      watched.set(element, raw ? { raw, blocks } : NOTHING);
    }
  };
  // Elements that were replaced by others of their kind, as in a list that is rendered again.
  const noteReplaced = mutations => {
    const added = new Map();
    for (const { target, addedNodes } of mutations) {
      if (!added.has(target)) added.set(target, new Map());
      for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) added.get(target).set(kind(node), node);
    }
    for (const { target, removedNodes } of mutations)
      for (const node of removedNodes) {
        const other = node.isConnected ? undefined : added.get(target).get(kind(node));
        if (other) replaced.set(node, other);
      }
  };
  const changed = mutations => {
    changedAt = now();
    noteReplaced(mutations);
    for (const { type, target, addedNodes } of mutations) {
      if (type !== "childList") watch(target);
      for (const node of addedNodes) {
        watch(node);
        if (node.nodeType === Node.ELEMENT_NODE) observeRoots(node);
      }
    }
    if (now() - lookedAt >= LOOK_EVERY_MS) look();
  };
  const observer = new MutationObserver(changed);
  const observe = root => observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  // Observers do not look into shadow roots.
  const observeRoots = element => {
    for (const one of [element, ...element.querySelectorAll("*")]) if (one.shadowRoot) observe(one.shadowRoot);
  };
  observe(document);
  if (document.documentElement) observeRoots(document.documentElement);
  const listen = (types, heard) => types.forEach(type => addEventListener(type, heard, { capture: true, passive: true }));
  listen(["scroll"], () => { scrolls += 1; });
  // Typing changes a property, which observers do not report.
  listen(["input", "change"], () => { changedAt = now(); });

  const isBusy = () => {
    for (const element of document.querySelectorAll(BUSY)) if (isShown(element)) return true;
    for (const element of document.querySelectorAll(NAMED))
      if (LOADING.test((element.getAttribute("alt") ?? element.getAttribute("aria-label")).trim()) && isShown(element)) return true;
    const starts = [...WORDS, "loading"].map(word => `starts-with(normalize-space(), "${word}")`).join(" or ");
    const texts = document.evaluate(`//body//text()[string-length() < 200 and (${starts})]`, document, null, XPathResult.UNORDERED_NODE_SNAPSHOT_TYPE, null);
    for (let at = 0; at < texts.snapshotLength; at++) {
      const { data, parentElement } = texts.snapshotItem(at);
      if (LOADING.test(data.trim()) && parentElement && isShown(parentElement)) return true;
    }
    return false;
  };
  const isBlank = () => {
    if (!document.body || document.body.innerText.trim()) return false;
    for (const element of document.querySelectorAll(MEDIA)) if (isShown(element)) return false;
    return true;
  };
  const isMoving = () => document.getAnimations().some(animation => {
    const timing = animation.effect?.getComputedTiming();
    return animation.playState === "running" && timing && timing.endTime <= MAX_ANIMATION_MS;
  });

  // Where an element can lead, as the browser resolves it. A form's own property may be shadowed by one of its fields.
  const actionOf = Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, "action").get;
  const targets = element => {
    const { href, src, data, formAction } = element;
    if (element instanceof HTMLFormElement) return [actionOf.call(element)];
    if (typeof href === "string") return [href];
    // In SVG.
    return href ? [new URL(href.baseVal, element.baseURI).href] : [src, data, formAction];
  };
  // A `srcdoc` document belongs to its parent, even in a sandbox.
  const origin = () =>
    globalThis.origin === "null" && location.href === "about:srcdoc" ? location.ancestorOrigins[0] : globalThis.origin;
  const told = new Set();
  let collectedAt;
  const collect = (root, own, found, room) => {
    for (const element of root.querySelectorAll(LINKS)) {
      if (--room.elements < 0 || told.size >= MAX_LINKS) return;
      // The judge put it there (`../attacks.js`), not the site.
      if (globalThis.wabeInserted?.(element)) continue;
      try {
        for (const url of targets(element)) {
          const address = typeof url === "string" ? url.split("#", 1)[0] : "";
          if (!/^https?:/.test(address) || address.length > MAX_LINK_CHARS || told.has(address)) continue;
          told.add(address);
          if (new URL(address).origin !== own) found.push([own, address]);
        }
      } catch {
        // Not an address.
      }
    }
    for (const element of root.querySelectorAll("*")) {
      if (--room.elements < 0) return;
      if (element.shadowRoot) collect(element.shadowRoot, own, found, room);
    }
  };

  // Only the script in the page's own world (`page.js`) knows. If it is not running, there is no answer.
  const ask = name => !dispatchEvent(new CustomEvent(name, { cancelable: true }));

  // What a form, a button or a link inside an editing host starts is the participant's, who may have pasted it there. The
  // judge learns of it at once, by a function of this world, because the document may be gone next. Properties are read
  // from prototypes, because fields of a form can shadow them.
  const getter = (type, name) => {
    const { get } = Object.getOwnPropertyDescriptor(type.prototype, name);
    return object => Reflect.apply(get, object, []);
  };
  const [slotOf, parentOf, typeOf] = [getter(Element, "assignedSlot"), getter(Node, "parentNode"), getter(Node, "nodeType")];
  const [hostOf, windowOf] = [getter(ShadowRoot, "host"), getter(Document, "defaultView")];
  const fieldsOf = getter(HTMLFormElement, "elements");
  // Also through the frames of this origin, whose elements are instances of other classes.
  const around = element => {
    const parent = slotOf(element) ?? parentOf(element);
    const type = parent && typeOf(parent);
    return type === Node.DOCUMENT_FRAGMENT_NODE ? hostOf(parent) : type === Node.DOCUMENT_NODE ? windowOf(parent)?.frameElement : parent;
  };
  // The host itself is the site's. Also below `contenteditable="false"`, which can be pasted as well.
  const isInEditor = element => {
    for (let at = around(element); at; at = around(at))
      if (getComputedStyle(at).webkitUserModify !== "read-only") return true;
    return false;
  };
  const tellIfInEditor = elements => {
    if (elements.some(each => each instanceof Element && isInEditor(each))) globalThis[eventName]?.("");
  };
  for (const type of ["pointerdown", "click", "auxclick"])
    addEventListener(type, event => event.isTrusted && tellIfInEditor([event.composedPath()[0]]), true);
  addEventListener("submit", event => {
    const form = event.composedPath()[0];
    tellIfInEditor([form, event.submitter, ...form instanceof HTMLFormElement ? fieldsOf(form) : []]);
  }, true);

  globalThis.wabe = {
    // In milliseconds of page time. `busy`, `moving` and `blank` are only determined if the page is otherwise quiet, the
    // first and the last also if its server may write into it at any time (`hasServer`).
    state(quietMs, hasServer) {
      const records = observer.takeRecords();
      if (records.length) changed(records);
      look();
      const quiet = now() - changedAt;
      const isQuiet = quiet >= quietMs;
      return {
        quiet,
        scrolls,
        timer: ask(eventName),
        worker: ask(`${eventName}-worker`),
        busy: (isQuiet || hasServer) && isBusy(),
        moving: isQuiet && isMoving(),
        blank: hasServer && window === top && isBlank(),
      };
    },
    frames: () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))),
    // Addresses of other origins that the document links to and that have not been reported yet.
    links() {
      const found = [];
      if (collectedAt !== changedAt) collect(document, origin(), found, { elements: MAX_ELEMENTS });
      collectedAt = changedAt;
      return found;
    },
    // Called before an observation: text that appeared since the last one and is no longer there, and, of the page
    // itself, what kind of document it is.
    observed() {
      look();
      ask(`${eventName}-observed`);
      const before = shown;
      shown = document.body ? packed(document.body.innerText) : "";
      const isStill = text => before.includes(packed(text)) || shown.includes(packed(text));
      const texts = shown.length > MAX_SHOWN ? [] : [...gone].filter(text => !LOADING.test(text) && !isStill(text));
      gone = new Set();
      watched = new Map();
      replaced = new WeakMap();
      return {
        vanished: texts.filter(text => !texts.some(other => other !== text && other.includes(text))),
        document: window === top
          ? { type: document.contentType, has_body: document.body !== null, is_loading: document.readyState === "loading" }
          : null,
      };
    },
  };
}
