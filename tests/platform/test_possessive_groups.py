"""What `re` does with possessive groups, on the Python that runs the tests."""

import re
import sys
from itertools import product

import pytest

from helpers.possessive import doubtful_groups

MOVING = ("a", "[ab]", "(?:ab|a)", "a+?", "b++", "(?>ab?)")
OTHERS = ("a?", "(?=a)", "(?!b)", "(?<=a)", r"\b")
TEXTS = ["".join(letters) for length in range(5) for letters in product("abc", repeat=length)]


@pytest.mark.parametrize(
    ("repeated", "text", "end"),
    [
        ("ab*+c", "a", 0),
        ("ab++", "aa", 0),
        ("ab?c", "aca", 2),
        ("a??b", "a", 0),
        ("a(?:bb|cc)", "abbab", 3),
        ("(?=a)b", "a", 0),
        ("(?!b)a", "b", 0),
        ("a(?!b)", "aab", 1),
        ("(?>a)b", "a", 0),
        ("c|a(?=b)", "a", 0),
    ],
)
def test_what_moves_on_before_it_fails_is_wrong_before_3_11_5_unless_a_last_alternative_follows(
    repeated: str, text: str, end: int
) -> None:
    alone, followed = f"(?:{repeated})*+", f"(?:{repeated}|(?!))*+"
    assert (list(doubtful_groups(alone)), list(doubtful_groups(followed))) == ([alone], [])
    ends = [match and match.end() for match in (re.match(alone, text), re.match(followed, text))]
    assert (ends[0] == end, ends[1]) == (sys.version_info >= (3, 11, 5), end)


def test_groups_that_capture_are_doubtful_even_with_a_last_alternative() -> None:
    # ((x)|y|z)*+ raises SystemError, or says that another repetition was captured, up to 3.13.0.
    assert all(any(doubtful_groups(group)) for group in ("(?:(x)|y|(?!))*+", "(?:(?P<x>x)|(?!))++", "(x|(?!))?+"))


@pytest.mark.slow
def test_groups_that_are_not_doubtful_match_what_a_plain_loop_matches() -> None:
    series = [
        ("".join(some), any(piece in MOVING for piece in some))
        for n in (1, 2)
        for some in product(MOVING + OTHERS, repeat=n)
    ]
    # A loop whose repetitions may be empty ends where each engine likes.
    moving = [text for text, moves in series if moves]
    bodies = moving + [f"{one}|{other}" for one, other in product(moving, MOVING)]
    wrong: list[str] = []
    for body, quantifier in product(bodies, "*+?"):
        for group in (f"(?:{body})", f"(?:{body}|(?!))"):
            if any(doubtful_groups(f"{group}{quantifier}+")):
                continue
            possessive = re.compile(f"{group}{quantifier}+(.*)")
            plain = re.compile(rf"(?=({group}{quantifier}))\1(.*)")
            for text in TEXTS:
                ours, expected = possessive.match(text), plain.match(text)
                if (ours and ours[1]) != (expected and expected[2]):
                    wrong.append(f"{possessive.pattern} on {text}")
    assert wrong == []
