"""Which bodies are JSON."""

import re

_JSON = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?json\b", re.IGNORECASE)


def is_json(mime_type: str, text: str) -> bool:
    """Whether a body is JSON; pages also send it as plain text."""
    if _JSON.match(mime_type):
        return True
    return mime_type.lower().startswith("text/plain") and text.lstrip()[:1] in ("{", "[")
