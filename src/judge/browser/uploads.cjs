// Keeps the file chooser that a page has opened until files are chosen or something else is done. Loaded by Playwright's MCP
// server into its own process (option `browser.initPage`). Used through `uploads.py`.
//
// A page learns of the end of its chooser as from a person: by `change`, or by `cancel`. Where a task has no files, every
// chooser is cancelled at once.

"use strict";
const path = require("path");
const { giving } = require("./contents.cjs");

const KEY = Symbol.for("wabe.uploads");

const cancel = chooser => chooser.element().evaluate(input => {
  setTimeout(() => input.dispatchEvent(new Event("cancel", { bubbles: true })));
}).catch(() => {});

class Choosers {
  constructor() {
    this.areKept = false;
    this.open = null;
  }

  // Called by the server's tab, which takes an open chooser for a reason to refuse all other tools.
  opened(page, tab, chooser) {
    this.dismiss();
    if (!this.areKept) {
      void cancel(chooser);
      return;
    }
    this.open = { page, tab, chooser };
    const state = tab.modalStates().find(each => each.fileChooser === chooser);
    if (state) tab.clearModalState(state);
  }

  get isOpen() {
    return this.open !== null && !this.open.page.isClosed();
  }

  dismiss() {
    if (this.isOpen) void cancel(this.open.chooser);
    this.open = null;
  }

  async choose(paths, limit) {
    if (!this.isOpen) throw new Error("No file chooser is open: click the button that opens one first");
    const { tab, chooser } = this.open;
    if (paths.length > 1 && !chooser.isMultiple()) throw new Error("The open file chooser takes one file only");
    this.open = null;
    await giving(chooser.element(), tab, { shown: paths.map(each => path.basename(each)) }, async () => {
      try {
        await chooser.setFiles(paths, { timeout: limit });
      } catch (error) {
        // A page may have replaced the input meanwhile. A person's chooser still belongs to the first one.
        if (!await this.chooseDetached(chooser, paths)) throw error;
      }
    });
  }

  // For an input no longer in its document: its listeners still hear of the files.
  async chooseDetached(chooser, paths) {
    const input = chooser.element();
    const isDetached = await input.evaluate(element => !element.isConnected).catch(() => false);
    if (!isDetached) return false;
    const holder = await input.evaluateHandle(element => {
      const root = document.createElement("div");
      root.hidden = true;
      root.append(element);
      document.documentElement.append(root);
      return root;
    });
    try {
      await chooser.setFiles(paths);
      return true;
    } finally {
      await holder.evaluate(root => root.remove()).catch(() => {});
    }
  }
}

exports.default = async ({ page }) => {
  page.context()[KEY] ??= new Choosers();
};
