import random
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import pytest

from judge.evaluators.normalise import NormaliseError, only_value, parse_number, values_in


class Locale(NamedTuple):
    """How a country writes amounts: separators of groups and decimals, and forms of an amount above and below zero."""

    group: str
    point: str
    above: tuple[str, ...]
    below: tuple[str, ...]
    is_indian: bool = False


BEFORE = ("-{mark}{n}", "{mark}-{n}", "\u2212{mark}{n}", "({mark}{n})", "minus {mark}{n}", "{mark}({n})")
BEHIND = ("-{n} {mark}", "\u2212{n}\u00a0{mark}", "({n} {mark})", "{n}- {mark}", "-{n}{mark}")
LOCALES = {
    "en-US": Locale(",", ".", ("{mark}{n}", "+{mark}{n}"), BEFORE),
    "en-IN": Locale(",", ".", ("{mark}{n}",), BEFORE, is_indian=True),
    "de-DE": Locale(".", ",", ("{n} {mark}", "+{n}{mark}"), BEHIND),
    "de-CH": Locale("’", ".", ("{mark} {n}",), ("{mark}-{n}", "-{mark} {n}", "({mark} {n})")),
    "fr-FR": Locale("\u202f", ",", ("{n}\u00a0{mark}",), BEHIND),
    "nl-NL": Locale(".", ",", ("{mark}\u00a0{n}",), ("{mark}\u00a0-{n}", "{mark}\u00a0{n}-", "-{mark} {n}")),
    "sv-SE": Locale("\u00a0", ",", ("{n} {mark}",), BEHIND),
    "ja-JP": Locale(",", ".", ("{mark}{n}",), ("-{mark}{n}", "({mark}{n})", "－{mark}{n}", "（{mark}{n}）")),
    "ar-EG": Locale("٬", "٫", ("{mark} {n}",), ("{mark} -{n}", "-{n} {mark}", "({mark} {n})")),
}
MARKS = {"$": "USD", "€": "EUR", "£": "GBP", "₹": "INR", "¥": "JPY", "USD": "USD", "EUR": "EUR", "CHF": "CHF"}
SCALES = {
    " thousand": 3, "thousand": 3, "k": 3, " k": 3, " million": 6, "-million": 6, " M": 6, "m": 6, " mn": 6, "bn": 9,
    " Billion": 9, " billions": 9, " trillion": 12, " lakh": 5, " lakhs": 5, " crore": 7, " lakh crore": 12,
}  # fmt: skip
FRAMES = ("{}", "The total is {}.", "Balance: {}", "| Net | {} |", "It is **{}**, as of 12 May", "a loss of {} so far")


def grouped(digits: str, locale: Locale) -> str:
    groups, rest = [digits[-3:]], digits[:-3]
    size = 2 if locale.is_indian else 3
    while rest:
        groups, rest = [rest[-size:], *groups], rest[:-size]
    return locale.group.join(groups)


def amounts(count: int) -> Iterator[tuple[str, Decimal, str]]:
    """Texts, and the amount and currency from which each was written."""
    chance = random.Random(56)
    for _ in range(count):
        locale, mark = chance.choice(list(LOCALES.values())), chance.choice(list(MARKS))
        scale = chance.choice(list(SCALES)) if chance.random() < 0.4 else ""
        cents = chance.randint(1, 10 ** chance.randint(2, 5 if scale else 11))
        is_below, has_cents = chance.random() < 0.6, chance.random() < 0.6
        whole, part = divmod(cents, 100)
        digits = grouped(str(whole), locale) + (f"{locale.point}{part:02}" if has_cents else "")
        form = chance.choice(locale.below if is_below else locale.above)
        if scale and ("{n}-" in form or ("{n}{mark}" in form and mark.isalpha())):
            # Nobody writes `3 million- €` or `3 millionCHF`.
            scale = ""
        text = chance.choice(FRAMES).format(form.format(mark=mark, n=digits + scale))
        number = Decimal(cents if has_cents else whole * 100) / 100 * 10 ** SCALES.get(scale, 0)
        yield text, -number if is_below else number, MARKS[mark]


def test_two_thousand_amounts_are_read_as_they_were_meant() -> None:
    wrong = []
    for text, number, currency in amounts(2_000):
        try:
            read = only_value(text.removesuffix(", as of 12 May"), "currency")
        except NormaliseError as error:
            read = error
        if read != (number, currency) or (number, currency) not in values_in(text, "currency"):
            wrong.append((text, number, read))
    assert wrong == []


UNITS = """m k bn mn kg nights km mm t l min h pieces m² stars B&B K-cups millimetres military °C % reviews dozen grand
    Mio. mrd days GB mi people""".split()


@pytest.mark.parametrize("number", ["5", "-3", "1,299", "12.5", "0,125", "2 000", "7 ½"])
def test_a_plain_number_stays_what_it_is_before_any_unit(number: str) -> None:
    alone = only_value(number, "number")
    assert [only_value(f"There are {number} {unit} left", "number") for unit in UNITS] == [alone] * len(UNITS)


@pytest.mark.parametrize(
    "text",
    ["$3 Mio.", "3 Mrd €", "€3 mrd", "$3 dozen", "3 dozen dollars", "$3 zillion", "R$ 5 milhões", "5 млн USD", "¥3億",
     "$3-5", "$3–5 million", "3-5 €", "₹1 crore 20 lakh", "5 thousand 200 dollars", "5€30", "$1,29,3", "$3 mıllion",
     "$1" + " million" * 9, "$" + "9" * 50],
)  # fmt: skip
def test_an_amount_is_read_as_a_whole_or_not_at_all(text: str) -> None:
    for answer in (text, f"It is {text}.", f"{text}, about $3"):
        with pytest.raises(NormaliseError):
            only_value(answer, "currency")


@pytest.mark.parametrize(
    ("text", "number", "currency"),
    [
        # Brackets behind a name are no sign.
        ("The oak chair ($219)", "219", "USD"), ("[Oak](/oak) ($219)", "219", "USD"), ("it is ($5)", "-5", "USD"),
        # A hyphen behind a word or a number is no sign either.
        ("price-$5", "5", "USD"), ("Item 3-$5", "5", "USD"), ("from 5€-5€", "5", "EUR"), ("10-€-Los, 4 €", "4", "EUR"),
        ("3 times $5", "5", "USD"), ("5 $3", "3", "USD"), ("$5 CAD", "5", "CAD"), ("€5 B&B", "5", "EUR"),
        ("$5 T-shirt", "5", "USD"), ("$1.299 billion", "1299000000", "USD"), ("$0.125", "0.125", "USD"),
        ("$5 nights", "5", "USD"), ("All in USD\n5 chairs, 4 £", "4", "GBP"), ("＄５００", "500", "USD"),
    ],
)  # fmt: skip
def test_what_only_stands_beside_an_amount_is_no_part_of_it(text: str, number: str, currency: str) -> None:
    assert only_value(text, "currency") == (Decimal(number), currency)


def test_sign_and_scale_of_money_count_for_its_number_too() -> None:
    assert only_value("Balance: -$5.00", "number") == -5
    assert only_value("$3M", "number") == only_value("3 million", "number") == parse_number("3million") == 3_000_000


def test_a_number_without_currency_in_brackets_is_not_negative() -> None:
    assert only_value("(5)", "number") == 5
    assert parse_number("(5)") is None
    assert parse_number("$5") is None


@pytest.mark.parametrize(
    ("page", "number"), [("Balance ($5.00)", -5), ("Oak chair ($5.00)", 5), ("Shirt $5 M L XL", 5)]
)
def test_pieces_of_a_page_side_by_side_have_every_value_that_they_may_have(page: str, number: int) -> None:
    assert (number, "USD") in values_in(page, "currency")
