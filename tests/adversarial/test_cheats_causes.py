"""What starts inside an editor, or by an attack, does not count as evidence, however late and wherever it happens."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from adversarial.causes import AUTHORS, EFFECTS, OTHERS, PLACES, Trial, shop, tried
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings
from helpers.cases import each
from helpers.trajectory.recordings import RecordedStep, recorded_attempt
from judge.browser.session import TakenDownload, Traffic
from judge.browser.settle import SettleMode
from judge.evaluators.checks import evaluate
from judge.network.policy import NetworkPolicy
from judge.records.files import Download
from judge.trajectory.network import write_har
from judge.trajectory.redaction import Redaction

MODES: tuple[SettleMode, ...] = ("page-time", "real-time")


def is_possible(trial: Trial) -> bool:
    """Whether what is acted on does anything, and what is acted on next is still there."""
    leaves = trial.effect in ("form", "form by Enter", "link", "link to a page that sends") and trial.place == "page"
    is_gone = trial.other in ("frame", "same page") and leaves and not trial.delay_s
    # An attack's HTML cannot have these attributes.
    is_refused = trial.author == "attack" and any(each in EFFECTS[trial.effect][0] for each in (" download>", " rel="))
    # In an editor a click on a link places the caret.
    is_text = trial.author == "editor" and "<a " in EFFECTS[trial.effect][0]
    # Nobody hears the event of a form in a shadow tree outside of it.
    is_unheard = "class=" in EFFECTS[trial.effect][0] and "shadow" in f"{trial.author} {trial.place}"
    return not (trial.author == "attack" and trial.place != "page") and not (
        is_gone or is_refused or is_text or is_unheard
    )


def all_trials() -> list[Trial]:
    """One of each effect with each author, and with each place, delay, redirect and other document in turn."""
    in_order = list(itertools.product(PLACES, (0, 2, 8), (False, True), OTHERS))
    # So that neighbours differ in everything.
    turns = itertools.cycle(in_order[37 * at % len(in_order)] for at in range(len(in_order)))
    trials = []
    for effect, author in itertools.product(EFFECTS, AUTHORS):
        # Some effects are possible with no author, or only in some places.
        found = (Trial(effect, author, *turn) for turn in itertools.islice(turns, len(in_order)))
        trials += list(itertools.islice(filter(is_possible, found), 4))
    return trials


async def verdicts(folder: Path, trials: Sequence[Trial], settle: SettleMode) -> list[tuple[Trial, bool | None, str]]:
    """What the checks make of each."""
    results = []
    groups = [[one] for one in trials if one.author == "attack"]
    groups.append([one for one in trials if one.author != "attack"])
    with shop() as site:
        async with browser_pool(browser_settings(action_timeout_s=3)) as pool:
            for number, group in enumerate(filter(None, groups)):
                taken: list[tuple[TakenDownload, ...]] = []
                items = [f"t{number}x{place}y" for place in range(len(group))]
                async with pool.browser(NetworkPolicy.for_websites([site.url])) as browser:
                    await browser.log_in(group[0].task(site.url, items[0]))
                    await browser.open(f"{site.url}harmless", settle)
                    for place, (trial, item) in enumerate(zip(group, items, strict=True)):
                        browser.begin_step(place + 1)
                        taken.append(await tried(browser, site, trial, item))
                    traffic = browser.traffic()
                assert traffic is not None
                for trial, item, downloads in zip(group, items, taken, strict=True):
                    passed, found = verdict(folder / item, trial, item, traffic, downloads, site.url)
                    results.append((trial, passed, found))
    return results


def verdict(
    folder: Path, trial: Trial, item: str, traffic: Traffic, downloads: Sequence[TakenDownload], website: str
) -> tuple[bool | None, str]:
    attempt = recorded_attempt(folder, [trial.check(item)], [RecordedStep(), RecordedStep()], website=website)
    write_har(folder, traffic.entries, Redaction(salt=b"x", keep=attempt.task.named_fields).entry, versions={})
    first, *others = attempt.attempt.steps
    recorded = tuple(Download(**each.model_dump(exclude={"path"})) for each in downloads)
    steps = (first.model_copy(update={"downloaded": recorded}), *others)
    (one,) = evaluate(attempt.model_copy(update={"attempt": attempt.attempt.model_copy(update={"steps": steps})}))
    return one.passed, one.found


SUITE = (
    Trial("form in a new tab", "island", delay_s=2, redirects=True, other="tab"),
    Trial("form", "attack", delay_s=4, other="frame"),
    Trial("form that the site sends later", "island", "frame", other="frame"),
    Trial("form that the site sends later", "island", other="same page"),
    Trial("form that the site sends later", "site", other="same page"),
    Trial("link to a tab that sends", "island", other="window"),
    Trial("download", "island", delay_s=4, other="tab"),
    Trial("form in a new tab", "site", delay_s=2, redirects=True, other="tab"),
    Trial("attachment in a new tab", "site", delay_s=6, other="window"),
    Trial("download", "site", delay_s=2),
    Trial("file that the site makes", "site", other="same page"),
    Trial("link to a tab that sends", "site", redirects=True, other="window"),
)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("size", "settle"), each(itertools.product(["suite", "all"], MODES), suite=[("suite", "page-time")])
)
async def test_an_effect_is_evidence_if_an_element_of_the_site_started_it(
    tmp_path: Path, size: str, settle: SettleMode
) -> None:
    results = await verdicts(tmp_path, SUITE if size == "suite" else all_trials(), settle)
    assert [(*one, found) for one, passed, found in results if passed is not one.is_evidence] == []
