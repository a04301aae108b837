"""The digests of the files in a multipart form, whatever the pieces in which it passes."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from judge.network.parts import MAX_PARTS, Parts

MIME = "multipart/form-data; boundary=----b"
# Beginnings of boundaries within contents are what a reader of pieces gets wrong.
CONTENTS = st.lists(st.sampled_from([b"x", b"\r", b"\n", b"-", b"\r\n--", b"\r\n------", b"----b", b"\0\xff"])).map(
    b"".join
)
FILES = st.lists(
    st.tuples(st.sampled_from(["cv", "photo", "a b"]), st.sampled_from(["cv.pdf", "ü.txt", ""]), CONTENTS), max_size=4
)


def a_form(files: list[tuple[str, str, bytes]]) -> bytes:
    parts = [
        f'------b\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'.encode()
        + b"Content-Type: text/plain\r\n\r\n"
        + content
        + b"\r\n"
        for field, name, content in files
    ]
    text = b'------b\r\nContent-Disposition: form-data; name="q"\r\n\r\nno file\r\n'
    return b"".join([*parts[:1], text, *parts[1:]]) + b"------b--\r\n"


def in_pieces(data: bytes, sizes: list[int]) -> Parts:
    parts, at = Parts(MIME), 0
    for size in sizes:
        parts.add(data[at : at + size])
        at += size
    parts.add(data[at:])
    return parts


@given(files=FILES, sizes=st.lists(st.integers(0, 40)))
def test_every_file_has_the_digest_of_its_content(files: list[tuple[str, str, bytes]], sizes: list[int]) -> None:
    # No browser sends a form whose content contains the boundary.
    files = [each for each in files if b"\r\n------b" not in b"\r\n" + each[2]]
    result = in_pieces(a_form(files), sizes)
    assert not result.left_out
    assert [(part["name"], part["fileName"], part["size"], part["sha256"]) for part in result.files] == [
        (field, name, len(content), hashlib.sha256(content).hexdigest()) for field, name, content in files
    ]


@given(data=st.binary(max_size=300), sizes=st.lists(st.integers(0, 40)))
def test_anything_else_has_no_files_however_it_is_cut(data: bytes, sizes: list[int]) -> None:
    assert in_pieces(data, sizes).files == in_pieces(data, []).files == []


def test_a_form_of_which_only_a_part_has_passed_names_complete_files_only() -> None:
    whole = a_form([("cv", "a", b"1"), ("cv", "b", b"2")])
    assert [part["fileName"] for part in in_pieces(whole[: whole.index(b"\r\n2")], []).files] == ["a"]


def test_more_files_than_are_recorded_and_endless_heads_are_said() -> None:
    many = in_pieces(a_form([("cv", "a", b"")] * (MAX_PARTS + 1)), [])
    endless = in_pieces(b"------b\r\nContent-Disposition: " + b"x" * 20_000, [])
    assert (len(many.files), many.left_out) == (MAX_PARTS, True)
    assert (endless.files, endless.left_out) == ([], True)


def test_other_bodies_are_not_read() -> None:
    parts = Parts("application/json")
    parts.add(a_form([("cv", "a", b"1")]))
    assert parts.files == []
