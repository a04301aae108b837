// Where a person operates an element. Two users: the snapshot's world, where `describe` makes Playwright give a reference
// and a box to controls drawn elsewhere; and the page's world, where `decide` finds the point of a click
// (`settle/server_tab.cjs`, `points.py`).
//
// Playwright gives no reference to what has no size, is not rendered or takes no pointer events. Yet a radio button hidden
// in that way is operated through its label, a switch through what is drawn around it, and an area through its image. Nor does
// it to pictures without a text, and to words in a line, although people click on them: these react if they listen to clicks
// themselves, or have the pointer of a link, which their parent does not have.
() => {
  const MAX_LEVELS = 4;
  // What is higher is not the drawing of one control.
  const MAX_HEIGHT = 120;
  const MAX_TOLD = 60;
  const GRID = [0.5, 0.3, 0.7, 0.1, 0.9];
  // As long as transitions usually take: what moves for longer does not stop.
  const MAX_MOVING = 500;
  // Of inputs for which a read-only state means nothing.
  const NOT_TYPED = new Set(["button", "checkbox", "color", "file", "image", "radio", "range", "reset", "submit"]);
  const NOT_RENDERED = new Set(["checkbox", "file", "radio"]);
  const SWITCHES = new Set(["checkbox", "menuitemcheckbox", "menuitemradio", "radio", "switch"]);
  const OPERABLE = "a[href], area[href], button, input, label, option, select, summary, textarea, [role=button], [role=checkbox], " +
    "[role=link], [role=menuitem], [role=option], [role=radio], [role=switch], [role=tab], [contenteditable]";
  // What a container has that only waits for the clicks on what is in it.
  const PARTS = "*:not(b, em, i, img, picture, picture *, span, strong, svg, svg *)";
  const NO_ROLE = /^\s*(?:none|presentation)\s*$/;
  const LISTENING = "[onclick], [onmousedown], [onmouseup], [onpointerdown], [onpointerup]";
  // Kept, because the snapshot's world replaces them (`describe`).
  const { getComputedStyle, performance, requestAnimationFrame } = globalThis;
  const { getBoundingClientRect, checkVisibility, getAttribute, closest, matches, querySelector } = Element.prototype;
  const childNodesOf = Object.getOwnPropertyDescriptor(Node.prototype, "childNodes");
  const boxOf = element => Reflect.apply(getBoundingClientRect, element, []);
  const isSized = ({ width, height }) => width > 0 && height > 0;
  const isRendered = element => Reflect.apply(checkVisibility, element, []) && getComputedStyle(element).visibility === "visible";
  const takesPointer = element => getComputedStyle(element).pointerEvents !== "none";
  const isReachable = element => isRendered(element) && isSized(boxOf(element)) && takesPointer(element);
  const parentOf = element => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null;
  // The element and everything around it, shadow hosts included, innermost first.
  const outwards = element => {
    const found = [];
    for (let at = element; at; at = parentOf(at)) found.push(at);
    return found;
  };
  const hitAt = (x, y) => {
    let hit = document.elementFromPoint(x, y);
    for (let inner; (inner = hit?.shadowRoot?.elementFromPoint(x, y)) && inner !== hit;) hit = inner;
    return hit;
  };
  const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];
  const isField = element => (element instanceof HTMLInputElement && element.type !== "hidden") ||
    element instanceof HTMLSelectElement || element instanceof HTMLTextAreaElement;
  const isControl = element => isField(element) || SWITCHES.has(element.getAttribute("role")?.trim());
  const labelsOf = element => isField(element) ? [...element.labels ?? []] : [];

  // Whether an element is a control or only a label of it. Labels of nothing operate nothing.
  const isOf = (control, element) => element === control || (element instanceof HTMLLabelElement && [control, null].includes(element.control));
  // The nearest element around a control that takes its clicks and contains `hit`, if given: one about as high as
  // the control would be, with no other control in it.
  const drawingAround = (control, hit = control) => {
    let at = parentOf(control);
    for (let level = 0; at && level < MAX_LEVELS; level++, at = parentOf(at)) {
      if (!isReachable(at) || !at.contains(hit)) continue;
      const others = [...at.querySelectorAll(OPERABLE)].some(each => !isOf(control, each) && !each.contains(control));
      return others || boxOf(at).height > MAX_HEIGHT ? null : at;
    }
    return null;
  };
  // What is drawn instead of a control that takes no clicks itself; `null` if nothing is.
  const standIn = control => {
    if (control.matches(":disabled, [aria-disabled=true], [aria-hidden=true] *, [aria-hidden=true]")) return null;
    const label = labelsOf(control).find(isReachable);
    if (label && (isRendered(control) || NOT_RENDERED.has(control.type))) return label;
    return isRendered(control) ? drawingAround(control) : null;
  };

  const imageOf = area => {
    const map = area.closest("map");
    const names = map ? [map.name, map.id].filter(Boolean).map(name => `#${name}`) : [];
    return [...document.querySelectorAll("img[usemap], object[usemap]")].find(each => names.includes(each.useMap) && isReachable(each));
  };
  const areaBox = area => {
    const image = area.hasAttribute("href") && imageOf(area);
    if (!image) return null;
    const [outer, style] = [boxOf(image), getComputedStyle(image)];
    const [left, top] = ["Left", "Top"].map(side => parseFloat(style[`border${side}Width`]) + parseFloat(style[`padding${side}`]));
    const at = area.coords.split(/[\s,;]+/).map(Number);
    if (area.shape === "default") return outer;
    const [x, y, z] = at;
    const xs = area.shape === "circle" ? [x - z, x + z] : at.filter((_, place) => place % 2 === 0);
    const ys = area.shape === "circle" ? [y - z, y + z] : at.filter((_, place) => place % 2 === 1);
    const [x1, y1, x2, y2] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    const box = new DOMRect(outer.x + left + x1, outer.y + top + y1, x2 - x1, y2 - y1);
    return Number.isFinite(box.width + box.height) ? box : null;
  };

  // Where an element is drawn that takes no clicks itself; `null` for all others, and for what nobody can operate.
  const drawnElsewhere = element => {
    if (element instanceof HTMLAreaElement) return areaBox(element);
    if (!isControl(element) || isReachable(element)) return null;
    const found = standIn(element);
    if (!found) return null;
    const own = boxOf(element);
    return isRendered(element) && isSized(own) ? own : boxOf(found);
  };

  // Whether people click on an element other than a control, and that lies in none and wraps none. Those that listen to clicks
  // by scripts are told (`settle/target.cjs`).
  const listens = element => Reflect.apply(matches, element, [LISTENING]) || Boolean(globalThis.wabeListening?.has(element));
  const hasPointer = element => getComputedStyle(element).cursor === "pointer";
  const reacts = element => {
    const parent = parentOf(element);
    if (!parent || element === document.body || Reflect.apply(closest, element, [OPERABLE])) return false;
    if (hasPointer(element)) return !hasPointer(parent);
    return listens(element) && !hasPointer(parent) && !Reflect.apply(querySelector, element, [PARTS]);
  };

  // Makes what draws snapshots in this world see such elements where they are operated, and those that react.
  const describe = () => {
    const seen = element => {
      try {
        return drawnElsewhere(element);
      } catch {
        // The page shadows what is read here (`<input name=closest>`).
        return null;
      }
    };
    globalThis.getComputedStyle = (element, pseudo) => {
      const style = getComputedStyle(element, pseudo);
      if (pseudo || !(element instanceof Element)) return style;
      if (style.cursor !== "pointer" && listens(element) && reacts(element))
        return new Proxy(style, { get: (target, name) => name === "cursor" ? "pointer" : Reflect.get(target, name, target) });
      if (!(element instanceof HTMLElement) || !seen(element)) return style;
      const shown = { pointerEvents: "auto", visibility: "visible", display: style.display === "none" ? "inline-block" : style.display };
      return new Proxy(style, { get: (target, name) => shown[name] ?? Reflect.get(target, name) });
    };
    // A picture said to be none.
    Element.prototype.getAttribute = function (name) {
      const value = getAttribute.call(this, name);
      if (value === null || (name !== "alt" && name !== "role")) return value;
      return (name === "alt" ? value === "" : NO_ROLE.test(value)) && reacts(this) ? null : value;
    };
    // Playwright takes an element in a line whose only child is a text for a part of the text around it.
    Object.defineProperty(Node.prototype, "childNodes", { ...childNodesOf, get() {
      const nodes = childNodesOf.get.call(this);
      return nodes.length === 1 && this instanceof HTMLElement && reacts(this) ? [nodes[0], nodes[0]] : nodes;
    } });
    Element.prototype.checkVisibility = function (...options) {
      return Reflect.apply(checkVisibility, this, options) || (this instanceof HTMLElement && seen(this) !== null);
    };
    Element.prototype.getBoundingClientRect = function () {
      return (this instanceof HTMLElement && seen(this)) || boxOf(this);
    };
  };

  // A point of a box whose hit is accepted, the middle first.
  const pointIn = (box, accepts) => {
    for (const down of GRID)
      for (const across of GRID) {
        const [x, y] = [box.x + box.width * across, box.y + box.height * down];
        const hit = hitAt(x, y);
        if (hit && accepts(outwards(hit))) return { how: "at", x, y };
      }
    return null;
  };
  // Whether a click on these, innermost first, activates `outer` and nothing inside it.
  const activates = (hits, outer) => {
    const inner = hits.slice(0, Math.max(0, hits.indexOf(outer)));
    return hits.includes(outer) && !inner.some(each => each.matches(OPERABLE));
  };
  const pointOn = (element, control) => {
    const accepts = hits => hits.includes(control) || activates(hits, element);
    for (const box of element.getClientRects()) {
      const point = isSized(box) && pointIn(box, accepts);
      if (point) return point;
    }
    return null;
  };
  // The point at which a control is operated that something else covers, or elsewhere.
  const pointFor = (control, hits, [x, y]) => {
    const labels = labelsOf(control);
    const front = labels.find(each => hits.includes(each));
    if (front && activates(hits, front)) return { how: "at", x, y };
    if (control.type === "range") return { how: "focus" };
    for (const label of labels) {
      if (isReachable(label)) label.scrollIntoViewIfNeeded();
      const point = isReachable(label) && pointOn(label, control);
      if (point) return point;
    }
    // Its own drawing may be in front of it.
    if (hits.length && drawingAround(control, hits[0])) return { how: "at", x, y };
    const around = isReachable(control) ? null : drawingAround(control);
    return around && pointOn(around, control);
  };
  // Whether a transparent part of a link or button lies over the element, for example over a whole card: it has no text
  // there, and belongs to the same box. A person clicks on the text that shows through.
  const isStretchedOver = (hits, element, [x, y]) => {
    const [hit] = hits;
    const control = hits.find(each => each.matches("a[href], button, label, [role=link], [role=button]"));
    if (!control || control.contains(element)) return false;
    const isOwnBox = [...hit.getClientRects()].some(box => x >= box.left && x < box.right && y >= box.top && y < box.bottom);
    const box = isOwnBox ? hit.offsetParent : getComputedStyle(hit).position === "static" ? hit.offsetParent : hit;
    return Boolean(box?.contains(element)) && !(isOwnBox && (hit.textContent.trim() || hit.querySelector("img, svg")));
  };
  // An animation that goes on for long, of the element or of what is around it.
  const isAnimated = element => document.getAnimations().some(({ playState, effect, currentTime }) => playState === "running" &&
    effect?.target?.contains(element) && effect.getComputedTiming().endTime - currentTime > MAX_MOVING);
  const isSame = (before, now) => ["x", "y", "width", "height"].every(side => before[side] === now[side]);
  // At the turning point of a movement, two frames may be equal.
  const isRestless = async element => {
    const began = performance.now();
    for (let before = boxOf(element), equal = 0; performance.now() - began < MAX_MOVING;) {
      await new Promise(done => requestAnimationFrame(done));
      const now = boxOf(element);
      equal = isSame(before, now) ? equal + 1 : 0;
      if (equal === 2) return false;
      before = now;
    }
    return true;
  };
  const show = element => (isRendered(element) ? element : standIn(element) ?? element).scrollIntoViewIfNeeded();
  // Where an element is once it is in view.
  const shown = element => {
    show(element);
    const [x, y] = middle(drawnElsewhere(element) ?? boxOf(element));
    return { x, y };
  };
  // Where it can be clicked now, if nothing covers it: in its middle, or at a point.
  const isOn = (element, at) => {
    const [x, y] = at ?? middle(boxOf(element));
    const hit = hitAt(x, y);
    return hit !== null && outwards(hit).includes(element) ? { how: "at", x, y } : null;
  };

  const told = element => {
    const text = element.getAttribute("aria-label") || element.querySelector("h1, h2, h3, h4, h5, h6")?.textContent || element.textContent;
    const words = text.replace(/\s+/g, " ").trim();
    const role = element.getAttribute("role") || element.localName;
    return words ? `${role} ${JSON.stringify(words.length > MAX_TOLD ? `${words.slice(0, MAX_TOLD)}…` : words)}` : role;
  };
  // Why a person cannot operate an element at all; `null` if possible.
  const barrier = element => {
    if (outwards(element).some(each => each.hasAttribute("inert"))) {
      const modal = [...document.querySelectorAll("dialog[open], [role=dialog], [role=alertdialog], [aria-modal=true]")].find(isReachable);
      return `it is inert${modal && !modal.contains(element) ? `, behind ${told(modal)}` : ""}`;
    }
    if (element.matches(":disabled, [aria-disabled=true]")) return "it is disabled";
    return element.matches(":read-only") && element.matches("input, textarea") && !NOT_TYPED.has(element.type) ? "it is read-only" : null;
  };
  // Why it cannot be clicked where it is in view.
  const obstacle = element => {
    const barred = barrier(element), [x, y] = middle(boxOf(element));
    if (barred && barred !== "it is read-only") return barred;
    const hit = hitAt(x, y), hits = hit ? outwards(hit) : [];
    if (!hit || hits.includes(element)) return null;
    const covering = hits.filter(each => !each.contains(element));
    return covering.length ? `${told(covering.find(each => each.matches("dialog, [role=dialog], [role=alertdialog], [aria-modal=true]")) ?? covering.at(-1))} covers it` : null;
  };

  // Where to click an element that is not clicked as usual: `at` a point of its document's viewport, by giving it the `focus`,
  // or as one that is `moving`. In a page that `isStill`, nothing moves, so that what can be clicked is `there`.
  const elsewhere = async (element, isStill) => {
    if (element instanceof HTMLAreaElement) {
      imageOf(element)?.scrollIntoViewIfNeeded();
      const box = areaBox(element);
      return box && pointIn(box, hits => hits[0] === element);
    }
    const before = boxOf(element);
    show(element);
    const box = boxOf(element), centre = middle(box);
    const hit = isSized(box) ? hitAt(...centre) : null;
    const hits = hit ? outwards(hit) : [];
    // What the page does when it is scrolled, is waited for.
    if (hits.includes(element) && isStill) return isSame(before, box) && !obstacle(element) ? { how: "there", at: centre } : null;
    if (hits.includes(element)) return isAnimated(element) || await isRestless(element) ? { how: "moving" } : null;
    if (isControl(element)) return pointFor(element, hits, centre);
    if (!hit || element.matches(OPERABLE) || !isStretchedOver(hits, element, centre)) return null;
    return { how: "at", x: centre[0], y: centre[1] };
  };
  const decide = async (element, isStill) => await elsewhere(element, isStill) ?? { how: "usual", why: obstacle(element) };
  return { barrier, boxOf: element => drawnElsewhere(element) ?? boxOf(element), decide, describe, isOn, obstacle, shown };
}
