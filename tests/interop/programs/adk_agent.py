"""An agent on google-adk: its own runner, sessions and A2A server around a model that answers by rule."""

import warnings
from collections.abc import AsyncGenerator

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types
from talk import echo, listening

HOST, PORT = "agent-container", 8080


class Rule(BaseLlm):
    """Answers the last message of what it is given, which is the whole conversation."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        requests = [content for content in llm_request.contents if content.role == "user"]
        parts = requests[-1].parts
        text = "\n".join(part.text for part in parts if part.text)
        images = [part.inline_data.data for part in parts if part.inline_data]
        message = types.Part(text=echo(len(requests), text, images))
        yield LlmResponse(content=types.Content(role="model", parts=[message]))


def main() -> None:
    """Serve until a signal."""
    warnings.simplefilter("ignore")
    app = to_a2a(LlmAgent(name="adk_agent", model=Rule(model="rule"), instruction="Play."), host=HOST, port=PORT)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening()])


if __name__ == "__main__":
    main()
