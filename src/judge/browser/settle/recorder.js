// Runs in every document, in an isolated world without access from the page. It records when the document last changed,
// and which text appeared and vanished again before an observation, with what `vanished.js` found out about it meanwhile.
(eventName, drawn) => {
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
  // What stands this long is described: so often between two observations, less and less often on a page that keeps
  // changing, and at most so many elements, messages first.
  const DESCRIBE_AFTER_MS = 100;
  const MAX_DESCRIPTIONS = 30;
  const MAX_DESCRIBED = 15;
  const MAX_MESSAGES = 40;
  const MAX_CONTROLS = 3;
  const MAX_KNOWN = 3000;
  // A page without text that shows one of these is not empty.
  const MEDIA = "img, svg, canvas, video, iframe, embed, object, input, textarea, select, button";
  const NO_TEXT = /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|HEAD|BODY|HTML|TITLE|META|LINK|OPTION)$/;
  const CONTROLS = "button, [role=button], a, label, [role=tooltip]";
  // Menus that closed again showed nothing but choices.
  const MENUS = "[role=menu], [role=menubar], [role=listbox], [role=tree], [role=option], [role^=menuitem], datalist, select";
  const UNTOLD = `${CONTROLS}, ${MENUS}`;
  const USABLE = "button, a[href], [role=button], [role=link]";
  const FIELDS = "input, textarea, select, [contenteditable]";
  const MODAL = `dialog, [role=dialog], [role=alertdialog], [aria-modal=true], ${MENUS}`;
  // Of a page that has not been filled in yet.
  const TEMPLATE = /\{\{.*?\}\}|\{%.*?%\}|<%.*?%>|\[\[.*?\]\]/s;
  const LINKS = "a, area, iframe, frame, embed, object, form, [formaction]";
  const MAX_LINKS = 10000;
  const MAX_LINK_CHARS = 2000;
  const MAX_ELEMENTS = 50000;
  const INLINE = /^(A|ABBR|B|BDI|BDO|CITE|CODE|EM|I|KBD|LABEL|MARK|OUTPUT|Q|S|SMALL|SPAN|STRONG|SUB|SUP|TIME|U|VAR|WBR)$/;
  const now = () => performance.now();
  const LETTERS = /[\p{L}\p{N}]/u;
  const NOTHING = { raw: "", blocks: [], since: Infinity, at: 0, isLive: false, isTried: true, stood: null };
  let changedAt = now();
  // The messages with a control that the page shows, and when anything else last changed.
  let staying = [];
  let restChangedAt = now();
  let scrolls = 0;
  let lookedAt = -Infinity;
  // Elements that changed since the last observation, each with its text last seen, and the texts of its blocks; since when
  // it stands, by both clocks; and what it is, once known.
  let watched = new Map();
  // The texts that vanished, each with the element around it, and for how long.
  let gone = new Map();
  let [descriptions, described, describedMessages] = [0, 0, 0];
  let isWaiting = false;
  let isObserved = false;
  // Controls that were there at the last observation.
  let known = new WeakSet();
  // Elements with their replacements.
  let replaced = new WeakMap();
  // The text of the last observation, and its messages'.
  let [shown, told] = ["", ""];

  const squeezed = text => text.replace(/\s+/g, " ").trim();
  const kind = node => `${node.nodeName} ${node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("class") : ""}`;
  // One of several things to click, as in a menu that has no roles.
  const isChoice = element => getComputedStyle(element).cursor === "pointer" && !wabeVanished.isLive(element) &&
    [element.previousElementSibling, element.nextElementSibling].some(each => each && kind(each) === kind(element));
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
        } else if (node.nodeType !== Node.ELEMENT_NODE || NO_TEXT.test(node.tagName) || node.matches(MENUS) || !isShown(node)) continue;
        else if (INLINE.test(node.nodeName)) walk(node, isControl || node.matches(CONTROLS));
        else {
          end();
          walk(node, isControl || node.matches(CONTROLS) || isChoice(node));
          end();
        }
      }
    };
    walk(element, isChoice(element));
    end();
    return blocks;
  };
  // White space between blocks differs between elements and the page, and styles may change the case of text.
  const packed = text => text.replace(/\s+/g, "").toLowerCase();
  const wordsOf = text => packed(text).replace(/[^\p{L}]/gu, "");
  // An element without a box of its own (`display: contents`, as of many custom elements) is where its content is.
  const boxOf = element => {
    if (getComputedStyle(element).display !== "contents") return element.getBoundingClientRect();
    const content = new Range();
    content.selectNodeContents(element);
    return content.getBoundingClientRect();
  };
  const isShown = element => element.isConnected &&
    (element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) ||
      (getComputedStyle(element).display === "contents" && boxOf(element).height > 0));
  const isInView = element => {
    const { left, right, top, bottom } = boxOf(element);
    return right > Math.max(left, 0) && bottom > Math.max(top, 0) && left < innerWidth && top < innerHeight;
  };
  const watch = node => {
    const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
    if (element && watched.size < MAX_WATCHED && !watched.has(element) && !NO_TEXT.test(element.tagName) && !element.closest(UNTOLD))
      watched.set(element, NOTHING);
  };
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
        if (!text.includes(block) && !words.has(wordsOf(block))) vanish(block, seen);
      const isLive = blocks.length > 0 && wabeVanished.isLive(element);
      watched.set(element, raw ? { ...NOTHING, raw, blocks, since: now(), at: Date.now(), isLive, isTried: !blocks.length } : NOTHING);
    }
    wait();
  };
  const vanish = (text, { at, since, isLive, stood }) => {
    if (gone.size >= MAX_TEXTS || gone.get(text)?.stood) return;
    gone.set(text, { text, at, stood_ms: Math.round(now() - since), isLive, stood });
  };
  // What stands for a while may vanish at any time later, without another look in between.
  const wait = () => {
    if (isWaiting || descriptions >= MAX_DESCRIPTIONS || ![...watched.values()].some(seen => !seen.isTried)) return;
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      descriptions += 1;
      look();
      describe();
      wait();
    }, DESCRIBE_AFTER_MS * 2 ** Math.floor(descriptions / 10));
  };
  const describe = () => {
    for (const [element, seen] of watched) {
      if (seen.isTried || now() - seen.since < DESCRIBE_AFTER_MS / 2) continue;
      seen.isTried = true;
      if (seen.isLive ? ++describedMessages <= MAX_MESSAGES : ++described <= MAX_DESCRIBED)
        seen.stood = wabeVanished.describe(element, MAX_CHARS);
    }
  };
  // Messages that appeared since the last observation and have a control which may vanish with them, as "Undo" does.
  const messages = () => !isObserved || watched.size > MAX_MESSAGES ? [] : [...watched].flatMap(([element, seen]) => {
    if (!seen.blocks.length) return [];
    const top = wabeVanished.whole(element, MAX_CHARS);
    // Its fields can shadow its methods.
    if (top instanceof HTMLFormElement) return [];
    if (top.closest(MODAL) || top.querySelector(FIELDS)) return [];
    const controls = wabeVanished.inside(top).filter(each => each.matches(USABLE) && isShown(each));
    return controls.length <= MAX_CONTROLS && controls.some(each => !known.has(each)) ? [top] : [];
  });
  // Elements that were replaced by others of their kind, as in a list rendered again.
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
    if (!mutations.every(({ target }) => wabeVanished.isInAny(staying, target))) restChangedAt = changedAt;
    wabeLoading.changed();
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
  const shadows = new Set();
  const observer = new MutationObserver(changed);
  const observe = root => observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  // Observers do not look into shadow roots.
  const observeRoots = element => {
    for (const { shadowRoot } of [element, ...element.querySelectorAll("*")]) if (shadowRoot) {
      observe(shadowRoot);
      shadows.add(shadowRoot);
    }
  };
  observe(document);
  if (document.documentElement) observeRoots(document.documentElement);
  const { getter, method, typeOf, shadowOf, around, isHost, isInEditor, put } = drawn;
  // Heard first, because observers of the page are called as soon as one listener was: what may be an input, of which frames
  // are notified by a message, and what the browser makes of an act once its event is dispatched, in the same task.
  const INPUTS = [
    "pointerover", "pointermove", "pointerdown", "keydown", "input", "change", "wheel", "drop", "popstate", "visibilitychange", "message",
  ];
  const RESTS = ["beforeinput", "blur", "change", "focus", "focusin", "focusout", "formdata", "input", "invalid", "reset", "submit"];
  // The last event of the last act, and the numbers of the last act and of what runs.
  let [acting, acts, running] = [null, 0, -2];
  const phaseOf = getter(Event, "eventPhase");
  const isActing = () => acting !== null && phaseOf(acting) !== Event.NONE;
  // Not of an event that a handler of another one causes.
  const rest = event => { if (event.isTrusted && running > 0 && running === acts && !isActing()) acting = event; };
  for (const name of new Set([...INPUTS, ...RESTS])) addEventListener(name, event => {
    if (INPUTS.includes(name)) tellPage("input");
    if (RESTS.includes(name)) rest(event);
    edits(event);
  }, { capture: true, passive: true });
  const listen = (types, heard) => types.forEach(type => addEventListener(type, heard, { capture: true, passive: true }));
  listen(["scroll"], () => { scrolls += 1; });
  // Typing changes a property, which observers do not report.
  listen(["input", "change"], () => { changedAt = now(); });
  // What may change what a page shows, but nothing that observers report, such as styles under the mouse.
  // A window hears first, before the page can stop an event, but not what elements have loaded.
  let events = 0;
  const happens = () => { events += 1; };
  listen([
    "animationend", "cancel", "close", "focusin", "focusout", "hashchange", "mouseout", "mouseover", "popstate", "scroll", "scrollend",
    "selectionchange", "toggle", "transitionend",
  ], happens);
  for (const type of ["error", "load"]) document.addEventListener(type, happens, { capture: true, passive: true });

  const isBlank = () => {
    if (!document.body || document.body.innerText.trim()) return false;
    for (const element of document.querySelectorAll(MEDIA)) if (isShown(element)) return false;
    return true;
  };
  // What moves by itself and is nowhere counted. Lazy images begin to load at any time.
  const UNCOUNTED = "audio, video, object, embed, marquee, meta[http-equiv=refresh i], animate, animateMotion, animateTransform, set";
  const NO_CARET = ["a", "button", "summary", "select", ...["button", "checkbox", "radio", "reset", "submit"].map(type => `input[type=${type}]`)]
    .map(each => `${each}:not([contenteditable])`).join();
  const [stateOf, fontsOf, imagesOf, focusOf] = ["readyState", "fonts", "images", "activeElement"].map(name => getter(Document, name));
  const [find, animationsOf] = [method(Document, "querySelector"), method(Document, "getAnimations")];
  const isAtRest = () => {
    for (const root of shadows) if (!root.host.isConnected) shadows.delete(root);
    return stateOf(document) === "complete" && fontsOf(document).status === "loaded" && !find(document, UNCOUNTED) &&
      [...imagesOf(document)].every(each => each.complete) &&
      [...animationsOf(document), ...[...shadows].flatMap(root => root.getAnimations())].every(each => each.playState !== "running");
  };
  // What has the focus may show a caret, unless it is known to have none.
  const hasCaret = () => {
    const focused = focusOf(document);
    return focused !== null && (focused === document.body ? focused.isContentEditable : !matches(focused, NO_CARET));
  };
  const isMoving = () => Reflect.apply(Document.prototype.getAnimations, document, []).some(animation => {
    const timing = animation.effect?.getComputedTiming();
    return animation.playState === "running" && timing && timing.endTime <= MAX_ANIMATION_MS;
  });

  // Where an element can lead, as the browser resolves it. A form's property may be shadowed by one of its fields.
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
  const linked = new Set();
  let collectedAt;
  const collect = (root, own, found, room) => {
    for (const element of root.querySelectorAll(LINKS)) {
      if (--room.elements < 0 || linked.size >= MAX_LINKS) return;
      // The judge put it there (`../attacks.js`), not the site.
      if (drawn.isInserted(element)) continue;
      try {
        for (const url of targets(element)) {
          const address = typeof url === "string" ? url.split("#", 1)[0] : "";
          if (!/^https?:/.test(address) || address.length > MAX_LINK_CHARS || linked.has(address)) continue;
          linked.add(address);
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

  // Only the script in the page's world (`page.js`) knows. If it is not running, there is no answer.
  const ask = name => !dispatchEvent(new CustomEvent(name, { cancelable: true }));

  // What the participant acts on. The judge learns of it at once, by a function of this world, because the document may be
  // gone next. A form, a link or a button in an editing host may have been pasted there; a click on any other text in it
  // places the caret, unless a script of the site makes more of it at once. Typing is an act on the site.
  const [matches, attribute] = [method(Element, "matches"), method(Element, "getAttribute")];
  const fieldsOf = getter(HTMLFormElement, "elements");
  const allIn = { document: method(Document, "querySelectorAll"), shadow: method(DocumentFragment, "querySelectorAll") };
  const ACTIVE = `a, area, button, summary, object, embed, [onclick], input:is([type=submit i], [type=image i], [type=button i]),
    [role=button i], [role=link i], [role^=menuitem i], [role=option i], [role=tab i], [role=switch i]`;
  const CONTROLS_OF_TEXT = "input, label, textarea";
  const MAX_HREF_CHARS = 2000;
  // The events of one act, such as the click on the control of a label, follow each other as fast as this.
  const SAME_ACT_MS = 200;
  // Trusted events that a script causes too, by editing, are an act only this soon after another event of an input.
  const SAME_INPUT_MS = 1000;
  let [disqualifiedAt, inputAt, isFollowing] = [-Infinity, -Infinity, false];
  // The event heard now.
  let hears = null;
  const roots = new WeakSet();
  const hearRest = root => {
    if (roots.has(root)) return;
    roots.add(root);
    for (const name of RESTS) root.addEventListener(name, rest, true);
  };
  const tellJudge = told => globalThis[eventName]?.(JSON.stringify(told));
  const tellPage = (name, detail) => dispatchEvent(new CustomEvent(`${eventName}-${name}`, { detail }));
  // From an act that disqualifies on, in all documents: what runs, as `page.js` knows it, by the number of the act.
  const follow = isOwn => {
    isFollowing = true;
    tellPage("follow", isOwn);
  };
  const tell = (by, more) => {
    if (by !== "site" && !more?.isBrief) disqualifiedAt = now();
    else if (now() - disqualifiedAt < SAME_ACT_MS) return;
    if (by !== "site" && !more?.isBrief) follow(true);
    // Of the site: even.
    acts += (acts % 2 === 0) === (by === "site") ? 2 : 1;
    tellJudge({ by, act: acts, ...more });
    tellAct();
  };
  // Some events do not leave their shadow tree.
  const tellAct = () => {
    if (!isFollowing) return;
    acting = hears;
    for (const root of acting.composedPath()) if (root instanceof ShadowRoot) hearRest(root);
    tellPage("act", acts);
  };
  const listenTo = (name, heard) => addEventListener(`${eventName}-${name}`, event => {
    event.stopImmediatePropagation();
    if (heard(event.detail)) event.preventDefault();
  }, true);
  listenTo("starts", () => isFollowing && follow());
  listenTo("runs", act => tellJudge({ runs: running = act }));
  listenTo("sends", url => tellJudge({ sent: String(url) }));
  listenTo("saves", href => tellJudge({ saved: addressOf(href) }));
  let [due, activeAt, answers, observations] = [null, -Infinity, 0, 0];
  listenTo("next", told => { ({ next: due, activeAt, answers, observations } = told); });
  // In how long the next timer is due, -1 for never, if nothing else can change the page; `null` otherwise.
  const nextIn = () => {
    [due, activeAt] = [null, -Infinity];
    tellPage("still");
    return due === null || isAtRest() ? due : null;
  };
  let asked = 0;
  listenTo("scrolls", () => { asked += 1; });
  listenTo("acting", isActing);
  const isElement = node => {
    try {
      return typeOf(node) === Node.ELEMENT_NODE;
    } catch {
      // A window.
      return false;
    }
  };
  const path = element => {
    const found = [];
    for (let at = element; at; at = around(at)) found.push(at);
    return found;
  };
  // An added field belongs to the form of the site around it.
  const isInserted = element => put.kind !== "field" && drawn.isInserted(element);
  // Of what is in an editor, whether it is in a part that acts.
  const isActive = (element, active) => {
    const found = path(element);
    return found.slice(0, found.findLastIndex((at, place) => place > 0 && isHost(at))).some(each => matches(each, active));
  };
  // Where the link leads that an act saves.
  const addressOf = href => typeof href === "string" && href.length <= MAX_HREF_CHARS ? href.split("#", 1)[0] : undefined;
  const savedBy = element => {
    const link = isElement(element) && path(element).find(each => matches(each, "a[href], area[href]"));
    return link && (hears.altKey || matches(link, "[download]")) ? addressOf(link.href) : undefined;
  };
  const types = (element, saved) => tell(isElement(element) && isInserted(element) ? "inserted" : "site", { saved });
  const activates = (element, active = ACTIVE) => {
    const saved = savedBy(element);
    if (!isElement(element) || isInserted(element) || !isInEditor(element)) types(element, saved);
    else if (isActive(element, active)) tell("editor", { saved });
    else if (matches(element, CONTROLS_OF_TEXT)) tell("site");
    else tell("editor", { isBrief: true });
  };
  const hear = (names, heard) => names.forEach(name => addEventListener(name, event => {
    hears = event;
    heard(event, event.composedPath()[0]);
  }, true));
  const isInput = ({ isTrusted }) => {
    if (isTrusted) inputAt = now();
    return isTrusted;
  };
  hear(["pointerdown", "click", "auxclick"], (event, target) => isInput(event) && activates(target));
  // On a text, Enter makes a new line.
  hear(["keydown"], (event, target) => {
    const active = `${ACTIVE}, input, select`;
    if (isInput(event)) event.key === "Enter" && isElement(target) && isActive(target, active) ? activates(target, active) : types(target);
  });
  // The rest of an act.
  hear(["mousedown", "pointerup", "mouseup", "keypress", "keyup", "dblclick", "contextmenu", "dragstart", "dragend"], event => {
    if (isInput(event) && acts) tellAct();
  });
  // Of scripts that dispatch these events, the server that fills in a field or selects an option acts for the participant.
  const edits = event => {
    const { isTrusted, type } = event, [target] = event.composedPath(), { isDriven } = globalThis.wabe;
    if (!["input", "change", "drop"].includes(type) || (!isTrusted && !isDriven)) return;
    if (isFollowing && (running >= -1 || !(isDriven || now() - inputAt < SAME_INPUT_MS))) return;
    hears = event;
    type === "change" && isElement(target) && matches(target, "select") ? activates(target) : types(target);
  };
  // A form of the site that a script submits is not an act. Fields without a name are not sent.
  hear(["submit"], ({ submitter }, form) => {
    const fields = form instanceof HTMLFormElement ? [...fieldsOf(form)].filter(each => attribute(each, "name")) : [];
    const parts = [form, submitter, ...fields].filter(each => each && isElement(each));
    if (parts.some(isInserted)) tell("inserted");
    else if (parts.some(isInEditor)) tell("editor");
  });
  // The names of tools that forms in an editor declare.
  const editedTools = (found = allIn.document(document, "*")) => [...found].flatMap(element => [
    ...matches(element, "form[toolname]") && isInEditor(element) ? [attribute(element, "toolname")] : [],
    ...shadowOf(element) ? editedTools(allIn.shadow(shadowOf(element), "*")) : [],
  ]);

  globalThis.wabe = {
    // Whether the server changes an element now.
    isDriven: false,
    drawn,
    editedTools,
    follow,
    // In milliseconds of page time. All but the first three are only determined if the page is otherwise quiet; `blank`
    // and `unfinished` (it says that it is loading, for however long) also if its server may write into it at any time
    // (`hasServer`). `passing`: for how long the page has shown nothing new but a message with a control, if all that is
    // due leaves a person time to use it; `null` otherwise.
    state(quietMs, hasServer) {
      const records = observer.takeRecords();
      if (records.length) changed(records);
      look();
      const next = nextIn();
      const quiet = now() - Math.max(changedAt, activeAt);
      const isQuiet = quiet >= quietMs;
      const loading = isQuiet || hasServer || staying.length || next !== null ? wabeLoading.state(now()) : {};
      const timer = ask(eventName);
      const restQuiet = now() - restChangedAt;
      staying = messages();
      const isPassing = restQuiet >= quietMs && staying.some(each => timer || wabeVanished.isLive(each)) && !ask(`${eventName}-short`);
      return {
        quiet,
        next,
        changedAt,
        answers,
        happened: events + observations,
        caret: hasCaret(),
        scrolls,
        asked,
        timer,
        worker: ask(`${eventName}-worker`),
        active: ask(`${eventName}-active`),
        idle: ask(`${eventName}-idle`),
        busy: Boolean(loading.isBusy),
        unfinished: Boolean(loading.isShown),
        moving: isQuiet && isMoving(),
        blank: hasServer && window === top && isBlank(),
        passing: isPassing ? restQuiet : null,
      };
    },
    next: nextIn,
    // Two frames, and every task that was queued before, such as an event that the browser fires: frames are drawn also while
    // the page's clock, and with it its tasks, stand still.
    frames: async () => {
      const { port1, port2 } = new MessageChannel();
      const tasks = new Promise(done => { port1.onmessage = done; });
      port2.postMessage(null);
      await Promise.all([tasks, new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))]);
      port1.close();
    },
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
      const [before, toldBefore] = [shown, told];
      shown = document.body ? packed(document.body.innerText) : "";
      told = packed(wabeVanished.messages(document).filter(isShown).map(each => each.innerText).join(" "));
      // A message's text may also be the text of something else on the page.
      const isStill = ({ text, isLive }) => (isLive ? [toldBefore, told] : [before, shown]).some(each => each.includes(packed(text)));
      const isReadable = ({ text }) => !wabeLoading.isText(text) && !TEMPLATE.test(text);
      const found = shown.length > MAX_SHOWN ? [] : [...gone.values()].filter(each => isReadable(each) && !isStill(each));
      const passing = messages().length > 0;
      [staying, asked] = [[], 0];
      gone = new Map();
      watched = new Map();
      replaced = new WeakMap();
      [descriptions, described, describedMessages, isObserved] = [0, 0, 0, true];
      known = new WeakSet([...Reflect.apply(Document.prototype.querySelectorAll, document, [USABLE])].slice(0, MAX_KNOWN).filter(isShown));
      return {
        vanished: found.filter(({ text }) => !found.some(other => other.text !== text && other.text.includes(text)))
          .map(({ text, at, stood_ms, stood }) => ({ text, at, stood_ms, stood })),
        passing,
        document: window === top
          ? { type: document.contentType, has_body: document.body !== null, is_loading: document.readyState === "loading" }
          : null,
      };
    },
  };
  if (globalThis.wabeFollows) follow();
}
