"""Multimodal-Mind2Web rows as references."""

import base64
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import JPEG
from judge.plugins.steps.mind2web import is_mind2web, read_rows, snapshot_of
from shared.errors import ConfigError
from shared.snapshot import parse_snapshot

HTML = (
    '<html backend_node_id="1"><body backend_node_id="2"><div backend_node_id="3">'
    '<a backend_node_id="4" aria_label="Home: &quot;shop&quot;">x</a>'
    '<text backend_node_id="5">Hello</text>'
    '<input backend_node_id="6" type="checkbox" input_checked="true" name="oak">'
    '<select backend_node_id="7"><option backend_node_id="8" option_selected="true">Oak</option></select>'
    '<div role="searchbox" backend_node_id="9" placeholder="Search"></div>'
    "</div></body></html>"
)
REPRS = ["[link]  Home -> CLICK", "[searchbox]  Search -> TYPE: tent", "[button]  Buy -> CLICK"]


def candidate(node_id: int, box: str = "10,20,30,40") -> str:
    attributes = json.dumps({"backend_node_id": str(node_id), "bounding_box_rect": box})
    return json.dumps({"tag": "div", "attributes": attributes, "backend_node_id": str(node_id)})


def a_row(**changes: Any) -> dict[str, Any]:
    """A row as the dataset has it: JSON in texts."""
    row = {
        "action_uid": "u1",
        "annotation_id": "0a1b-2c",
        "confirmed_task": "Find a tent",
        "website": "shop",
        "cleaned_html": HTML,
        "operation": json.dumps({"original_op": "TYPE", "op": "TYPE", "value": "tent"}),
        "pos_candidates": [candidate(9), candidate(3)],
        "neg_candidates": [candidate(4, "1.4,2.6,3,4")],
        "action_reprs": REPRS,
        "target_action_index": "1",
        "screenshot": {"bytes": base64.b64encode(JPEG * 200).decode(), "path": None},
    }
    return row | changes


def read(path: Path, *rows: dict[str, Any]) -> list[Any]:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return list(read_rows(path))


def test_a_row_is_a_reference_with_every_accepted_element(tmp_path: Path) -> None:
    ((reference, image),) = read(tmp_path / "rows.jsonl", a_row())
    assert (reference.task_id, reference.task, reference.website) == ("0a1b-2c", "Find a tent", "shop")
    assert (reference.accepted, reference.index) == (("e9", "e3"), 1)
    assert (reference.operation.op, reference.operation.value) == ("TYPE", "tent")
    assert image == JPEG * 200


def test_only_actions_before_the_step_are_history(tmp_path: Path) -> None:
    # The whole list would name the answer.
    ((reference, _),) = read(tmp_path / "rows.jsonl", a_row())
    assert reference.history == (REPRS[0],)
    ((first, _),) = read(tmp_path / "rows.jsonl", a_row(target_action_index=0))
    assert first.history == ()


def test_the_html_becomes_a_snapshot_with_a_ref_for_every_id() -> None:
    snapshot = parse_snapshot(snapshot_of(HTML, {"e4": "1,3,3,4"}))
    assert [node.ref for node in snapshot.nodes if node.ref] == [f"e{number}" for number in range(1, 10)]
    node_found = {ref: node for ref in ("e4", "e5", "e6", "e7", "e8", "e9") if (node := snapshot.by_ref(ref))}
    assert {ref: (node.role, node.name) for ref, node in node_found.items()} == {
        "e4": ("link", 'Home: "shop"'),
        "e5": ("generic", "Hello"),
        "e6": ("checkbox", "oak"),
        "e7": ("combobox", ""),
        "e8": ("option", "Oak"),
        "e9": ("searchbox", "Search"),
    }
    assert (node_found["e6"].states["checked"], node_found["e8"].states["selected"]) == ("true", "true")
    assert (node_found["e4"].box, node_found["e9"].box) == ((1.0, 3.0, 3.0, 4.0), None)


def test_rows_of_a_parquet_file_are_read_alike(tmp_path: Path) -> None:
    rows = [a_row(), a_row(target_action_index="2", screenshot=None)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    path = tmp_path / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM read_json('{tmp_path / 'rows.json'}')) TO '{path}' (FORMAT parquet)")
    assert is_mind2web(path)
    assert list(read_rows(path)) == read(tmp_path / "rows.jsonl", *rows)


def test_a_parquet_file_of_bytes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    row = a_row()
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT ? AS annotation_id, ? AS confirmed_task, ? AS cleaned_html, ? AS operation,"
            " ? AS pos_candidates, ? AS action_reprs, ? AS target_action_index,"
            " {'bytes': ?::BLOB, 'path': NULL} AS screenshot",
            [
                *(row[key] for key in ("annotation_id", "confirmed_task", "cleaned_html", "operation")),
                *(row[key] for key in ("pos_candidates", "action_reprs", "target_action_index")),
                JPEG,
            ],
        )
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    ((_, image),) = read_rows(path)
    assert image == JPEG


def test_a_parquet_file_of_other_data_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS price) TO '{path}' (FORMAT parquet)")
    with pytest.raises(ConfigError, match="no column of Multimodal-Mind2Web"):
        list(read_rows(path))


def test_a_screenshot_may_lie_beside_the_rows_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "shot.jpg").write_bytes(JPEG)
    ((_, image),) = read(tmp_path / "rows.jsonl", a_row(screenshot="shot.jpg"))
    assert image == JPEG
    (tmp_path / "rows").mkdir()
    with pytest.raises(ConfigError, match="outside its folder"):
        read(tmp_path / "rows" / "rows.jsonl", a_row(screenshot="../shot.jpg"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"operation": '{"op": "JUMP"}'}, "row 1: operation.op"),
        ({"operation": "CLICK"}, "row 1: operation"),
        ({"target_action_index": "-1"}, "row 1: target_action_index"),
        ({"pos_candidates": "none"}, "row 1: pos_candidates"),
        ({"pos_candidates": ["x"]}, r"row 1: pos_candidates\.0"),
        ({"cleaned_html": None}, "row 1: cleaned_html"),
        ({"screenshot": {"bytes": "!" * 600}}, "not base64"),
        ({"screenshot": "gone.jpg"}, "no such file"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read(tmp_path / "rows.jsonl", a_row(**change))


@pytest.mark.parametrize("content", [b"", b"PAR1 is not all", b"{}"])
def test_a_file_other_than_parquet_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="give a Parquet file"):
        list(read_rows(path))


def test_deep_and_broken_html_stays_readable() -> None:
    html = '<div backend_node_id="1">' * 5000 + "</p></div></x>" + '<a backend_node_id="2">'
    snapshot = parse_snapshot(snapshot_of(html))
    assert snapshot.by_ref("e2") is not None


@given(st.text(st.sampled_from("<>/ab=\"'& divselectoption backend_node_id=12[ref=e7]\n\\-"), max_size=200))
def test_any_html_becomes_a_snapshot_of_its_own_refs(html: str) -> None:
    text = snapshot_of(html)
    refs = [node.ref for node in parse_snapshot(text).nodes if node.ref]
    # A page's text cannot pretend to be an element with a ref.
    assert all(f'"{ref[1:]}"' in html or f"={ref[1:]}" in html or f"'{ref[1:]}'" in html for ref in refs)


ATOMS = st.none() | st.booleans() | st.integers() | st.text(max_size=9)
VALUES = ATOMS | st.lists(ATOMS, max_size=3) | st.dictionaries(st.text(max_size=3), ATOMS, max_size=2)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(a_row(), VALUES)))
def test_no_row_raises_anything_but_the_typed_error(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    try:
        read(tmp_path_factory.mktemp("r") / "rows.jsonl", a_row(**changes))
    except ConfigError:
        return
