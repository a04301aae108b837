"""Multimodal-Mind2Web rows as references (Deng et al., 2023; `osunlp/Multimodal-Mind2Web`), from Parquet or JSON lines.

A row's `cleaned_html` becomes a snapshot whose refs are `e<backend_node_id>`. Every element with an id gets a ref,
whether it is a candidate or not, so that refs do not give away the answer. `action_reprs` lists the actions of the
entire task: only those before `target_action_index` are shown, because the others contain the answer.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, Field, ValidationError, field_validator

from judge.plugins.steps.reference import Operation, Reference, ReferencePage, image_beside, json_rows
from judge.records.elements import ROLES
from judge.trajectory.paths import MAX_IMAGE_BYTES, usable_id
from shared.errors import ConfigError
from shared.fields import as_mapping, first_mistake
from shared.imports import optional_package
from shared.strict_json import parse_json
from shared.text import one_line

# A row contains a page's HTML and its screenshot, together several megabytes.
_BATCH = 20
_MAX_HTML_CHARS = 8_000_000
# Bounded, because `_lines` calls itself for each level.
_MAX_DEPTH = 200
_MAX_NAME_CHARS = 200
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_ROLES: Mapping[str, str] = MappingProxyType(
    {
        "a": "link",
        "button": "button",
        "select": "combobox",
        "option": "option",
        "textarea": "textbox",
        "img": "img",
        "li": "listitem",
        "ul": "list",
        "ol": "list",
        "nav": "navigation",
        "form": "form",
        "table": "table",
        "tr": "row",
        "td": "cell",
        "th": "columnheader",
        "p": "paragraph",
        "main": "main",
        **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading"),
    }
)
_INPUTS: Mapping[str, str] = MappingProxyType(
    {
        "checkbox": "checkbox",
        "radio": "radio",
        "search": "searchbox",
        "range": "slider",
        "number": "spinbutton",
        **dict.fromkeys(("submit", "button", "image", "reset"), "button"),
    }
)
# Where an element's name comes from, best first; names with an underscore come from Mind2Web's cleaned HTML.
_LABELS = ("aria_label", "aria-label", "alt", "title", "placeholder", "text_value", "input_value", "value", "name")


class _DatasetRow(BaseModel):
    """The fields read from a row."""

    annotation_id: str
    confirmed_task: str
    website: str = ""
    cleaned_html: str = Field(max_length=_MAX_HTML_CHARS)
    operation: Operation
    pos_candidates: tuple[dict[str, Any], ...]
    neg_candidates: tuple[dict[str, Any], ...] = ()
    screenshot: Any = None
    action_reprs: tuple[str, ...]
    target_action_index: int = Field(ge=0)

    @field_validator("operation", mode="before")
    @classmethod
    def _parsed_operation(cls, value: object) -> object:
        operation = _parsed(value)
        return (
            {key: operation.get(key) or "" for key in ("op", "value")} if isinstance(operation, Mapping) else operation
        )

    @field_validator("pos_candidates", "neg_candidates", mode="before")
    @classmethod
    def _parsed_candidates(cls, value: object) -> object:
        return [_parsed(item) for item in value] if isinstance(value, list | tuple) else value or ()


def is_mind2web(path: Path) -> bool:
    """Whether a file contains such rows rather than our references. Raises `ConfigError`."""
    if path.suffix == ".parquet":
        return True
    _, first = next(json_rows(path), (0, None))
    return isinstance(first, dict) and "cleaned_html" in first


def read_rows(path: Path) -> Iterator[ReferencePage]:
    """The references of a file, each with its screenshot. Raises `ConfigError` naming the row."""
    numbered = enumerate(_read_parquet(path), 1) if path.suffix == ".parquet" else json_rows(path)
    for number, value in numbered:
        where = f"{path}: row {number}"
        try:
            row = _DatasetRow.model_validate(value)
            reference = _reference(row)
        except ValidationError as error:
            raise ConfigError(f"{where}: {first_mistake(error)}", remedy="give Multimodal-Mind2Web rows") from None
        yield reference, _image(row.screenshot, path, where)


def _read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, a few in memory at a time. Raises `ConfigError`."""
    with optional_package("Parquet files need DuckDB", "mind2web"):
        # Late, because it is slow.
        import duckdb
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "threads": 1,
    }
    try:
        with duckdb.connect(":memory:", config=settings) as connection:
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            # Only the columns used: others, such as the raw HTML, are larger than all of these together.
            columns = [name for name, *_ in described if name in _DatasetRow.model_fields]
            if not columns:
                raise ConfigError(f"{path}: no column of Multimodal-Mind2Web", remedy="give its rows")
            cursor = connection.execute(f"SELECT {', '.join(columns)} FROM read_parquet(?)", [str(path)])
            while batch := cursor.fetchmany(_BATCH):
                yield from (dict(zip(columns, row, strict=True)) for row in batch)
    except duckdb.Error as error:
        why = str(error).split("\n", 1)[0][:300]
        raise ConfigError(f"{path}: {why}", remedy="give a Parquet file of Multimodal-Mind2Web") from None


def _parsed(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def _reference(row: _DatasetRow) -> Reference:
    accepted = [ref for candidate in row.pos_candidates if (ref := _ref(candidate.get("backend_node_id")))]
    boxes = {
        ref: box
        for candidate in (*row.neg_candidates, *row.pos_candidates)
        if (ref := _ref(candidate.get("backend_node_id"))) and (box := _box(candidate.get("attributes")))
    }
    return Reference(
        task_id=usable_id(row.annotation_id),
        task=row.confirmed_task,
        website=row.website,
        index=row.target_action_index,
        # Only earlier actions: later ones, and this one, contain the answer.
        history=row.action_reprs[: row.target_action_index],
        snapshot=snapshot_of(row.cleaned_html, boxes),
        accepted=tuple(dict.fromkeys(accepted)),
        operation=row.operation,
    )


def _ref(node_id: object) -> str | None:
    text = str(node_id)
    return f"e{text}" if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _box(attributes: object) -> str | None:
    """A candidate's `bounding_box_rect` in the format of snapshots."""
    known = as_mapping(_parsed(attributes))
    try:
        numbers = [float(part) for part in str(known["bounding_box_rect"]).split(",")]
        return ",".join(f"{number:.0f}" for number in numbers) if len(numbers) == 4 else None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _image(value: object, path: Path, where: str) -> bytes | None:
    """A screenshot: bytes, `{"bytes": …}` with bytes or base64, or the name of a file beside the rows."""
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
        # No file name is that long, so it is the image in base64.
        if isinstance(value, str) and len(value) > 500:
            try:
                value = base64.b64decode(value, validate=True)
            except (binascii.Error, ValueError):
                raise ConfigError(f"{where}: screenshot is not base64", remedy="give the dataset's own rows") from None
    if isinstance(value, str) and value:
        return image_beside(path, value)
    data = value if isinstance(value, bytes) and value else None
    if data is not None and len(data) > MAX_IMAGE_BYTES:
        raise ConfigError(f"{where}: screenshot of more than {MAX_IMAGE_BYTES} bytes", remedy="make it smaller")
    return data


@dataclass
class _Element:
    role: str
    name: str = ""
    ref: str | None = None
    states: tuple[str, ...] = ()
    children: list["_Element | str"] = field(default_factory=list)


class _PageParser(HTMLParser):
    """Builds the elements of a page. Unclosed tags end with their parent element."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = _Element("document")
        self._open: list[tuple[str, _Element]] = [("", self.root)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        label = next((attributes[key] for key in _LABELS if attributes.get(key)), "")
        states = {
            "[checked]": attributes.get("input_checked", attributes.get("checked", "false")),
            "[selected]": attributes.get("option_selected", attributes.get("selected", "false")),
        }
        element = _Element(
            role=_role(tag, attributes),
            name=one_line(label, _MAX_NAME_CHARS),
            ref=_ref(attributes.get("backend_node_id")),
            states=tuple(state for state, value in states.items() if value != "false"),
        )
        self._open[-1][1].children.append(element)
        if tag not in _VOID and len(self._open) < _MAX_DEPTH:
            self._open.append((tag, element))

    def handle_endtag(self, tag: str) -> None:
        places = [place for place, (opened, _) in enumerate(self._open) if opened == tag and place]
        if places:
            del self._open[places[-1] :]

    def handle_data(self, data: str) -> None:
        if text := one_line(" ".join(data.split()), 1000):
            self._open[-1][1].children.append(text)


def snapshot_of(html: str, boxes: Mapping[str, str] | None = None) -> str:
    """A page's HTML as a snapshot, with the boxes by ref."""
    reader = _PageParser()
    reader.feed(html)
    reader.close()
    return "\n".join(_lines(reader.root.children, boxes or {}))


def _role(tag: str, attributes: Mapping[str, str]) -> str:
    if (role := attributes.get("role", "").strip().lower()) in ROLES:
        return role
    return _INPUTS.get(attributes.get("type", "").lower(), "textbox") if tag == "input" else _ROLES.get(tag, "generic")


def _lines(nodes: Iterable[_Element | str], boxes: Mapping[str, str], indent: str = "") -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield f"{indent}- text: {json.dumps(node, ensure_ascii=False)}"
            continue
        texts = [child for child in node.children if isinstance(child, str)]
        is_leaf = len(texts) == len(node.children)
        name = node.name or (" ".join(texts)[:_MAX_NAME_CHARS] if is_leaf else "")
        box = boxes.get(node.ref) if node.ref else None
        parts = [
            node.role,
            json.dumps(name, ensure_ascii=False) if name else "",
            *node.states,
            f"[ref={node.ref}]" if node.ref else "",
            f"[box={box}]" if box is not None else "",
        ]
        inner = node.children if not is_leaf or node.name else []
        yield f"{indent}- {' '.join(filter(None, parts))}{':' if inner else ''}"
        yield from _lines(inner, boxes, f"{indent}  ")
