"""Forms with files, read in pieces of any size."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from judge.trajectory.forms import MultipartReader, Part, parts_of

MIME = "multipart/form-data; boundary=b"
HEAD = b'Content-Disposition: form-data; name="q"'
BODIES = st.lists(
    st.sampled_from([b"\r\n--b", b"\r\n--b\r\n" + HEAD + b"\r\n\r\n", b"\r\n", b"-", b"x", b"\r\n\r\n", b"--b"])
).map(b"".join)


def parts_in(pieces: list[bytes]) -> list[tuple[bytes, bytes, bool]]:
    """The parts, each with whether its end was read."""
    reader, parts = MultipartReader(MIME), [(b"", b"", True)]
    for head, content, ends in itertools.chain.from_iterable(map(reader.read, pieces)):
        _, before, has_ended = parts[-1]
        parts[-1:] = [*parts[-1:], (head, content, ends)] if has_ended else [(head, before + content, ends)]
    return parts[1:]


@given(body=BODIES, sizes=st.lists(st.integers(0, 20)))
def test_a_form_has_the_same_parts_however_it_is_cut(body: bytes, sizes: list[int]) -> None:
    cuts = [0, *itertools.accumulate(sizes)]
    cut = [body[start:end] for start, end in itertools.pairwise(cuts)] + [body[cuts[-1] :]]
    complete = [[part for part in parts_in(pieces) if part[2]] for pieces in (cut, [body])]
    assert complete[0] == complete[1]


@given(body=BODIES)
def test_the_parts_are_what_is_between_boundaries_if_it_has_a_blank_line(body: bytes) -> None:
    between = (b"\r\n" + body).split(b"\r\n--b")[1:]
    # The blank line of an empty part may be the one that begins the boundary.
    read = [
        (piece + b"\r\n").partition(b"\r\n\r\n")
        for piece in itertools.takewhile(lambda each: not each.startswith(b"--"), between)
    ]
    assert parts_of(body, MIME) == [
        Part(head.removeprefix(b"\r\n"), rest.removesuffix(b"\r\n")) for head, blank, rest in read if blank
    ]


@given(content=st.binary(max_size=20).filter(lambda each: b"\r\n--b" not in b"\r\n" + each))
def test_a_form_that_was_cut_still_has_its_last_part(content: bytes) -> None:
    whole = b"--b\r\n" + HEAD + b"\r\n\r\nfirst\r\n--b\r\n" + HEAD + b"\r\n\r\n" + content
    assert parts_of(whole, MIME) == [Part(HEAD, b"first"), Part(HEAD, content)]
    assert parts_of(whole + b"\r\n--b--\r\n", MIME) == parts_of(whole, MIME)
