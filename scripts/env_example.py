"""Writes `.env.example` from the descriptors of the providers: python scripts/env_example.py"""

from pathlib import Path

from judge.config import DEFAULT_JUDGE_MODEL
from shared.llm.opening import provider
from shared.llm.provider import Provider
from shared.llm.providers import provider_names

FILE = Path(__file__).resolve().parent.parent / ".env.example"
_HEAD = """\
# Copy to .env and fill in what you use. Read by docker compose and scripts/run-docker.py; export it for anything else.
# The demo needs none of these. Made by scripts/env_example.py.
"""
_TAIL = """
# Models that go before those of the scenario
WABE_JUDGE_MODEL=
WABE_PARTICIPANT_MODEL=
"""


def text() -> str:
    """The file's text."""
    return _HEAD + "".join(map(_block, map(provider, provider_names()))) + _TAIL


def _block(found: Provider) -> str:
    is_default = " (the default)" if DEFAULT_JUDGE_MODEL.startswith(f"{found.name}:") else ""
    note = f"; the base URL for {found.url_note}" if found.url_note else ""
    key, *others = found.key_variables
    also = f"; {' or '.join(others)} is read as well" if others else ""
    return (
        f'\n# Judge with judge_model = "{found.name}:…"{is_default}, and the participant `{found.name}`{also}{note}\n'
        f"{key}=\n{found.url_variable}=\n"
    )


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
