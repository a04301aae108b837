import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from starlette.testclient import TestClient

DEMO = Path(__file__).parents[2] / "scenarios" / "demo"


def load_shop() -> ModuleType:
    """The shop's `app` module, loaded from the scenario's folder under a name of its own."""
    spec = importlib.util.spec_from_file_location("demo_shop", DEMO / "shop" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["demo_shop"] = package
    spec.loader.exec_module(package)
    return importlib.import_module("demo_shop.app")


@pytest.fixture
def shop() -> Iterator[TestClient]:
    with TestClient(load_shop().create_app()) as client:
        yield client


PAGES = [
    ("/", "Furniture and lamps"),
    ("/search", "All products"),
    ("/search?q=lamp", "Results for lamp"),
    ("/product/aurora-desk-lamp", "Aurora Desk Lamp"),
    ("/cart", "Your cart"),
    ("/compare", "Compare lamps"),
    ("/help", "Help centre"),
    ("/help/returns", "Returns and refunds"),
    ("/help/stores", "Our stores"),
    ("/care/oak", "Care guide: oak"),
]


@pytest.mark.parametrize(("path", "title"), PAGES)
def test_every_page_answers_under_its_title(shop: TestClient, path: str, title: str) -> None:
    page = shop.get(path)
    assert page.status_code == 200
    assert f"<title>{title} – Lumen &amp; Oak</title>" in page.text


@pytest.mark.parametrize("path", ["/", "/search", "/help", "/product/aurora-desk-lamp"])
def test_no_page_asks_another_host_for_anything(shop: TestClient, path: str) -> None:
    text = shop.get(path).text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", text)


@pytest.mark.parametrize("path", ["/catalogue/spring", "/help/return-form", "/product/none", "/care/none", "/nowhere"])
def test_a_dead_link_says_so_and_never_repeats_the_address(shop: TestClient, path: str) -> None:
    page = shop.get(path)
    assert page.status_code == 404
    assert "Page not found" in page.text
    assert path not in page.text


def names(html: str) -> list[str]:
    return re.findall(r"<h3><a [^>]*>([^<]+)</a></h3>", html)


def prices(html: str) -> list[int]:
    return [int(price) for price in re.findall(r'<p class="price">€(\d+)</p>', html)]


def test_facets_narrow_the_results(shop: TestClient) -> None:
    page = shop.get("/search?category=Desks&material=Oak&max=400").text
    assert names(page) == ["Fjord Writing Desk", "Fjord Wall Desk", "Harvest Oak Desk"]
    assert re.search(r'value="Oak" checked', page)
    assert not re.search(r'value="Walnut" checked', page)


@pytest.mark.parametrize(("sort", "turned"), [("price-asc", False), ("price-desc", True)])
def test_prices_stand_in_the_order_asked_for(shop: TestClient, sort: str, turned: bool) -> None:
    result = prices(shop.get(f"/search?sort={sort}").text)
    assert len(result) == 9
    assert result == sorted(result, reverse=turned)


def test_pages_hold_every_product_once(shop: TestClient) -> None:
    results = [name for page in range(1, 6) for name in names(shop.get(f"/search?page={page}").text)]
    assert len(results) == len(set(results)) == 40


@pytest.mark.parametrize("query", ["page=x", "min=-1", "max=9999999999", "sort=drop", "category=%00", "page=999"])
def test_an_invalid_query_is_ignored(shop: TestClient, query: str) -> None:
    assert shop.get(f"/search?{query}").status_code == 200


def test_suggestions_hold_what_was_typed(shop: TestClient) -> None:
    document = shop.get("/api/suggest?q=harbour").json()
    assert [item["name"] for item in document] == ["Harbour Desk Lamp", "Harbour Clip Lamp"]


def test_what_is_searched_for_is_shown_as_text(shop: TestClient) -> None:
    assert "<b>bold</b>" not in shop.get("/search?q=%3Cb%3Ebold%3C/b%3E").text


def test_the_cart_keeps_what_is_added_and_forgets_what_is_removed(shop: TestClient) -> None:
    added = shop.post("/cart/add", data={"slug": "tide-wool-rug", "pieces": "2"})
    assert added.json() == {"message": "2 × Tide Wool Rug added to your cart", "count": 2}
    assert "€398" in shop.get("/cart").text
    shop.post("/cart/remove", data={"slug": "tide-wool-rug"})
    assert "Your cart is empty." in shop.get("/cart").text


@pytest.mark.parametrize("pieces", ["0", "-1", "10", "x", ""])
def test_an_invalid_amount_is_refused(shop: TestClient, pieces: str) -> None:
    assert shop.post("/cart/add", data={"slug": "tide-wool-rug", "pieces": pieces}).status_code == 400


def test_two_visitors_have_two_carts() -> None:
    app = load_shop().create_app()
    with TestClient(app) as first, TestClient(app) as second:
        first.post("/cart/add", data={"slug": "tide-wool-rug"})
        assert "Tide Wool Rug" in first.get("/cart").text
        assert "Your cart is empty." in second.get("/cart").text


def test_an_order_is_confirmed_and_empties_the_cart(shop: TestClient) -> None:
    shop.post("/cart/add", data={"slug": "moon-pendant-lamp"})
    page = shop.post("/checkout", data={"name": "Ada", "delivery": "express"})
    assert "your order is confirmed" in page.text
    assert "Delivery: Express" in page.text
    assert "Your cart is empty." in shop.get("/cart").text


def test_an_order_without_a_name_is_sent_back(shop: TestClient) -> None:
    shop.post("/cart/add", data={"slug": "moon-pendant-lamp"})
    page = shop.post("/checkout", data={"delivery": "express"})
    assert page.status_code == 422
    assert "Please enter your name" in page.text


def test_the_help_centre_finds_articles(shop: TestClient) -> None:
    page = shop.get("/help?q=invoice").text
    assert "1 article about “invoice”" in page
    assert "/help/invoice" in page


def test_the_store_frame_shows_hours_for_a_city(shop: TestClient) -> None:
    assert "Opening hours: Monday to Saturday, 10:00 to 19:00" in shop.get("/frame/stores?city=Lisbon").text
