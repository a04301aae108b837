// Tells whether a document shows that it is loading, as far as a person can see it. Runs in the recorder's isolated world.
// An indicator that has been there for long is none: a heading or a column can be called "Loading…". One that moves, as a
// spinner does, is believed longer.
() => {
  if (globalThis.wabeLoading) return;
  // In milliseconds of page time.
  const STOOD = 2000;
  const MOVED = 8000;
  const MAX_KNOWN = 200;
  const TEXT = /^((loading|please wait)\b|running ?(\.{3}|…)).{0,40}$/i;
  const BUSY = '[aria-busy="true"], progress:not([value]), [role="progressbar"]:not([aria-valuenow])';
  const WORDS = ["Loading", "Please wait", "Running"];
  const NAMED = WORDS.flatMap(word => ["alt", "aria-label"].map(key => `[${key}^="${word}" i]`)).join(", ");
  const STARTS = [...WORDS, "loading"].map(word => `starts-with(normalize-space(), "${word}")`).join(" or ");
  const TEXTS = `//body//text()[string-length() < 200 and (${STARTS})]`;
  const { evaluate, querySelectorAll } = Document.prototype;
  const select = selector => Reflect.apply(querySelectorAll, document, [selector]);
  // Elements and texts that say that something is loading, with when they were first seen.
  const known = new Map();

  const isSeen = element => {
    if (!element.isConnected || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    // A region being filled may still be empty.
    if (element.getAttribute("aria-busy") === "true") return true;
    const { width, height, right, bottom } = element.getBoundingClientRect();
    if (!width || !height || right + scrollX <= 0 || bottom + scrollY <= 0) return false;
    for (let at = element.parentElement; at; at = at.parentElement)
      if ((!at.clientWidth || !at.clientHeight) && /hidden|clip/.test(getComputedStyle(at).overflow)) return false;
    return true;
  };
  const isIndicator = node => {
    if (node.nodeType === Node.TEXT_NODE) return Boolean(node.parentElement) && TEXT.test(node.data.trim()) && isSeen(node.parentElement);
    return (node.matches(BUSY) || TEXT.test((node.getAttribute("alt") ?? node.getAttribute("aria-label") ?? "").trim())) && isSeen(node);
  };
  const indicators = function* () {
    for (const element of select(`${BUSY}, ${NAMED}`)) if (isIndicator(element)) yield element;
    const texts = Reflect.apply(evaluate, document, [TEXTS, document, null, XPathResult.UNORDERED_NODE_SNAPSHOT_TYPE, null]);
    for (let at = 0; at < texts.snapshotLength; at++) if (isIndicator(texts.snapshotItem(at))) yield texts.snapshotItem(at);
  };
  // Whether something moves in it or beside it.
  const isMoving = node => {
    const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
    const beside = [element, element.previousElementSibling, element.nextElementSibling].filter(Boolean);
    const animations = beside.flatMap(each => each.getAnimations({ subtree: true }));
    if (element.parentElement) animations.push(...element.parentElement.getAnimations());
    return animations.some(each => each.playState === "running");
  };
  globalThis.wabeLoading = {
    isText: text => TEXT.test(text),
    // An indicator hidden meanwhile is a new one when it is shown again.
    changed() {
      for (const node of known.keys()) if (!isIndicator(node)) known.delete(node);
    },
    // `isShown`: there is an indicator; `isBusy`: there is one that has not been there for long.
    state(now) {
      let [isShown, isBusy] = [false, false];
      for (const node of indicators()) {
        isShown = true;
        if (!known.has(node) && known.size < MAX_KNOWN) known.set(node, now);
        const stood = now - (known.get(node) ?? -Infinity);
        isBusy ||= stood < STOOD || (stood < MOVED && isMoving(node));
      }
      return { isShown, isBusy };
    },
  };
}
