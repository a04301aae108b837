"use strict";

const delay = ms => new Promise(done => setTimeout(done, ms));
// What comes of a promise within a time limit; `undefined` if nothing does, or if it fails.
const soon = (promise, ms) => {
  let timer;
  const limit = new Promise(done => { timer = setTimeout(done, ms); });
  return Promise.race([promise.catch(() => {}), limit]).finally(() => clearTimeout(timer));
};

module.exports = { delay, soon };
