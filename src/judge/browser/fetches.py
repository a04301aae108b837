"""The judge's requests, for `fetch` checks, sent by the request client of the attempt's browser context.

They have the context's cookies and credentials and go through the guard, but no page takes part in them or sees them.
Redirects are not followed here: `judge.evaluators.fetches` decides whether they stay on the task's site.
"""

import json
from collections.abc import Mapping

from pydantic import ValidationError

from judge.trajectory.fetched import MAX_BODY_BYTES, FetchResponse

LIMIT_S = 5.0
NO_ANSWER = FetchResponse(error="the browser did not answer")
# The token goes from the browser's storage into the header here, and is never returned.
_GET = """async page => {
  const {url, key, own, limit, maxBytes} = JSON.parse(%s);
  const context = page.context(), {origin} = new URL(url);
  const soon = (promise, ms) => {
    let timer;
    const late = new Promise((_, failed) => { timer = setTimeout(() => failed(new Error("no answer in time")), ms); });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
  };
  const isOfOrigin = frame => {
    try {
      return new URL(frame.url()).origin === origin;
    } catch {
      return false;
    }
  };
  // By the browser's protocol: pages can replace their own `localStorage`.
  const stored = async () => {
    for (const open of context.pages().filter(each => each.frames().some(isOfOrigin))) {
      const session = await context.newCDPSession(open);
      try {
        const storageId = {securityOrigin: origin, isLocalStorage: true};
        const {entries} = await soon(session.send("DOMStorage.getDOMStorageItems", {storageId}), limit);
        const found = entries.find(([name]) => name === key);
        if (found) return found[1];
      } catch {
        // Of another process, or busy: another tab may have it.
      } finally {
        session.detach().catch(() => {});
      }
    }
  };
  let token;
  const clean = text => token ? text.split(token).join("[redacted]") : text;
  try {
    const headers = {...own, accept: "application/json, text/plain;q=0.9, */*;q=0.8", "accept-encoding": "identity"};
    if (key !== null) {
      token = await stored();
      try {
        const inside = JSON.parse(token);
        if (typeof inside === "string") token = inside;
      } catch {
        // Stored as it is.
      }
      if (token !== undefined && !/^[!-~]{4,8000}$/.test(token)) {
        token = undefined;
        return {error: "the item of that name in the local storage is not a token"};
      }
      if (token) headers.authorization = `Bearer ${token}`;
    }
    const options = {headers, maxRedirects: 0, maxRetries: 0, failOnStatusCode: false, timeout: limit};
    const response = await context.request.get(url, options);
    try {
      const status = response.status(), found = response.headers();
      if (status >= 300 && status < 400 && found.location)
        return {status, location: new URL(found.location, url).href};
      if (key !== null && !token) return {status, error: `no ${key.slice(0, 100)} in the local storage of ${origin}`};
      const bytes = await response.body();
      if (bytes.length > maxBytes) return {status, error: `the answer has more than ${maxBytes} bytes`};
      return {status, type: found["content-type"] ?? "", body: clean(bytes.toString("utf8"))};
    } finally {
      await response.dispose();
    }
  } catch (error) {
    // Without the call log, which has the headers.
    return {error: clean(String(error.message).split("\\n", 1)[0]).slice(0, 300)};
  }
}"""


def get_code(url: str, key: str | None, own: Mapping[str, str]) -> str:
    """Code for the server that gets the address, with the token that the local storage has under `key`, if any.

    `own` are headers by which the guard knows that the request is the judge's.
    """
    values = {"url": url, "key": key, "own": own, "limit": round(LIMIT_S * 1000), "maxBytes": MAX_BODY_BYTES}
    # Dumped twice: the JSON text as an ASCII string literal.
    return _GET % json.dumps(json.dumps(values))


def read_answer(text: str) -> FetchResponse:
    """The result of `get_code`."""
    try:
        return FetchResponse.model_validate_json(text)
    except ValidationError:
        return NO_ANSWER
