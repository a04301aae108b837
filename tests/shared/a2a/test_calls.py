"""Where an agent is called, given its card."""

import pytest
from a2a.types import AgentInterface

from shared.a2a.calls import choose_interface


@pytest.mark.parametrize(
    ("card_url", "dialled", "called"),
    [
        ("http://127.0.0.1:9019/", "http://127.0.0.1:9019", "http://127.0.0.1:9019/"),
        ("http://0.0.0.0:9009/rpc", "http://agent:9019/", "http://agent:9019/rpc"),
        ("https://agent.test", "http://agent:9019", "http://agent:9019/"),
        # The platform's gateway: one path for each role, before the agent's own.
        ("http://purple:9009/", "http://gateway:8080/white_agent", "http://gateway:8080/white_agent"),
        ("http://purple:9009/rpc", "http://gateway:8080/white_agent", "http://gateway:8080/white_agent/rpc"),
        ("http://purple:9009/a2a/", "http://gateway:8080/my%20agent/", "http://gateway:8080/my%20agent/a2a/"),
        ("/rpc", "http://gateway:8080/white_agent", "http://gateway:8080/rpc"),
        # A card that the gateway has rewritten, or an agent that knows of its path.
        ("http://gateway:80/white_agent/rpc", "http://gateway:80/white_agent", "http://gateway/white_agent/rpc"),
        ("http://agent.test/one/rpc", "http://127.0.0.1:8080/one", "http://127.0.0.1:8080/one/rpc"),
        ("http://agent.test/one", "http://127.0.0.1:8080/one/", "http://127.0.0.1:8080/one"),
    ],
)
def test_calls_go_to_the_dialled_host_and_the_published_path(card_url: str, dialled: str, called: str) -> None:
    published = AgentInterface(url=card_url, protocol_binding="JSONRPC", protocol_version="1.0")
    assert choose_interface([published], dialled).url == called
