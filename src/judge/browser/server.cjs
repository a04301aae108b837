// Starts Chromium first and then, in the same process, Playwright's MCP server on top of it:
//
//     node server.cjs CLI mcp … --config FILE
//
// CLI is that of Playwright itself, or of the package @playwright/mcp, which is the same server in another version.
//
// A server that launches the browser itself ends it with `browser_close`. On top of a running one, `browser_close` only ends
// the browser context, and the next call opens a new one, so that a task costs a context instead of a process.

const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");

const [cli, ...args] = process.argv.slice(2);
const { launchOptions } = JSON.parse(fs.readFileSync(args[args.indexOf("--config") + 1], "utf8")).browser;
const isPlaywright = fs.existsSync(path.join(path.dirname(cli), "lib", "coreBundle.js"));
const { chromium } = isPlaywright ? require(path.dirname(cli)) : createRequire(cli)("playwright-core");
// The package's program is the server, without a command of its own.
if (!isPlaywright) args.shift();

// The socket's path holds 128 random bits: nobody else on this machine finds it.
chromium.launchServer({ ...launchOptions, host: "127.0.0.1", handleSIGINT: false, handleSIGTERM: false }).then(
  browser => {
    process.argv = [process.argv[0], cli, ...args, "--endpoint", browser.wsEndpoint()];
    require(cli);
  },
  error => {
    // Only the cause and Chromium's error output: the rest is its long command line and its clean-up.
    const [cause, ...log] = error.message.split("\n");
    console.error([cause, ...log.filter(line => /\[err\]|did exit/.test(line))].join("\n"));
    process.exit(1);
  }
);
