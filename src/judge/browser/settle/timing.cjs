"use strict";

const delay = ms => new Promise(done => setTimeout(done, ms));
// The result of a promise within a time limit; `undefined` if there is none in time, or if it fails.
const soon = (promise, ms) => {
  let timer;
  const limit = new Promise(done => { timer = setTimeout(done, ms); });
  return Promise.race([promise.catch(() => {}), limit]).finally(() => clearTimeout(timer));
};

module.exports = { delay, soon };
