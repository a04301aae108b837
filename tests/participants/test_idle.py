"""The participant that does nothing."""

from helpers.participants import observed
from participants.base import ParticipantOptions
from participants.idle import create
from shared.models import Action, Page
from shared.settings import Settings


async def test_it_finishes_at_once_with_an_empty_answer() -> None:
    decide = create(ParticipantOptions(model=None, script=None, seed=0, settings=Settings.from_environ({})))
    page = Page(url="http://shop.example/", title="Shop", snapshot="- main")
    assert await decide(observed(page, instruction="Buy.")) == Action(tool="finish", params={"answer": ""})
