// Runs in every document whose clock does not start at this machine's time (page time only), in the page's world. A
// new tab runs its first scripts before its clock is set (`target.cjs`); until then, this shows the time to which it
// will be set.
(clock, offset) => {
  const [RealDate, realNow, { construct }] = [Date, Date.now, Reflect];
  // The clock has not been set yet if it is closer to this machine's time than to the time to be set. This requires the
  // two to be further apart than an attempt takes in page time.
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
