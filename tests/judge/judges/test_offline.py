from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers_offline import SITE, Seen, link, make_trajectory, page, verdict_of
from judge.config import RunConfig
from judge.judges.offline import NOTE, OfflineJudge
from judge.trajectory import Trajectory
from shared.errors import ConfigError
from shared.models import Task

CONTENTS = Seen(
    path="index.html",
    title="Handbook of Tools",
    snapshot=page(
        "Handbook of Tools",
        "- paragraph [ref=e3]: Table of Contents",
        link("Index", "genindex.html", "e4"),
        link("1. Hammers", "hammers.html", "e5"),
        link("2. Screw drivers", "drivers.html", "e6"),
        link("SELECT", "select.html", "e7"),
        link("SELECT INTO", "selectinto.html", "e8"),
    ),
)
INDEX = Seen(
    path="genindex.html",
    title="Index",
    snapshot=page(
        "Index", "- term [ref=e3]:", "  - text: claw_hammer,", "  " + link("Hammers", "hammers.html#claw", "e4")
    ),
)
HAMMERS = Seen(
    path="hammers.html",
    title="1. Hammers",
    snapshot=page(
        "1. Hammers",
        link("Claw hammers", "#claw", "e3"),
        link("Sledge hammers", "#sledge", "e4"),
        "- paragraph [ref=e5]: A hammer drives nails. The default weight is one pound. See also screw drivers.",
        '- heading "Claw hammers" [level=2] [ref=e6]',
        "- paragraph [ref=e7]: It pulls nails as well.",
        '- heading "Sledge hammers" [level=2] [ref=e8]',
        "- paragraph [ref=e9]: It breaks walls.",
    ),
)
CLAW = HAMMERS.model_copy(update={"path": "hammers.html#claw"})
SLEDGE = HAMMERS.model_copy(update={"path": "hammers.html#sledge"})
FORGED = HAMMERS.model_copy(update={"path": "hammers.html#ball-peen-hammers"})
DRIVERS = Seen(
    path="drivers.html", title="2. Screw drivers", snapshot=page("2. Screw drivers", "- paragraph: Turn it.")
)
SELECT = Seen(path="select.html", title="SELECT", snapshot=page("SELECT", "- paragraph: Retrieves rows."))
SELECT_INTO = Seen(
    path="selectinto.html", title="SELECT INTO", snapshot=page("SELECT INTO", "- paragraph: Makes a table by SELECT.")
)
MISSING = Seen(
    path="ball-peen.html", title="Error response", snapshot=page("Error response", "- paragraph: Error code 404")
)

DOCS = [
    ("Open the chapter on hammers.", [CONTENTS, HAMMERS], "success"),
    ("Open the chapter on hammers.", [CONTENTS], "failure"),
    ("Open the chapter on hammers.", [CONTENTS, DRIVERS], "failure"),
    ("Open the chapter on hammers.", [CONTENTS, HAMMERS, CONTENTS], "failure"),
    ("Open the chapter on hammers.", [CONTENTS, DRIVERS, CONTENTS, HAMMERS], "success"),
    ("Using the index, open the chapter on hammers.", [CONTENTS, INDEX, HAMMERS], "success"),
    ("Using the index, open the chapter on hammers.", [CONTENTS, HAMMERS], "failure"),
    ("Open the chapter on hammers and go to its section 'Claw hammers'.", [CONTENTS, HAMMERS, CLAW], "success"),
    ("Open the chapter on hammers and go to its section 'Claw hammers'.", [CONTENTS, HAMMERS], "failure"),
    ("Open the chapter on hammers and go to its section 'Claw hammers'.", [CONTENTS, HAMMERS, SLEDGE], "failure"),
    ("Go to the section 'Ball peen hammers'.", [CONTENTS, HAMMERS, FORGED], "failure"),
    ("Open the page about ball-peen hammers.", [CONTENTS, MISSING], "failure"),
    ("Open the reference page of the command SELECT.", [CONTENTS, SELECT], "success"),
    ("Open the reference page of the command SELECT.", [CONTENTS, SELECT_INTO], "failure"),
    ("Open the reference page of SELECT INTO.", [CONTENTS, SELECT_INTO], "success"),
    ("Open the reference page of SELECT INTO.", [CONTENTS, SELECT], "failure"),
    (
        "Open the chapter on hammers, go back to the table of contents, and open the chapter on screw drivers.",
        [CONTENTS, HAMMERS, CONTENTS, DRIVERS],
        "success",
    ),
    (
        "Open the chapter on hammers, go back to the table of contents, and open the chapter on screw drivers.",
        [CONTENTS, DRIVERS],
        "failure",
    ),
    (
        "Open the chapter on hammers, go back to the table of contents, and open the chapter on screw drivers.",
        [CONTENTS, HAMMERS, DRIVERS],
        "failure",
    ),
    ("Open the chapter on hammers and come back to the start page.", [CONTENTS, HAMMERS, CONTENTS], "success"),
    ("Open the chapter on hammers and come back to the start page.", [CONTENTS], "failure"),
    ("Find the default weight of a hammer.", [CONTENTS, HAMMERS], "success"),
    ("Find the default weight of a hammer.", [CONTENTS], "failure"),
    ("Find the default weight of a quantum hammer.", [CONTENTS, HAMMERS], "failure"),
    ("Open the chapter on hammers. Do not open the chapter on screw drivers.", [CONTENTS, HAMMERS], "success"),
]


@pytest.mark.parametrize(("task", "seen", "outcome"), DOCS)
async def test_a_documentation_task_is_judged_by_where_the_pages_say_it_ended(
    tmp_path: Path, task: str, seen: list[Seen], outcome: str
) -> None:
    verdict = await verdict_of(make_trajectory(tmp_path, task, seen))
    assert (verdict.outcome, verdict.reason) == (outcome, verdict.reason)


@pytest.mark.parametrize(
    ("points", "seen", "outcome"),
    [
        (["The index was used", "The chapter 'Hammers' is open"], [CONTENTS, INDEX, HAMMERS], "success"),
        (["The index was used", "The chapter 'Hammers' is open"], [CONTENTS, HAMMERS], "failure"),
        (["The chapter 'Hammers' is open", "The index was used"], [CONTENTS, INDEX, HAMMERS], "success"),
        (["The section 'Claw hammers' is in view"], [CONTENTS, CLAW], "success"),
        (["The section 'Claw hammers' is in view"], [CONTENTS, HAMMERS], "failure"),
        (["The chapter 'Hammers' is open", "The page 'Pliers' is open"], [CONTENTS, HAMMERS], "failure"),
    ],
)
async def test_a_scenarios_own_key_points_all_have_to_be_met(
    tmp_path: Path, points: list[str], seen: list[Seen], outcome: str
) -> None:
    verdict = await verdict_of(make_trajectory(tmp_path, "Do as the key points say.", seen, points))
    assert verdict.outcome == outcome
    assert verdict.key_points == tuple(points)


def listing(query: str, *, oak: bool = True, walnut: bool = False, order: str = "Relevance", prices: list[int]) -> Seen:
    """A page of search results with facets, a price limit, a sort order and priced entries."""
    box = ['- group "Material" [ref=e3]:']
    box += [f'  - checkbox "Oak (3)"{" [checked]" if oak else ""} [ref=e4]']
    box += [f'  - checkbox "Walnut (2)"{" [checked]" if walnut else ""} [ref=e5]']
    sort = ['- combobox "Sort by" [ref=e6]:']
    for name in ("Relevance", "Price: low to high"):
        sort += [f"  - 'option \"{name}\"{' [selected]' if name == order else ''}'"]
    limit = ['- spinbutton "Highest price" [ref=e7]: "400"'] if "max=400" in query else []
    items = [f"  - listitem [ref=e{20 + price}]: Desk {price} for €{price}" for price in prices]
    lines = [*box, *sort, *limit, "- list [ref=e8]:", *items]
    return Seen(path=f"search?{query}", title="Desks", snapshot=page("Desks", *lines))


OAK_TASK = "Show only oak desks that cost at most 400 euros, cheapest first."
LISTINGS = [
    (listing("max=400", order="Price: low to high", prices=[100, 200, 400]), "success"),
    (listing("max=400", oak=False, order="Price: low to high", prices=[100, 200, 400]), "failure"),
    (listing("max=400", oak=False, walnut=True, order="Price: low to high", prices=[100, 200]), "failure"),
    (listing("max=400", order="Price: low to high", prices=[200, 100, 400]), "failure"),
    (listing("max=400", order="Price: low to high", prices=[100, 200, 500]), "failure"),
    (listing("sort=price", order="Price: low to high", prices=[100, 200, 300]), "failure"),
]


@pytest.mark.parametrize(("last", "outcome"), LISTINGS)
async def test_filters_limits_and_orders_count_as_the_page_shows_them(tmp_path: Path, last: Seen, outcome: str) -> None:
    verdict = await verdict_of(make_trajectory(tmp_path, OAK_TASK, [CONTENTS, last]))
    assert (verdict.outcome, verdict.reason) == (outcome, verdict.reason)


async def test_a_filter_that_another_one_widens_is_not_the_filter_asked_for(tmp_path: Path) -> None:
    both = listing("", walnut=True, prices=[100, 200])
    only = listing("", prices=[100, 200])
    task = "Filter the desks by the material Oak."
    assert (await verdict_of(make_trajectory(tmp_path / "a", task, [both]))).outcome == "failure"
    assert (await verdict_of(make_trajectory(tmp_path / "b", task, [only]))).outcome == "success"


def cart(*products: str) -> Seen:
    """The cart's page with one row for each product."""
    rows = [f'- row "{product}" [ref=e{at}]' for at, product in enumerate(products, 5)]
    empty = [] if products else ["- status [ref=e4]: Your cart is empty."]
    return Seen(path="cart", title="Your cart", snapshot=page("Your cart", *rows, *empty))


CART = [
    ("Add one 'Red Lamp' to the cart.", [CONTENTS, cart("Red Lamp 1 €9")], "success"),
    ("Add one 'Red Lamp' to the cart.", [CONTENTS, cart("Red Desk Lamp 1 €9")], "failure"),
    ("Add one 'Red Lamp' to the cart.", [CONTENTS, cart()], "failure"),
    ("Add one 'Red Lamp' to the cart.", [cart("Red Lamp 1 €9"), cart()], "failure"),
    ("Add two 'Red Lamp' to the cart.", [cart("Red Lamp 1 €9")], "failure"),
    ("Add two 'Red Lamp' to the cart.", [cart("Red Lamp 2 €18")], "success"),
    ("Add a 'Red Lamp' to the cart, then empty the cart.", [cart("Red Lamp 1 €9"), cart()], "success"),
    ("Add a 'Red Lamp' to the cart, then empty the cart.", [cart("Red Lamp 1 €9")], "failure"),
    ("Add a 'Red Lamp' to the cart, then empty the cart.", [cart()], "failure"),
]


@pytest.mark.parametrize(("task", "seen", "outcome"), CART)
async def test_a_cart_holds_what_its_page_says(tmp_path: Path, task: str, seen: list[Seen], outcome: str) -> None:
    verdict = await verdict_of(make_trajectory(tmp_path, task, seen))
    assert (verdict.outcome, verdict.reason) == (outcome, verdict.reason)


BANNER = (
    '- dialog "Cookie choices" [ref=e5]:\n    - button "Accept all" [ref=e6]\n    - button "Only necessary" [ref=e7]'
)


@pytest.mark.parametrize(
    ("line", "left", "outcome"),
    [
        ("<Only necessary button> -> CLICK", False, "success"),
        ("<Accept all button> -> CLICK", False, "failure"),
        ("<Only necessary button> -> CLICK", True, "failure"),
    ],
)
async def test_a_cookie_banner_is_declined_by_the_button_that_was_clicked(
    tmp_path: Path, line: str, left: bool, outcome: str
) -> None:
    first = Seen(path="", title="Shop", snapshot=page("Shop", BANNER), line=line)
    after = Seen(path="", title="Shop", snapshot=page("Shop", BANNER) if left else page("Shop"))
    verdict = await verdict_of(make_trajectory(tmp_path, "Decline the optional cookies.", [first, after]))
    assert verdict.outcome == outcome


async def test_words_that_were_searched_for_are_no_proof_of_the_page(tmp_path: Path) -> None:
    results = Seen(path="search?q=Red+Lamp", title="Results for Red Lamp", snapshot=page("Results for Red Lamp"))
    verdict = await verdict_of(make_trajectory(tmp_path, "Open the page of the 'Red Lamp'.", [CONTENTS, results]))
    assert verdict.outcome == "failure"


async def test_a_search_shows_by_its_results(tmp_path: Path) -> None:
    results = Seen(path="search?q=lamp", title="Results for lamp", snapshot=page("Results for lamp"))
    typed = Seen(path="", title="Shop", snapshot=page("Shop", '- searchbox "Search" [ref=e4]: lamp'))
    task = "Search for 'lamp'."
    assert (await verdict_of(make_trajectory(tmp_path / "a", task, [typed, results]))).outcome == "success"
    assert (await verdict_of(make_trajectory(tmp_path / "b", task, [typed]))).outcome == "failure"


async def test_every_output_says_that_it_is_a_baseline(tmp_path: Path) -> None:
    verdict = await verdict_of(make_trajectory(tmp_path, "Open the chapter on hammers.", [CONTENTS, HAMMERS]))
    assert verdict.judge is not None
    assert verdict.judge.note == NOTE
    assert "no leaderboard judge" in NOTE
    assert "no leaderboard judge" in verdict.reason
    assert verdict.evidence["baseline"] == NOTE


async def test_each_screenshot_has_a_relevance_from_1_to_5(tmp_path: Path) -> None:
    verdict = await verdict_of(make_trajectory(tmp_path, "Open the chapter on hammers.", [CONTENTS, DRIVERS, HAMMERS]))
    scores = [record.Score for record in verdict.image_judge_record]
    assert scores == [2, 1, 5]


async def test_without_snapshots_nothing_is_scored(tmp_path: Path) -> None:
    task = Task(task_id="t", website=SITE, task="Open the chapter on hammers.")
    verdict = await verdict_of(Trajectory(folder=tmp_path, task=task, action_history=("<Hammers link> -> CLICK",)))
    assert verdict.outcome == "unscored"


async def test_a_task_that_asks_for_nothing_to_be_seen_is_unscored(tmp_path: Path) -> None:
    assert (await verdict_of(make_trajectory(tmp_path, "Go!", [CONTENTS]))).outcome == "unscored"


async def test_a_snapshot_that_is_gone_leaves_the_verdict_unscored(tmp_path: Path) -> None:
    trajectory = make_trajectory(tmp_path, "Open the chapter on hammers.", [CONTENTS, HAMMERS])
    (tmp_path / "snapshots" / "step_001.yaml").unlink()
    assert (await verdict_of(trajectory)).outcome == "unscored"


def test_another_method_is_refused() -> None:
    with pytest.raises(ConfigError, match="rubric"):
        OfflineJudge(RunConfig(judge_model="offline", judge_method="rubric"), package_version="0", code_checksum="0")


CLAIMS = st.sampled_from(
    [
        "The chapter on hammers is open.",
        "success",
        "Status: success",
        "hammers",
        "1. Hammers",
        "the section Claw hammers",
    ]
)


@given(thought=CLAIMS | st.text(max_size=40), answer=CLAIMS | st.text(max_size=40), value=CLAIMS | st.text(max_size=40))
async def test_what_a_participant_says_never_changes_a_verdict(thought: str, answer: str, value: str) -> None:
    for task, seen, outcome in (DOCS[0], DOCS[2], DOCS[8]):
        said = [
            one.model_copy(update={"thought": thought, "params": {"text": value, "element": value}}) for one in seen
        ]
        with TemporaryDirectory() as folder:
            silent = await verdict_of(make_trajectory(Path(folder), task, seen))
            spoken = await verdict_of(make_trajectory(Path(folder), task, said, answer=answer))
        assert silent == spoken
        assert spoken.outcome == outcome


@given(task=st.text(max_size=120), point=st.text(min_size=1, max_size=60))
async def test_any_task_gets_a_verdict(task: str, point: str) -> None:
    with TemporaryDirectory() as folder:
        for points in ((), (point,)):
            verdict = await verdict_of(make_trajectory(Path(folder), task, [CONTENTS, HAMMERS], points))
            assert verdict.outcome in ("success", "failure", "unscored")
