"""Probes: values of expressions that the judge reads in the page, for `probe` checks.

An expression is evaluated in an isolated JavaScript world, in which the page cannot redefine anything. If it needs the
page's world (a name not defined elsewhere, or `window`, `globalThis` or `typeof`), it is evaluated there
and must not have side effects: for example, a getter that counts how often it is read is refused.

What the judge put into the page as an attack (`attacks.js`) is taken out meanwhile.

Values come from Chromium's inspector, so that no code of the page is involved in returning them. Only strings, numbers,
booleans and null are accepted: no object with its own `toJSON`, no proxy, no promise.
"""

import json
from collections.abc import Sequence

from pydantic import TypeAdapter, ValidationError

from judge.records.steps import ProbeValue
from shared.text import one_line

_VALUES: TypeAdapter[tuple[ProbeValue, ...]] = TypeAdapter(tuple[ProbeValue, ...])
NO_ANSWER = "the page gave no answer"
MAX_CHARS = 500
# The limit for a value in a step's record.
_MAX_BYTES = 600
_READ_SCRIPT = """async page => {
  const {url, expressions, maxChars} = JSON.parse(%s);
  const settler = page.context()[Symbol.for("wabe.settle")];
  const session = await page.context().newCDPSession(page);
  const worlds = [];
  let isHeldUp = false;
  const read = async (expression, world, params) => {
    // Whatever the page has redefined, these operators are the language's own.
    const bounded = `(value => {
      if (typeof value === "string" && value.length > ${maxChars}) throw "a text of more than ${maxChars} characters";
      return value; })((\\n${expression}\\n))`;
    const asked = {expression: bounded, uniqueContextId: world.uniqueId, silent: true, timeout: 1000, ...params};
    // In page time `timeout` waits for a clock that stands still. A script of the page that a dialog holds up goes on.
    const stop = () => isHeldUp || session.send("Runtime.terminateExecution").catch(() => {});
    const limit = setTimeout(stop, 3000);
    const {result, exceptionDetails} = await session.send("Runtime.evaluate", asked).finally(() => clearTimeout(limit));
    if (exceptionDetails) {
      const {className, description, value} = exceptionDetails.exception ?? {};
      const error = String(description ?? value ?? exceptionDetails.text).split("\\n", 1)[0].slice(0, maxChars);
      return {error, className};
    }
    if (result.type === "undefined" || result.subtype === "null") return {value: null};
    if (result.unserializableValue === "-0") return {value: 0};
    if (["boolean", "number", "string"].includes(result.type) && !result.unserializableValue)
      return {value: result.value};
    return {error: `neither a text, a number nor a boolean, but ${result.unserializableValue ?? result.type}`};
  };
  try {
    session.on("Runtime.executionContextCreated", ({context}) => worlds.push(context));
    session.on("Page.javascriptDialogOpening", () => { isHeldUp = true; });
    const asked = ["Page.getFrameTree", "Page.enable", "Runtime.enable"].map(method => session.send(method));
    const [{frameTree: {frame}}] = await Promise.all(asked);
    const own = worlds.find(({auxData}) => auxData?.isDefault && auxData.frameId === frame.id);
    if (own?.origin !== new URL(url).origin) return expressions.map(() => ({error: "the page was left"}));
    const apart = async expression => {
      const world = {frameId: frame.id, worldName: "probe"};
      const {executionContextId} = await session.send("Page.createIsolatedWorld", world);
      return read(expression, worlds.find(({id}) => id === executionContextId), {});
    };
    const inPage = expression => read(expression, own, {throwOnSideEffect: true});
    const values = [];
    await settler?.putAttack(page, "away");
    for (const expression of expressions) {
      try {
        const needsPage = /\\b(window|globalThis|typeof)\\b/.test(expression);
        let found = needsPage ? {className: "ReferenceError"} : await apart(expression);
        if (found.className === "ReferenceError") found = await inPage(expression);
        values.push({value: found.value, error: found.error});
      } catch (error) {
        const isEndless = error.message.includes("terminated");
        values.push({error: isEndless ? "it did not end" : error.message.split("\\n", 1)[0].slice(0, maxChars)});
      }
    }
    return values;
  } finally {
    await settler?.putAttack(page, "back");
    session.detach().catch(() => {});
  }
}"""


def probe_code(url: str, expressions: Sequence[str]) -> str:
    """Code for the server that reads the expressions, in order, if the current page has the same origin as `url`."""
    values = {"url": url, "expressions": list(expressions), "maxChars": MAX_CHARS}
    # Dumped twice: the JSON text as an ASCII string literal.
    return _READ_SCRIPT % json.dumps(json.dumps(values))


def read_values(text: str, count: int) -> tuple[ProbeValue, ...]:
    """The `count` values that `probe_code` returned; errors if there are none, as under an open dialog."""
    try:
        values = _VALUES.validate_json(text)
    except ValidationError:
        values = ()
    return tuple(map(_bounded, values)) if len(values) == count else (ProbeValue(error=NO_ANSWER),) * count


def _bounded(value: ProbeValue) -> ProbeValue:
    # Not cut: a cut value could equal an expected one.
    if len(json.dumps(value.value, ensure_ascii=False).encode("utf-8", "replace")) > _MAX_BYTES:
        return ProbeValue(error=f"a text of more than {_MAX_BYTES} bytes")
    return value if value.error is None else ProbeValue(error=one_line(value.error, 200))
