"""A participant that calls a model before each of its replies, and then replies as the bundled `obedient` does.

`python paying_participant.py --script FILE --host HOST --port PORT`: the model is the one at `OPENAI_BASE_URL`; which
one it is depends on the step only, so that an attempt costs the same whenever it is played.
"""

import argparse
import os

from openai import AsyncOpenAI

from participants import obedient
from participants.base import Decide, Observation, ParticipantOptions, Reply, serve
from shared.llm.attempts import HEADER

MODELS = ("chat-small", "chat-medium", "chat-large")


def paying(play: Decide) -> Decide:
    """`play`, with a call before each reply."""
    model = AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"], api_key="none", max_retries=0)

    async def decide(observation: Observation) -> Reply:
        await model.chat.completions.create(
            model=MODELS[observation.step % len(MODELS)],
            messages=[{"role": "user", "content": observation.instruction}],
            extra_headers={HEADER: observation.context_id},
        )
        return await play(observation)

    return decide


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    play = obedient.create(ParticipantOptions(script=arguments.script))
    serve(paying(play), name="paying", host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
