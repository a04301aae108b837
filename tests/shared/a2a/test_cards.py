"""Cards that are found in odd places, and agents that want credentials."""

from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from helpers.a2a.agents import (
    CONTEXT,
    JPEG,
    ForeignAgent,
    card_03,
    card_10,
    message_03,
    message_10,
    reply_of,
    served,
    talking_to,
    task_10,
)
from helpers.a2a.streaming import PROTOCOLS, in_characters, streaming_agent
from shared.a2a.client import ParticipantClient, fetch_card
from shared.errors import ParticipantError

# --- credentials ------------------------------------------------------------------------------------------------------

CREDENTIALS = {"Authorization": "Bearer s3cr3t-t0ken", "X-Tenant": "tenant-7"}


class Guarded:
    """Passes requests with the credentials on, and answers others with 401; `refusals` counts them."""

    def __init__(self, app: Any) -> None:
        self.refusals = 0
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            if any(headers.get(name.lower()) != value for name, value in CREDENTIALS.items()):
                self.refusals += 1
                await PlainTextResponse("who are you", status_code=401)(scope, receive, send)
                return
        await self._app(scope, receive, send)


@pytest.mark.parametrize(("binding", "protocol"), PROTOCOLS)
@pytest.mark.parametrize("only_streams", [False, True], ids=["sends", "streams"])
async def test_credentials_are_sent_for_the_card_and_with_every_call(
    binding: str, protocol: str, only_streams: bool
) -> None:
    app = streaming_agent(in_characters("ab"), only_streams=only_streams, binding=binding, protocol=protocol)
    guarded = Guarded(app)
    async with served(guarded) as url:
        async with ParticipantClient(url, headers=CREDENTIALS) as client:
            assert await client.send("What now?", context_id=CONTEXT) == "ab"
        assert guarded.refusals == 0
        with pytest.raises(ParticipantError, match="HTTP 401"):
            await fetch_card(url, 2.0)
        assert (await fetch_card(url, 2.0, headers=CREDENTIALS)).name == "streaming agent"


async def test_an_error_that_quotes_the_credentials_hides_them() -> None:
    def answer(body: dict[str, Any]) -> Any:
        message = f"{CREDENTIALS} and {CREDENTIALS['Authorization'].split()[1]}"
        return (
            {"task": task_10(CONTEXT, "FAILED", text=message)}
            if len(agent.requests) == 1
            else refusal_of(body, message)
        )

    def refusal_of(body: dict[str, Any], text: str) -> Any:
        return JSONResponse({"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32603, "message": text}})

    agent = ForeignAgent(answer)
    async with talking_to(agent, headers=CREDENTIALS) as client:
        for _ in range(2):
            with pytest.raises(ParticipantError, match="redacted") as caught:
                await client.send("What now?", context_id=CONTEXT)
            assert not any(word in str(caught.value) for word in ("s3cr3t", "t0ken", "tenant-7"))


async def test_an_answer_that_redirects_elsewhere_gets_no_credentials_there() -> None:
    reached = ForeignAgent(lambda body: message_10(body, "an answer"))
    async with served(reached.app) as elsewhere:
        card = RedirectResponse(f"{elsewhere}/.well-known/agent-card.json/", status_code=307)
        async with served(ForeignAgent(lambda body: {}, card).app) as url:
            with pytest.raises(ParticipantError, match="redirects"):
                await fetch_card(url, 2.0, headers=CREDENTIALS)
        with pytest.raises(ParticipantError, match="redirects"):
            await reply_of(lambda body: RedirectResponse(f"{elsewhere}/", status_code=307), headers=CREDENTIALS)
    assert reached.headers == []


# --- cards that are found ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        Response("<html>our app</html>", media_type="text/html"),
        JSONResponse({"detail": "no such page"}),
        JSONResponse([]),
        JSONResponse({"name": 7}),
        Response("{", media_type="application/json"),
        PlainTextResponse("no", status_code=403),
        PlainTextResponse("no", status_code=405),
        PlainTextResponse("no", status_code=500),
        RedirectResponse("/login"),
        Response(b"x" * 2_000_000, media_type="application/json"),
    ],
    ids=["page", "other object", "list", "wrong types", "half", "403", "405", "500", "redirect", "huge"],
)
@pytest.mark.parametrize("has_old", [True, False], ids=["old path", "no card"])
async def test_the_old_path_is_asked_where_the_new_one_has_no_card(first: Response, has_old: bool) -> None:
    agent = ForeignAgent(lambda body: {}, first)
    if has_old:
        agent.app.routes.append(Route("/.well-known/agent.json", lambda _: JSONResponse(card_03())))
    async with served(agent.app) as url:
        if has_old:
            assert (await fetch_card(url, 2.0)).name == "old agent"
        else:
            with pytest.raises(ParticipantError) as caught:
                await fetch_card(url, 2.0)
            assert "404" not in str(caught.value)


async def test_a_card_and_an_endpoint_with_a_slash_added_are_found() -> None:
    agent = ForeignAgent(
        lambda body: message_10(body, "an answer"),
        card_10("http://agent.invalid/rpc"),
        path="/rpc/",
        card_path="/.well-known/agent-card.json/",
    )
    # Starlette redirects to the path with a slash.
    async with talking_to(agent) as client:
        assert await client.send("What now?", image=JPEG, context_id=CONTEXT) == "an answer"


@pytest.mark.parametrize("transport", ["jsonrpc", "JsonRpc", "JSONRPC", " jsonRPC "])
async def test_the_transport_may_be_written_in_any_case(transport: str) -> None:
    old = {**card_03(), "preferredTransport": transport}
    assert await reply_of(lambda _: message_03(CONTEXT, "an answer"), old) == "an answer"
    assert await reply_of(lambda body: message_10(body, "an answer"), card_10(binding=transport)) == "an answer"


async def test_another_transport_may_be_written_in_any_case() -> None:
    interfaces = [{"url": "http://agent.invalid/", "transport": "JsonRPC"}]
    card = {**card_03(), "preferredTransport": "grpc", "additionalInterfaces": interfaces}
    assert await reply_of(lambda body: message_03(CONTEXT, "an answer"), card) == "an answer"
