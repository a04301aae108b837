"""Numbers and amounts of money in free text: sign, separators, words of scale, currency. Pure.

What stands around the digits belongs to them: `-$5`, `USD -5` and `($5)` are less than nothing, `$3 million` is a
million times `$3`. An amount that cannot be read (`3 Mio. €`, `$3-5`) is found without a value, and never read in part.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from types import MappingProxyType

_MAX_DIGITS = 40
_MAX_POWER = 30
# Separators of thousands: spaces (ordinary, no-break, thin) and apostrophes, as in Switzerland.
_BLANK = " \u00a0\u2009\u202f"
_GAP = f"{_BLANK}'’"
_MINUS = "-\u2010\u2011\u2012\u2013\u2212"
# The forms of wide scripts, and the separators of Arabic scripts.
_SAME = MappingProxyType({0xFF01 + at: 0x21 + at for at in range(94)} | str.maketrans("￡￥￦٫٬،⹁", "£¥₩.,,,"))
# Possessive, because answers are hostile text (`|(?!)`: see `shared.snapshot`).
_DIGITS = re.compile(rf"(?<![\d_.,])(?:\d{{1,3}}(?:[{_GAP}]\d{{3}}|(?!))++(?!\d)(?:[.,]\d++)?|\d++(?:[.,]\d++|(?!))*+)")
# Groups of three with the same mark, then perhaps decimals with the other one; groups of two and three as in India.
_GROUPED = re.compile(r"(?P<head>\d{1,3})(?P<mark>[.,])\d{3}(?P<more>(?:(?P=mark)\d{3})*(?:(?!(?P=mark))[.,]\d+)?)")
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?")
_PLAIN = re.compile(r"\d+(?:[.,]\d+)?")

_UNITS: Mapping[str, str] = MappingProxyType(
    {
        "€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "₹": "INR", "₩": "KRW", "₽": "RUB", "₺": "TRY", "₪": "ILS",
        "₫": "VND", "₴": "UAH", "₿": "BTC", "us$": "USD", "a$": "AUD", "c$": "CAD", "r$": "BRL", "nz$": "NZD",
        "hk$": "HKD", "s$": "SGD", "jp¥": "JPY", "zł": "PLN", "kč": "CZK", "kr": "KR", "kr.": "KR", "fr.": "CHF",
        "euro": "EUR", "euros": "EUR", "dollar": "USD", "dollars": "USD", "pound": "GBP", "pounds": "GBP", "yen": "JPY",
    }
)  # fmt: skip
_CODES = frozenset(
    """AED ARS AUD BGN BRL BTC CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MXN MYR NGN NOK
    NZD PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR""".split()
)
_UNIT = "|".join(re.escape(unit) for unit in sorted((*_UNITS, *_CODES), key=len, reverse=True))
_MARKS = "".join(unit for unit in _UNITS if len(unit) == 1)

# Powers of ten.
_SCALES: Mapping[str, int] = MappingProxyType(
    {"hundred": 2, "thousand": 3, "lakh": 5, "lac": 5, "million": 6, "crore": 7, "billion": 9, "trillion": 12}
)
# With a currency only: `5 m` may be metres.
_SHORT_SCALES: Mapping[str, int] = MappingProxyType({"k": 3, "m": 6, "mn": 6, "b": 9, "bn": 9})
# Words of scale that make an amount unreadable: their value depends on the language, or nobody writes them often.
_OTHER_SCALES = "|".join(
    (
        r"\w*illions?|dozens?|doz|grand|mm|cr|tn?",
        # Million, milliard, billion, trillion and thousand of languages with Latin letters, and their short forms.
        r"(?:m|b|tr)il+[ijhy]*[aáeouóõãå]\w*|m[ij]l+[ji]?|mil[ae]|mille|millier|bil[lj]?|bi[on]?|mi[aoe]?|mrd|mldr?|ml[nr]d?",
        r"md[rs]?|bln|trl?n|tri|tsd|tausend|duizend|tusen[dt]?|tusind|tuhat\w*|t[iyu]s\w{0,5}|tūkst\w*|hilj\w*|mii|ezer",
        r"juta|jt|ribu|rb|nghìn|triệu|tỷ",
        r"тыс\w*|тис\w*|хил\w*|м[іи]?л[льнриі]\w*|млрд|тр[иі]?л[льнйі]\w*|χιλ\w*|εκ(?:ατ\w+)?|δισ\w*|τρισ\w*",
        r"[千万萬亿億兆京百천만억조]+|हज़ार|लाख|करोड़|अरब|হাজার|লাখ|কোটি|พัน|หมื่น|แสน|ล้าน",
        r"ألف|آلاف|مليون|ملايين|مليار|ترليون|هزار|میلیون|میلیارد|تریلیون|אלף|מיליון|מיליארד|טריליון",
    )
)
_SIGN = rf"(?<![\w.,)%{_MARKS}])(?:[{_MINUS}+]|(?:minus|negative)[{_BLANK}])"
_BEFORE = re.compile(
    rf"(?P<sign>{_SIGN})?(?P<open>\((?P<inner>[{_MINUS}+])?)?"
    rf"(?:(?<![^\W_])(?=[^\d\s])(?P<unit>{_UNIT})(?:(?P<after>[{_MINUS}])[{_GAP}]?|[{_GAP}]?(?P<late>\()?(?P<last>[{_MINUS}+])?))?\Z",
    re.IGNORECASE,
)
_MAX_BEFORE_CHARS = 24
# `$5 B&B`, `$5 T-shirt` and `5 m²` have no scale.
_END = r"(?!\w|[&^]|-[^\W\d])"
_AFTER = re.compile(
    rf"(?P<scales>(?:[{_BLANK}*-]*+(?:{'|'.join(_SCALES)})s?(?!\w)|(?!))*+)"
    rf"(?:[{_BLANK}]*+(?P<short>{'|'.join(sorted(_SHORT_SCALES, key=len, reverse=True))})"
    rf"(?:(?=[{_GAP}]?(?:{_UNIT})(?![^\W_]))|{_END}))?"
    rf"(?:[{_BLANK}*-]*+(?P<other>{_OTHER_SCALES}){_END}\.?)?(?P<behind>[{_MINUS}](?=[.,;:!?*)]*(?:\s|$)))?(?P<quantity>)"
    # A mark before the next digits belongs to them.
    rf"(?:(?:(?P<unit>{_UNIT})|[{_GAP}](?P<far>{_UNIT})(?!\d))(?![^\W\d_]))?(?P<amount>)(?P<close>\))?",
    re.IGNORECASE,
)
_SCALE = re.compile("|".join(_SCALES), re.IGNORECASE)
# Brackets behind a name or a sentence add something; behind these verbs, and anywhere else, they are a sign.
_ASIDE = re.compile(r"(?:\w|[)\]\"'”’»%.!?](?=[\s*]))(?<!\bis)(?<!\bare)(?<!\bwas)(?<!\bwere)(?<!\bof)[\s*]*$")
# Between the halves of one amount: `$3-5`, `5€30`, `₹1 crore 20 lakh`.
_RANGE = re.compile(r"[‐-―-]?")
_SUM = re.compile(r"\s(?:and\s)?")


@dataclass(frozen=True)
class Amount:
    """Digits and what belongs to them, at `start` to `end` of a text.

    `power`: of ten, from words of scale; `None` if the amount cannot be read. `is_loose`: the sign or the scale could
    belong to something else where a page's pieces of text stand side by side.
    """

    start: int
    end: int
    digits: str
    is_negative: bool
    power: int | None
    unit: str | None
    is_unit_before: bool
    is_loose: bool

    def value(self, *, as_money: bool) -> Decimal | None:
        """The number; `None` if it cannot be read. As money, `1.299` is more than a thousand."""
        if self.power is None:
            return None
        number = _decimal(self.digits, self.power, is_grouped=as_money and not self.power)
        return number.copy_negate() if number and self.is_negative else number

    def values(self, *, as_money: bool) -> Iterator[Decimal]:
        """Every number that a page with this text may show."""
        number = self.value(as_money=as_money)
        if number is not None:
            yield number
        if number is None or self.is_loose:
            for each in (number, _decimal(self.digits, 0, is_grouped=as_money)):
                if each is not None:
                    yield from (each, each.copy_negate())


def amounts_in(text: str) -> list[Amount]:
    """All numbers and amounts of a text, in its order.

    >>> [(str(amount.value(as_money=True)), amount.unit) for amount in amounts_in("5 for $1,299.50 or 2 million JPY")]
    [('5', None), ('1299.50', 'USD'), ('2000000', 'JPY')]
    """
    text = text.translate(_SAME)
    found = [amount for match in _DIGITS.finditer(text) if (amount := _amount(text, match)) is not None]
    halves = {at + half for at, pair in enumerate(pairwise(found)) if _are_one(text, *pair) for half in (0, 1)}
    return [replace(each, power=None) if at in halves else each for at, each in enumerate(found)]


def _are_one(text: str, first: Amount, second: Amount) -> bool:
    """Whether two amounts, of which one has the currency of both, are halves of one."""
    if (first.unit is None) == (second.unit is None) or second.is_unit_before:
        return False
    between = text[first.end : second.start]
    is_sum = bool(first.power) and (bool(second.power) or first.unit is None)
    return bool(_RANGE.fullmatch(between) or (is_sum and _SUM.fullmatch(between)))


def _amount(text: str, match: re.Match[str]) -> Amount | None:
    before = _BEFORE.search(text[max(0, match.start() - _MAX_BEFORE_CHARS) : match.start()])
    after = _AFTER.match(text, match.end())
    assert before is not None
    assert after is not None
    ending = after["unit"] or after["far"]
    unit = _currency(before["unit"], ending)
    if unit:
        signs = [before[part] for part in ("sign", "inner", "after", "last")] + [after["behind"]]
        short, end = after["short"], "quantity"
        start = match.start() - len(before[0])
    else:
        # Without a currency, brackets are only brackets.
        signs, short, end = [before["inner"] if before["open"] else before["sign"]], None, "scales"
        start = match.start() - len(signs[0] or "")
    is_cut = start == match.start() and re.match(r"\w", text[start - 1 : start])
    if is_cut or (not ending and re.match(r"\w", text[after.end(end) : after.end(end) + 1])):
        # Part of a word.
        return None
    is_bracketed = bool(unit and after["close"] and (before["open"] or before["late"]))
    is_aside = is_bracketed and not before["late"] and _ASIDE.search(text[max(0, start - _MAX_BEFORE_CHARS) : start])
    words = [word.casefold() for word in _SCALE.findall(after["scales"])]
    # Some letters match a word's pattern and are not letters of the word.
    power = sum(_SCALES.get(word, _MAX_POWER) for word in words) + (_SHORT_SCALES[short.casefold()] if short else 0)
    return Amount(
        start=start,
        end=after.end("amount" if unit else "scales"),
        digits=match[0],
        is_negative=any(sign and sign != "+" for sign in signs) or (is_bracketed and not is_aside),
        power=power if power < _MAX_POWER and not (unit and after["other"]) else None,
        unit=unit,
        is_unit_before=bool(before["unit"]),
        is_loose=is_bracketed or short is not None,
    )


def _currency(before: str | None, after: str | None) -> str | None:
    if before and after and before in _MARKS and after.upper() in _CODES:
        # The code says more: `$5 CAD`.
        before = None
    unit = before or after or ""
    return unit.upper() if unit.upper() in _CODES else _UNITS.get(unit.casefold())


def _decimal(digits: str, power: int, *, is_grouped: bool) -> Decimal | None:
    """Digits with separators as a number.

    The last of two different separators is the decimal separator. A comma before exactly three digits separates
    thousands, a single point there only if `is_grouped`.
    """
    plain = re.sub(f"[{_GAP}]", "", digits)
    if len(plain) > _MAX_DIGITS:
        return None
    grouped = _GROUPED.fullmatch(digits)
    if grouped and (grouped["more"] or (grouped["head"] != "0" and (grouped["mark"] == "," or is_grouped))):
        plain = plain.replace(grouped["mark"], "")
    elif _INDIAN.fullmatch(digits):
        plain = plain.replace(",", "")
    elif not _PLAIN.fullmatch(plain):
        return None
    # Exact, where arithmetic would round, and without an exponent for readers.
    return Decimal(f"{Decimal(plain.replace(',', '.') + f'e{power}'):f}")
