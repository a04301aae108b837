// Starts Chromium first and then, in the same process, Playwright's MCP server on top of it:
//
//     node server.cjs CLI mcp … --config FILE
//
// A server that launches the browser itself ends it with `browser_close`. On top of a running one, `browser_close` ends the
// browser context only, and the next call opens a new one: the cost of a context for each task instead of a process.

const fs = require("fs");
const path = require("path");

const [cli, ...args] = process.argv.slice(2);
const { launchOptions } = JSON.parse(fs.readFileSync(args[args.indexOf("--config") + 1], "utf8")).browser;
const { chromium } = require(path.dirname(cli));

// The socket's path holds 128 random bits: nobody else on this machine finds it.
chromium.launchServer({ ...launchOptions, host: "127.0.0.1", handleSIGINT: false, handleSIGTERM: false }).then(
  browser => {
    process.argv = [process.argv[0], cli, ...args, "--endpoint", browser.wsEndpoint()];
    require(cli);
  },
  error => {
    // The rest is Chromium's long command line and the steps of its clean-up.
    const [cause, ...log] = error.message.split("\n");
    console.error([cause, ...log.filter(line => /\[err\]|did exit/.test(line))].join("\n"));
    process.exit(1);
  }
);
