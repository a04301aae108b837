// The source of Playwright's functions for roles, names and texts, which it runs in every page that it takes a snapshot
// of. Read from the server that this runs in, so that both always compute the same.

"use strict";
const fs = require("fs");
const vm = require("vm");

const [BUNDLE, EXPORTS] = ["coreBundle.js", "module.exports = __toCommonJS(injectedScript_exports)"];
const OPTIONS = {
  isUnderTest: false, sdkLanguage: "javascript", frameSeq: 0, testIdAttributeName: "data-testid", stableRafCount: 1,
  browserName: "chromium", shouldPrependErrorPrefix: false, isUtilityWorld: true, customEngines: [],
};

// An expression for a function that returns Playwright's functions, which are set up when it is first called; `null` if the
// server is a version whose source lies elsewhere.
const injected = () => {
  const file = Object.keys(require.cache).find(each => each.endsWith(BUNDLE));
  const bundle = file ? fs.readFileSync(file, "utf8") : "";
  const at = bundle.indexOf(EXPORTS);
  if (at < 0) return null;
  const [, literal] = /^\s*\w+ = ('.*');$/.exec(bundle.slice(bundle.lastIndexOf("\n", at) + 1, bundle.indexOf("\n", at))) ?? [];
  if (!literal) return null;
  const source = vm.runInNewContext(literal);
  const made = `new (module.exports.InjectedScript())(globalThis, ${JSON.stringify(OPTIONS)})`;
  return `(() => { let made; return () => made ??= (() => { const module = {}; ${source}\nreturn ${made}; })(); })()`;
};

module.exports = { injected };
