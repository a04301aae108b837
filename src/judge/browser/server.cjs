// Starts Chromium first, or connects to a hosted one, and then, in the same process, Playwright's MCP server on top of it:
//
//     node server.cjs CLI mcp … --config FILE
//
// CLI is Playwright's, or of the package @playwright/mcp, which is the same server in another version.
//
// A server that launches the browser itself ends it with `browser_close`. On top of a running one, `browser_close` only ends
// the browser context, and the next call opens a new one, so that a task costs a context instead of a process.

const fs = require("fs");
const net = require("net");
const path = require("path");
const tls = require("tls");
const { createRequire } = require("module");

const CONNECT_LIMIT = 30000;
const [cli, ...args] = process.argv.slice(2);
const { launchOptions, cdpEndpoint } = JSON.parse(fs.readFileSync(args[args.indexOf("--config") + 1], "utf8")).browser;
const isPlaywright = fs.existsSync(path.join(path.dirname(cli), "lib", "coreBundle.js"));
const { chromium } = isPlaywright ? require(path.dirname(cli)) : createRequire(cli)("playwright-core");
// The package's program is the server, without a separate command.
if (!isPlaywright) args.shift();

// Through a proxy, the client for the judge's requests gives no name of a site at an address, and Node would then compare
// the certificate with "localhost".
const connectTls = tls.connect;
tls.connect = (options, ...rest) => {
  const isNameless = options?.socket && !options.host && !options.servername && net.isIP(options.hostname ?? "");
  return connectTls(isNameless ? { ...options, host: options.hostname } : options, ...rest);
};

const serve = (...more) => {
  process.argv = [process.argv[0], cli, ...args, ...more];
  require(cli);
};

// All reported of a failed connection: Playwright's messages repeat the address, which may contain a token.
const CAUSES = [
  "ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "CERT_", "SELF_SIGNED", "UNABLE_TO_VERIFY",
];
const causeOf = ({ message }) => {
  const text = message.replace(/\b(?:wss?|https?):\/\/\S+/g, "");
  const status = /\b(?:status|error:|response:) *([45]\d\d)\b/i.exec(text)?.[1];
  const found = CAUSES.find(cause => text.includes(cause));
  if (found || status) return found ?? `status ${status}`;
  return /timeout/i.test(text) ? "no answer in time" : "it does not speak the DevTools protocol";
};

// A hosted browser: connected to once, by the server's option for it. The server would connect again for each context, and
// after a lost connection it would go on in an empty browser. Here it ends instead, and the judge reads why (`hosted.py`).
const connect = async () => {
  const file = path.join(args[args.indexOf("--output-dir") + 1], "hosted.json");
  const note = state => fs.writeFileSync(file, JSON.stringify(state));
  let browser;
  try {
    browser = await chromium.connectOverCDP(cdpEndpoint, { noDefaults: true, timeout: CONNECT_LIMIT });
  } catch (error) {
    note({ state: "refused", cause: causeOf(error) });
    process.exit(1);
  }
  note({ state: "connected", version: browser.version().slice(0, 100) });
  browser.on("disconnected", () => {
    note({ state: "lost" });
    process.exit(1);
  });
  let bound;
  const bind = browser.bind?.bind(browser);
  Object.assign(browser, { close: async () => {}, bind: (...options) => bound ??= bind(...options) });
  // The server adds a listener for each context.
  browser.setMaxListeners?.(0);
  chromium.connectOverCDP = async () => browser;
  serve();
};

// The socket's path holds 128 random bits: nobody else on this machine finds it.
const launch = () => chromium.launchServer({ ...launchOptions, host: "127.0.0.1", handleSIGINT: false, handleSIGTERM: false }).then(
  browser => {
    // For `navigations.cjs`, which records how it ended.
    globalThis[Symbol.for("wabe.browser")] = browser.process();
    serve("--endpoint", browser.wsEndpoint());
  },
  error => {
    // Only the cause and Chromium's error output: the rest is its long command line and its clean-up.
    const [cause, ...log] = error.message.split("\n");
    console.error([cause, ...log.filter(line => /\[err\]|did exit/.test(line))].join("\n"));
    process.exit(1);
  }
);

void (cdpEndpoint ? connect() : launch());
