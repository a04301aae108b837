"""The shop's routes. A visitor's cart and cookie choice live in their own cookies: the server keeps nothing."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates

from . import articles, catalogue
from .catalogue import PAGE_SIZE, Query

HERE = Path(__file__).parent
DELIVERIES = {"standard": ("Standard", 5), "express": ("Express", 13)}
MAX_PIECES = 9

Cart = dict[str, int]


def read_cart(request: Request) -> Cart:
    """The cart in the visitor's cookie, without invalid entries."""
    lines = (line.partition(":") for line in request.cookies.get("cart", "").split("."))
    return {
        slug: min(int(pieces), MAX_PIECES)
        for slug, _, pieces in lines
        if slug in catalogue.BY_SLUG and pieces.isdecimal() and int(pieces[:3]) > 0
    }


def keep_cart(response: Response, cart: Cart) -> Response:
    """`response` with the cart in its cookie."""
    response.set_cookie("cart", ".".join(f"{slug}:{pieces}" for slug, pieces in cart.items()), samesite="lax")
    return response


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form."""
    return dict(parse_qsl((await request.body()).decode(errors="replace"), keep_blank_values=True))


def cart_lines(cart: Cart) -> list[dict[str, Any]]:
    """The cart as rows: product, pieces and the sum of the line."""
    rows = ((catalogue.BY_SLUG[slug], pieces) for slug, pieces in cart.items())
    return [{"product": product, "pieces": pieces, "sum": product.price * pieces} for product, pieces in rows]


def page_context(request: Request) -> dict[str, Any]:
    """The variables that every page needs."""
    return {
        "cart_count": sum(read_cart(request).values()),
        "cookie_choice": request.cookies.get("cookies"),
        "categories": catalogue.CATEGORIES,
        "has_tool_bug": request.app.state.has_tool_bug,
    }


templates = Jinja2Templates(directory=HERE / "templates", context_processors=[page_context])


def show(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    """One page."""
    return templates.TemplateResponse(request, name, context, status_code=status)


async def home(request: Request) -> Response:
    """The start page."""
    featured = [catalogue.BY_SLUG[slug] for slug in ("harbour-desk-lamp", "sorrel-armchair", "tide-wool-rug")]
    return show(request, "home.html", featured=featured)


async def search(request: Request) -> Response:
    """Results with facets, sort order and pages."""
    query = Query.from_params(request.query_params)
    results = query.results()
    pages = max(1, -(-len(results) // PAGE_SIZE))
    page = min(query.page, pages)
    kept = [(key, value) for key, value in request.query_params.multi_items() if key != "page" and value]
    return show(
        request,
        "search.html",
        query=query,
        results=results[(page - 1) * PAGE_SIZE : page * PAGE_SIZE],
        total=len(results),
        page=page,
        pages=[(number, "?" + urlencode([*kept, ("page", str(number))])) for number in range(1, pages + 1)],
        chips=chips(query, kept),
        counts={name: catalogue.facet_counts(catalogue.PRODUCTS, name) for name in ("category", "colour", "material")},
        shop=catalogue,
    )


def chips(query: Query, kept: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The filters in force: a label, and the address without it."""
    labels = {
        "min": f"From €{query.low}",
        "max": f"Up to €{query.high}",
        "rating": catalogue.RATINGS[query.rating],
        "stock": "In stock",
    }
    shown = [pair for pair in kept if pair[0] not in ("q", "sort")]
    return [
        (labels.get(key, value), "?" + urlencode([pair for pair in kept if pair != (key, value)]))
        for key, value in shown
    ]


async def suggest(request: Request) -> Response:
    """Suggestions while typing."""
    found = catalogue.suggestions(request.query_params.get("q", "")[:80])
    return JSONResponse([{"name": product.name, "url": f"/product/{product.slug}"} for product in found])


async def deal(request: Request) -> Response:
    """The deal of the day, which the start page requests after it has loaded."""
    await asyncio.sleep(0.3)
    return show(request, "deal.html", product=catalogue.DEAL)


async def product(request: Request) -> Response:
    """One product."""
    found = catalogue.BY_SLUG.get(request.path_params["slug"])
    return show(request, "product.html", product=found) if found else await missing(request)


async def reviews(request: Request) -> Response:
    """The reviews, as the product page shows them in a frame."""
    found = catalogue.BY_SLUG.get(request.path_params["slug"])
    return show(request, "reviews.html", product=found) if found else await missing(request)


async def add(request: Request) -> Response:
    """Put pieces of a product into the cart."""
    form = await read_form(request)
    slug, pieces = form.get("slug", ""), form.get("pieces", "1")
    if slug not in catalogue.BY_SLUG or not pieces.isdecimal() or not 0 < int(pieces[:4]) <= MAX_PIECES:
        return JSONResponse({"error": f"Choose between 1 and {MAX_PIECES} pieces."}, status_code=400)
    cart = read_cart(request)
    cart[slug] = min(MAX_PIECES, cart.get(slug, 0) + int(pieces))
    message = f"{pieces} × {catalogue.BY_SLUG[slug].name} added to your cart"
    return keep_cart(JSONResponse({"message": message, "count": sum(cart.values())}), cart)


async def show_cart(request: Request) -> Response:
    """The cart."""
    lines = cart_lines(read_cart(request))
    return show(request, "cart.html", lines=lines, total=sum(line["sum"] for line in lines))


async def change_cart(request: Request) -> Response:
    """Remove one line, or everything."""
    form = await read_form(request)
    cart = read_cart(request)
    if request.path_params["what"] == "clear":
        cart.clear()
    else:
        cart.pop(form.get("slug", ""), None)
    return keep_cart(RedirectResponse("/cart", status_code=303), cart)


async def checkout(request: Request) -> Response:
    """The checkout form, and the page after it is sent."""
    cart = read_cart(request)
    if not cart:
        return RedirectResponse("/cart", status_code=303)
    lines = cart_lines(cart)
    if request.method == "GET":
        return show(request, "checkout.html", lines=lines, deliveries=DELIVERIES, error=None)
    form = await read_form(request)
    name, delivery = form.get("name", "").strip()[:60], form.get("delivery", "")
    if not name or delivery not in DELIVERIES:
        error = "Please enter your name and choose a delivery."
        return show(request, "checkout.html", 422, lines=lines, deliveries=DELIVERIES, error=error)
    label, cost = DELIVERIES[delivery]
    total = sum(line["sum"] for line in lines) + cost
    number = hashlib.sha256(repr(sorted(cart.items())).encode()).hexdigest()[:6].upper()
    page = show(request, "order.html", lines=lines, buyer=name, delivery=label, total=total, number=number)
    return keep_cart(page, {})


async def compare(request: Request) -> Response:
    """All products of a category in one table, sorted in the browser."""
    category = request.query_params.get("category", "Lamps")
    rows = [product for product in catalogue.PRODUCTS if product.category == category]
    return show(request, "compare.html", rows=rows, category=category) if rows else await missing(request)


async def help_home(request: Request) -> Response:
    """The help centre, with its own search."""
    text = request.query_params.get("q", "").strip()[:80]
    found = [article for article in articles.ARTICLES if article.matches(text)] if text else []
    return show(request, "help.html", text=text, found=found, topics=articles.TOPICS, articles=articles.ARTICLES)


async def article(request: Request) -> Response:
    """One help article."""
    found = articles.BY_SLUG.get(request.path_params["slug"])
    return show(request, "article.html", article=found) if found else await missing(request)


async def stores(request: Request) -> Response:
    """The store finder, a page with a frame in it."""
    return show(request, "stores.html")


async def store_frame(request: Request) -> Response:
    """The content of that frame: a choice of cities and, when one is chosen, its store."""
    city = request.query_params.get("city", "")
    return show(request, "store_frame.html", stores=articles.STORES, city=city, store=articles.STORES.get(city))


async def care(request: Request) -> Response:
    """A care guide; links to it open a new tab."""
    material = request.path_params["material"]
    if material not in articles.CARE:
        return await missing(request)
    return show(request, "care.html", material=material, advice=articles.CARE[material])


async def missing(request: Request, error: Exception | None = None) -> Response:
    """The page for dead links."""
    return show(request, "404.html", 404)


def create_app(*, has_tool_bug: bool = False) -> Starlette:
    """The whole site as an ASGI application. With `has_tool_bug`, its tool `add_to_cart` always adds one piece."""
    app = Starlette(
        routes=[
            Route("/", home),
            Route("/search", search),
            Route("/api/suggest", suggest),
            Route("/api/deal", deal),
            Route("/product/{slug}", product),
            Route("/frame/reviews/{slug}", reviews),
            Route("/cart", show_cart),
            Route("/cart/add", add, methods=["POST"]),
            Route("/cart/{what}", change_cart, methods=["POST"]),
            Route("/checkout", checkout, methods=["GET", "POST"]),
            Route("/compare", compare),
            Route("/help", help_home),
            Route("/help/stores", stores),
            Route("/help/{slug}", article),
            Route("/frame/stores", store_frame),
            Route("/care/{material}", care),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        exception_handlers={404: missing},
    )
    app.state.has_tool_bug = has_tool_bug
    return app
