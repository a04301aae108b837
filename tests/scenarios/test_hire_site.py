"""The boat hire: what its pages rely on, and what makes it hard to record."""

import importlib.util
from types import ModuleType
from typing import Any

import pytest
from starlette.testclient import TestClient

from helpers.paths import ROOT

ADA = {"email": "ada@quay.example", "password": "anchor-and-rope"}
PAGE = {"X-Client": "k3j9x"}


def load_site() -> ModuleType:
    """The scenario's `site.py`, under a name of its own: `site` is a module of Python."""
    spec = importlib.util.spec_from_file_location("hire_site", ROOT / "scenarios" / "hire" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hire() -> TestClient:
    return TestClient(load_site().create_app(), headers=PAGE)


def operation(name: str, **variables: Any) -> dict[str, Any]:
    return {"operationName": name, "variables": variables}


def call_tools(hire: TestClient, *operations: dict[str, Any]) -> dict[str, Any]:
    answer = hire.post("/graphql", json=list(operations))
    assert answer.status_code == 200
    return {each["name"]: each["data"] for each in answer.json()}


def logged_in(hire: TestClient) -> dict[str, str]:
    return {"Authorization": f"Bearer {hire.post('/api/session', json=ADA).json()['access_token']}"}


def test_operations_of_a_batch_have_the_same_result_in_any_order(hire: TestClient) -> None:
    add, look = operation("add_line", slug="oak-canoe"), operation("basket")
    assert call_tools(hire, look, add)["basket"]["total"] == 35
    assert call_tools(hire, add, look)["basket"]["total"] == 70


def test_an_entry_can_be_changed_under_the_name_that_the_page_gave_it(hire: TestClient) -> None:
    saved = call_tools(hire, operation("add_entry", text="Rope", temp="tmp-1"))["add_entry"]
    assert saved == {"temp": "tmp-1", "id": 31}
    call_tools(hire, operation("tick_entry", id="tmp-1", done=True))
    assert call_tools(hire, operation("entries"))["entries"] == [{"id": 31, "text": "Rope", "done": True}]


def test_another_page_has_another_basket(hire: TestClient) -> None:
    call_tools(hire, operation("add_line", slug="oak-canoe"))
    hire.headers["X-Client"] = "other"
    assert call_tools(hire, operation("basket"))["basket"]["lines"] == []


@pytest.mark.parametrize("path", ["/api/orders", "/api/messages", "/api/messages/41"])
def test_nothing_private_is_shown_without_a_token(hire: TestClient, path: str) -> None:
    assert hire.get(path).status_code == 401
    assert hire.get(path, headers={"Authorization": "Bearer x"}).status_code == 401
    assert hire.get(path, headers=logged_in(hire)).status_code == 200


def test_a_wrong_password_logs_nobody_in(hire: TestClient) -> None:
    assert hire.post("/api/session", json={**ADA, "password": "tar-and-oakum"}).status_code == 401


def test_a_refreshed_token_is_another_one_and_refreshes_once(hire: TestClient) -> None:
    first = hire.post("/api/session", json=ADA).json()
    second = hire.post("/api/session/refresh", json=first).json()
    assert {first["access_token"], first["refresh_token"]}.isdisjoint(second.values())
    assert hire.post("/api/session/refresh", json=first).status_code == 401


def test_an_order_that_is_sent_twice_is_placed_once(hire: TestClient) -> None:
    call_tools(hire, operation("add_line", slug="pedal-boat"))
    body = {"day": "2031-06-20", "insurance": 40, "voucher": "k7f2qd"}
    headers = {**logged_in(hire), "Idempotency-Key": "a"}
    first, again = (hire.post("/api/orders", json=body, headers=headers).json() for _ in range(2))
    assert first == again
    assert (first["number"], first["total"]) == (1004, 48)
    assert len(hire.get("/api/orders", headers=headers).json()) == 4


def test_an_order_without_a_boat_is_refused(hire: TestClient) -> None:
    body = {"day": "2031-06-20", "insurance": 0, "voucher": None}
    answer = hire.post("/api/orders", json=body, headers={**logged_in(hire), "Idempotency-Key": "a"})
    assert answer.status_code == 422


def test_a_reset_restores_everything_but_the_random_identifiers(hire: TestClient) -> None:
    headers = logged_in(hire)
    first = hire.get("/api/orders", headers=headers).json()
    hire.delete(f"/api/orders/{first[0]['id']}", headers=headers)
    hire.put("/api/plan", json={"stops": ["Seal Island", "Lighthouse", "Old Bridge", "Boathouse"]})
    assert hire.post("/reset").status_code == 204
    assert hire.get("/api/plan").json() == ["Boathouse", "Old Bridge", "Lighthouse", "Seal Island"]
    assert hire.get("/api/orders", headers=headers).status_code == 401
    orders = hire.get("/api/orders", headers=logged_in(hire)).json()
    assert [order["status"] for order in orders] == ["confirmed"] * 3
    assert {order["id"] for order in orders}.isdisjoint(order["id"] for order in first)


@pytest.mark.parametrize("path", ["/api/sheets/0", "/api/vouchers/x", "/api/messages/7", "/api/orders/x"])
def test_what_does_not_exist_is_not_found(hire: TestClient, path: str) -> None:
    assert hire.get(path, headers=logged_in(hire)).status_code == 404


def test_every_address_shows_the_same_page(hire: TestClient) -> None:
    assert hire.get("/boats/oak-canoe").text == hire.get("/").text
