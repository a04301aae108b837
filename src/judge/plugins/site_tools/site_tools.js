// The tools that the top document registers (WebMCP): lists or calls them. Runs in the MCP server's process; `site_tools.py`
// writes the arguments and reads the result.
//
// The judge's isolated world asks the browser, so no script of the page sees or changes the question, and only the
// beginning of what a page wrote leaves its process. A call finds the very tools that were listed: they are kept in that
// world, which ends with its document.
async (page, { call, limits }) => {
  const settle = page.context()[Symbol.for("wabe.settle")];
  const { session, worlds } = (await settle.attach(page)).targets.get(page);

  const LIST = async limits => {
    // Not `document.modelContext`, which an element of that name would hide.
    const context = Object.getOwnPropertyDescriptor(Document.prototype, "modelContext")?.get.call(document);
    // A form inside an editor may be the participant's.
    const edited = new Set(globalThis.wabe.editedTools());
    const own = (await context?.getTools() ?? []).filter(tool =>
      tool.window === window && tool.name.length <= limits.name && !edited.has(tool.name));
    const listed = own.slice(0, limits.tools);
    const schemaOf = ({ inputSchema }) => {
      try {
        const text = JSON.stringify(inputSchema);
        return text.length <= limits.schema ? text : null;
      } catch {
        return null;
      }
    };
    globalThis.wabeSiteTools = new Map(listed.map(tool => [tool.name, tool]));
    return {
      origin: self.origin,
      left_out: own.length - listed.length,
      tools: listed.map(tool => ({
        name: tool.name, description: (tool.description ?? "").slice(0, limits.description), schema: schemaOf(tool),
      })),
    };
  };

  const CALL = async (name, input, limit) => {
    const tool = globalThis.wabeSiteTools?.get(name);
    if (!tool) return { end: "gone" };
    const context = Object.getOwnPropertyDescriptor(Document.prototype, "modelContext").get.call(document);
    globalThis.wabeSiteCall = new AbortController();
    try {
      const result = await context.executeTool(tool, input, { signal: globalThis.wabeSiteCall.signal });
      const text = typeof result === "string" ? result : JSON.stringify(result ?? null);
      return { end: "returned", text: text.slice(0, limit) };
    } catch (error) {
      return { end: "failed", text: String(error?.message ?? error).slice(0, limit) };
    }
  };

  const find = async () => {
    const { frameTree } = await session.send("Page.getFrameTree");
    return [...worlds].find(([, frame]) => frame === frameTree.frame.id)?.[0];
  };
  const evaluate = async (code, ...values) => {
    const contextId = await find();
    if (contextId === undefined) return null;
    const expression = `(${code})(${values.map(value => JSON.stringify(value)).join(", ")})`;
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression, contextId, returnByValue: true, awaitPromise: true });
    return exceptionDetails ? null : result.value;
  };
  // Not the settler's way to evaluate, for which a page is silent while the call has no answer.
  const within = (answer, late) => {
    let timer;
    const over = new Promise(done => { timer = setTimeout(() => done(late), limits.ms); });
    return Promise.race([answer, over]).finally(() => clearTimeout(timer));
  };

  if (!call) return await within(evaluate(LIST, limits).catch(() => null), null);
  await settle.wake(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const ended = page.context()[Symbol.for("wabe.causes")].called(page, frameTree.frame.id);
  const answer = evaluate(CALL, call.name, call.arguments, limits.result).catch(() => ({ end: "navigated" }));
  const found = await within(answer, { end: "late" });
  ended();
  if (found?.end === "late") void evaluate(() => globalThis.wabeSiteCall?.abort()).catch(() => {});
  return found ?? { end: "gone" };
}
