// Runs in every document whose clock begins elsewhere than this machine's (page time only), in the page's own world. A
// new tab runs its first scripts before its clock is set (`target.cjs`): until then, this shows what it will be set to.
(clock, offset) => {
  const [RealDate, realNow, { construct }] = [Date, Date.now, Reflect];
  // Nearer to the machine's clock than to the one that is to be set. For that, they must be further apart than an attempt
  // takes in page time.
  if (Math.abs(offset) < 7200000) return;
  const isUnset = at => Math.abs(at - clock) > Math.abs(offset) / 2;
  if (!isUnset(realNow())) return;
  const now = () => {
    const at = realNow();
    return isUnset(at) ? at + offset : at;
  };
  RealDate.now = now;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, values, made) => construct(target, values.length ? values : [now()], made),
    apply: () => new RealDate(now()).toString(),
  });
  RealDate.prototype.constructor = globalThis.Date;
}
