// Hides what the browser does not draw from what reads documents in this world: Playwright's snapshots, in which elements
// inside `content-visibility: hidden` and `hidden=until-found` are left out, but the text directly inside is not. The content of
// a film or a sound is only for browsers that cannot play it. No page has access to this world.
() => {
  const { getComputedStyle } = globalThis;
  const { get, ...descriptor } = Object.getOwnPropertyDescriptor(Node.prototype, "firstChild");
  // The property has no effect on these.
  const UNAFFECTED = /^(?:contents|inline|none|ruby.*|(?:inline-)?table|table-(?:caption|row|(?:row|header|footer)-group))$/;
  const isSkipped = element => {
    if (element instanceof HTMLMediaElement) return true;
    const { contentVisibility, display } = getComputedStyle(element);
    return contentVisibility === "hidden" && !UNAFFECTED.test(display);
  };
  const isHidden = node => node instanceof Element ? isSkipped(node) : node instanceof ShadowRoot && isSkipped(node.host);
  Object.defineProperty(Node.prototype, "firstChild", { ...descriptor, get() {
    const first = get.call(this);
    return first && isHidden(this) ? null : first;
  } });
  globalThis.getComputedStyle = (element, pseudo) => {
    const style = getComputedStyle(element, pseudo);
    if (!pseudo || style.content === "none" || style.content === "normal" || !isSkipped(element)) return style;
    return new Proxy(style, { get: (target, name) => name === "content" ? "none" : Reflect.get(target, name, target) });
  };
}
