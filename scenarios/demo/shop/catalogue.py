"""The shop's goods: fixed data and the queries over it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PAGE_SIZE = 9
SORTS = {
    "relevance": "Relevance",
    "price-asc": "Price: low to high",
    "price-desc": "Price: high to low",
    "rating": "Customer rating",
    "name": "Name: A to Z",
}
RATINGS = {"": "Any rating", "3": "3 stars and up", "4": "4 stars and up"}
SWATCHES = {
    "Black": "#2b2b2b",
    "White": "#f4f1ea",
    "Green": "#4f7358",
    "Red": "#b3473c",
    "Blue": "#3f6590",
    "Natural": "#c79a63",
    "Yellow": "#d9a63a",
}


@dataclass(frozen=True)
class Product:
    """One product; `price` in whole euros, `stock` in pieces."""

    name: str
    category: str
    colour: str
    material: str
    price: int
    rating: float
    stock: int

    @property
    def slug(self) -> str:
        """The name in addresses."""
        return self.name.lower().replace(" ", "-")

    @property
    def swatch(self) -> str:
        """The colour of its picture."""
        return SWATCHES[self.colour]


_ROWS = """
Aurora Desk Lamp|Lamps|Black|Metal|59|4.6|14
Aurora Floor Lamp|Lamps|Black|Metal|129|4.4|6
Aurora Wall Lamp|Lamps|White|Metal|49|4.1|9
Lantern Table Lamp|Lamps|Green|Glass|72|3.9|11
Moon Pendant Lamp|Lamps|White|Paper|39|4.2|25
Harbour Desk Lamp|Lamps|Blue|Metal|64|4.8|3
Harbour Clip Lamp|Lamps|Blue|Metal|29|3.7|40
Ember Bedside Lamp|Lamps|Red|Glass|45|4.3|12
Ember Floor Lamp|Lamps|Red|Glass|149|4.0|2
Twig Reading Lamp|Lamps|Natural|Oak|89|4.7|8
Twig Tripod Lamp|Lamps|Natural|Oak|179|4.5|5
Studio Task Lamp|Lamps|White|Metal|99|3.4|7
Fjord Writing Desk|Desks|Natural|Oak|349|4.7|4
Fjord Corner Desk|Desks|Natural|Oak|489|4.2|2
Fjord Wall Desk|Desks|White|Oak|259|3.8|6
Quill Compact Desk|Desks|Black|Walnut|299|4.5|5
Quill Standing Desk|Desks|Black|Walnut|629|4.9|1
Atlas Drafting Desk|Desks|Natural|Birch|379|4.0|3
Pebble Kids Desk|Desks|Green|Birch|149|4.4|10
Harvest Oak Desk|Desks|Natural|Oak|399|4.3|7
Fjord Reading Chair|Chairs|Natural|Oak|219|4.8|6
Fjord Dining Chair|Chairs|Black|Oak|119|4.1|18
Quill Office Chair|Chairs|Black|Metal|189|3.6|9
Pebble Kids Chair|Chairs|Green|Birch|59|4.5|15
Sorrel Armchair|Chairs|Red|Wool|329|4.6|3
Sorrel Footstool|Chairs|Red|Wool|99|4.2|8
Drift Rocking Chair|Chairs|White|Birch|249|4.4|4
Birch Wall Shelf|Shelves|Natural|Birch|45|4.3|22
Birch Book Tower|Shelves|Natural|Birch|139|4.0|6
Walnut Wall Shelf|Shelves|Black|Walnut|65|4.5|13
Atlas Map Shelf|Shelves|Natural|Oak|199|3.9|5
Ladder Plant Shelf|Shelves|Green|Metal|79|4.1|11
Glass Cabinet Shelf|Shelves|White|Glass|259|3.5|2
Sorrel Wool Rug|Rugs|Red|Wool|189|4.6|5
Sorrel Runner Rug|Rugs|Red|Wool|89|3.3|7
Tide Wool Rug|Rugs|Blue|Wool|199|4.4|6
Tide Round Rug|Rugs|Blue|Cotton|129|3.8|9
Meadow Cotton Rug|Rugs|Green|Cotton|79|4.2|12
Ember Kitchen Rug|Rugs|Red|Cotton|39|4.1|20
Dune Jute Rug|Rugs|Yellow|Jute|69|4.0|16
"""


def _products() -> tuple[Product, ...]:
    rows = (line.split("|") for line in _ROWS.strip().splitlines())
    return tuple(
        Product(name, category, colour, material, int(price), float(rating), int(stock))
        for name, category, colour, material, price, rating, stock in rows
    )


PRODUCTS = _products()
BY_SLUG: Mapping[str, Product] = {product.slug: product for product in PRODUCTS}
CATEGORIES = tuple(dict.fromkeys(product.category for product in PRODUCTS))
COLOURS = tuple(sorted({product.colour for product in PRODUCTS}))
MATERIALS = tuple(sorted({product.material for product in PRODUCTS}))
DEAL = BY_SLUG["fjord-reading-chair"]


@dataclass(frozen=True)
class Query:
    """A visitor's query on the search page. Prices are in whole euros."""

    text: str = ""
    categories: tuple[str, ...] = ()
    colours: tuple[str, ...] = ()
    materials: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    rating: str = ""
    in_stock: bool = False
    sort: str = "relevance"
    page: int = 1

    @classmethod
    def from_params(cls, params: Any) -> "Query":
        """From a query string, without invalid parts."""

        def number(key: str) -> int | None:
            value = params.get(key, "")
            return int(value) if value.isdecimal() and len(value) < 7 else None

        sort, rating = params.get("sort", ""), params.get("rating", "")
        return cls(
            text=params.get("q", "").strip()[:80],
            categories=tuple(value for value in params.getlist("category") if value in CATEGORIES),
            colours=tuple(value for value in params.getlist("colour") if value in COLOURS),
            materials=tuple(value for value in params.getlist("material") if value in MATERIALS),
            low=number("min"),
            high=number("max"),
            rating=rating if rating in RATINGS else "",
            in_stock=params.get("stock") == "1",
            sort=sort if sort in SORTS else "relevance",
            page=max(1, number("page") or 1),
        )

    def matches(self, product: Product) -> bool:
        """Whether `product` is among the results."""
        haystack = f"{product.name} {product.category} {product.material} {product.colour}".lower()
        return (
            all(word.rstrip("s") in haystack for word in self.text.lower().split())
            and (not self.categories or product.category in self.categories)
            and (not self.colours or product.colour in self.colours)
            and (not self.materials or product.material in self.materials)
            and (self.low is None or product.price >= self.low)
            and (self.high is None or product.price <= self.high)
            and (not self.rating or product.rating >= int(self.rating))
            and (not self.in_stock or product.stock > 2)
        )

    def results(self) -> list[Product]:
        """All results, in the order asked for."""
        found = [product for product in PRODUCTS if self.matches(product)]
        keys: dict[str, Any] = {
            "price-asc": lambda product: (product.price, product.name),
            "price-desc": lambda product: (-product.price, product.name),
            "rating": lambda product: (-product.rating, product.name),
            "name": lambda product: product.name,
        }
        return sorted(found, key=keys[self.sort]) if self.sort in keys else found


def suggestions(text: str, limit: int = 6) -> list[Product]:
    """Products whose name holds every word of `text`."""
    words = text.lower().split()
    if not words:
        return []
    return [product for product in PRODUCTS if all(word in product.name.lower() for word in words)][:limit]


def facet_counts(products: Iterable[Product], attribute: str) -> dict[str, int]:
    """How many of `products` have each value of `attribute`."""
    counts: dict[str, int] = {}
    for product in products:
        value = getattr(product, attribute)
        counts[value] = counts.get(value, 0) + 1
    return counts
