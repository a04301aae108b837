"""Logs a new browser context in before its first page: cookies, local storage, HTTP authentication.

Everything ends with the context, so with the task.
"""

import json

from shared.models import Task


def login_code(task: Task) -> str:
    """The code that logs the context in, for the server's code tool; empty where the task has no log-in.

    Credentials go to their own origin only, whatever asks for them. The server's own error would show values.
    """
    state = None if task.storage_state is None or isinstance(task.storage_state, str) else task.storage_state.to_json()
    credentials = [
        {"username": each.username, "password": each.password, "origin": each.origin or task.website}
        for each in task.http_credentials
    ]
    if state is None and not credentials:
        return ""
    return f"""async page => {{
  const [state, credentials] = {json.dumps([state, credentials])};
  try {{
    if (state) await page.context().setStorageState(state);
    const bound = credentials.map(each => ({{ ...each, origin: new URL(each.origin).origin }}));
    if (bound.length) await page.context().setHTTPCredentials(bound);
  }} catch {{
    throw new Error("refused");
  }}
}}"""
