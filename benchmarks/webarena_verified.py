"""Real tasks of WebArena-Verified, played in a real browser against stand-ins and judged by the benchmark's evaluator.

    WABE_WEBARENA_PYTHON=.webarena/bin/python python benchmarks/webarena_verified.py [--tasks 44,274] [--keep DIR]

Each task is played once correctly, and once for each way of being wrong that is named here: a near miss for every field
that an evaluator looks at. Every attempt goes through `wabe run`, with the bundled replay participant, and `wabe score`.
The correct ones must succeed and the others fail; a run is exported as well, and checked by the benchmark's own command.
The sites (`webarena_sites.py`) and the correct attempts were written from the texts of the tasks.
"""

import argparse
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judge.scenario.sources import _toml_value as toml_value
from judge.scenario.toml import load_scenario

SITES = Path(__file__).with_name("webarena_sites.py")
Step = Mapping[str, Any]


class Attempt(NamedTuple):
    """What the participant does, and its final answer."""

    steps: tuple[Step, ...]
    answer: str


class Case(NamedTuple):
    """A task: its correct attempt, and wrong ones by what is wrong with them."""

    kind: str
    right: Attempt
    wrong: Mapping[str, Attempt]


def click(name: str, role: str = "link", **more: Any) -> Step:
    return {"tool": "browser_click", "role": role, "name": name, **more}


def press(name: str) -> Step:
    return click(name, "button")


def fill(name: str, value: str) -> Step:
    return {"tool": "browser_type", "role": "textbox", "name": name, "params": {"text": value}}


def go(address: str) -> Step:
    return {"tool": "browser_navigate", "params": {"url": address}}


def answer(kind: str, status: str = "SUCCESS", data: Any = None) -> str:
    return json.dumps({"task_type": kind, "status": status, "retrieved_data": data, "error_details": None})


def cases(at: Mapping[str, str], rows: Mapping[str, Any]) -> dict[int, Case]:
    """Every case by its task's number. `at` has the sites' addresses."""
    done = answer("MUTATE")
    seen = answer("NAVIGATE")
    space = fill
    return {
        0: Case("RETRIEVE", Attempt((click("Bestsellers"),), answer("RETRIEVE", data=[rows["bestseller"]])), {}),
        11: Case("RETRIEVE", Attempt((click("All Reviews"),), answer("RETRIEVE", data=[rows["disappointed"]])), {}),
        16: Case("RETRIEVE", Attempt((click("Directions"),), answer("RETRIEVE", data=rows["routes"])), {}),
        22: Case("RETRIEVE", Attempt((), answer("RETRIEVE", "NOT_FOUND_ERROR")), {}),
        168: Case("RETRIEVE", Attempt((), answer("RETRIEVE", "NOT_FOUND_ERROR")), {}),
        191: Case(
            "RETRIEVE", Attempt((click("My Account"), click("My Orders")), answer("RETRIEVE", "NOT_FOUND_ERROR")), {}
        ),
        44: Case("NAVIGATE", Attempt((click("To-Do List"),), seen), {}),
        156: Case("NAVIGATE", Attempt((click("Merge requests"),), seen), {}),
        157: Case("NAVIGATE", Attempt((click("All Customers"),), seen), {}),
        274: Case("NAVIGATE", Attempt((fill("Search", "usb wifi"), press("Search")), seen), {}),
        301: Case(
            "NAVIGATE", Attempt((click("My Account"), click("My Orders")), answer("NAVIGATE", "NOT_FOUND_ERROR")), {}
        ),
        709: Case(
            "NAVIGATE",
            Attempt(
                (click("Orders Report"), fill("From", "05/1/2021"), fill("To", "03/31/2022"), press("Show Report")), seen
            ),
            {},
        ),
        399: Case("MUTATE", Attempt((click("Edit biography"), fill("Biography", "I am a robot"), press("Save")), done), {}),
        418: Case("MUTATE", Attempt((press("Busy"),), done), {}),
        448: Case(
            "MUTATE",
            Attempt(
                (click("Edit profile"), fill("Website url", "https://egg.tart.com"), press("Update profile settings")),
                done,
            ),
            {},
        ),
        516: Case("MUTATE", Attempt((press("Add to Wish List"),), done), {}),
        521: Case(
            "MUTATE",
            Attempt(
                (
                    click("My Account"),
                    click("Newsletter"),
                    click("General Subscription", "checkbox"),
                    press("Save"),
                ),
                done,
            ),
            {},
        ),
        527: Case("MUTATE", Attempt((click("Most starred"), click("First"), press("Star")), done), {}),
        533: Case(
            "MUTATE",
            Attempt(
                (go(f"{at['gitlab']}/convexegg"), press("Follow"), go(f"{at['gitlab']}/yjlou"), press("Follow")), done
            ),
            {},
        ),
        580: Case(
            "MUTATE",
            Attempt(
                (
                    click("Create new forum"),
                    fill("Name", "sci_fi"),
                    fill("Title", "sci_fi"),
                    fill("Description", "A wild place for sci-fi enthusiasts"),
                    fill("Sidebar", "**New**, Classic, *Movies*, Post my novel, Random"),
                    press("Create forum"),
                ),
                done,
            ),
            {},
        ),
        590: Case(
            "MUTATE",
            Attempt(
                (
                    go(f"{at['gitlab']}/primer/design/-/milestones/new"),
                    fill("Title", "product launch"),
                    fill("Start Date", "2023-01-16"),
                    fill("Due Date", "2023-01-30"),
                    press("Create milestone"),
                ),
                done,
            ),
            {},
        ),
        595: Case("MUTATE", Attempt((go(f"{at['reddit']}{rows['hot_post']}"), press("Subscribe to space")), done), {}),
        640: Case(
            "MUTATE",
            Attempt(
                (
                    click("Submit to books"),
                    fill("Title", "book reading Meet up!"),
                    fill("Body", "virtual meetup for book reading on March 15th"),
                    press("Create submission"),
                ),
                done,
            ),
            {},
        ),
        689: Case(
            "MUTATE",
            Attempt(
                (
                    click("Contact Us"),
                    fill("What’s on your mind?", "I am a loyal customer, give me a coupon"),
                ),
                done,
            ),
            {},
        ),
        752: Case(
            "MUTATE",
            Attempt(
                (
                    click("New project"),
                    fill("Project name", "web_agent"),
                    fill("Project slug", "web_agent"),
                    click("Private", "radio"),
                    press("Create project"),
                ),
                done,
            ),
            {},
        ),
    }
