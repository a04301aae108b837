"""A WebM film of still pictures. Each one is a WebP, whose lossy data is a key frame of VP8: nothing is encoded here.

Written as browsers play it (RFC 9559, a subset of Matroska): one video track, a cluster for each picture.
"""

import struct
from collections.abc import Sequence

# Ids of elements, with their marker bits.
_EBML, _VERSION, _READ_VERSION, _MAX_ID, _MAX_SIZE = 0x1A45DFA3, 0x4286, 0x42F7, 0x42F2, 0x42F3
_DOC_TYPE, _DOC_VERSION, _DOC_READ_VERSION = 0x4282, 0x4287, 0x4285
_SEGMENT, _INFO, _SCALE, _DURATION, _MUXER, _WRITER = 0x18538067, 0x1549A966, 0x2AD7B1, 0x4489, 0x4D80, 0x5741
_TRACKS, _TRACK, _NUMBER, _UID, _TYPE, _CODEC = 0x1654AE6B, 0xAE, 0xD7, 0x73C5, 0x83, 0x86
_VIDEO, _WIDTH, _HEIGHT = 0xE0, 0xB0, 0xBA
_CLUSTER, _TIME, _BLOCK = 0x1F43B675, 0xE7, 0xA3
_MILLISECOND_NS = 1_000_000
_RIFF_HEADER = 12
_NAME = b"wabe"


def webm(pictures: Sequence[bytes], size: tuple[int, int], shown_ms: int) -> bytes:
    """The film of these WebP pictures, all lossy and of this size, each shown for that long.

    Raises `ValueError` for a picture that is not a lossy WebP.
    """
    duration = len(pictures) * shown_ms
    header = (
        *((_VERSION, 1), (_READ_VERSION, 1), (_MAX_ID, 4), (_MAX_SIZE, 8), (_DOC_TYPE, b"webm")),
        *((_DOC_VERSION, 4), (_DOC_READ_VERSION, 2)),
    )
    info = ((_SCALE, _MILLISECOND_NS), (_DURATION, struct.pack(">d", duration)), (_MUXER, _NAME), (_WRITER, _NAME))
    video = ((_WIDTH, size[0]), (_HEIGHT, size[1]))
    track = ((_NUMBER, 1), (_UID, 1), (_TYPE, 1), (_CODEC, b"V_VP8"), (_VIDEO, _parts(video)))
    # The last picture once more at the end: a player may stop at the time of the last one.
    frames = [*pictures, *pictures[-1:]]
    clusters = b"".join(
        _master(
            _CLUSTER, (_TIME, min(number * shown_ms, duration)), (_BLOCK, b"\x81\x00\x00\x80" + _key_frame(picture))
        )
        for number, picture in enumerate(frames)
    )
    segment = _master(_INFO, *info) + _master(_TRACKS, (_TRACK, _parts(track))) + clusters
    return _master(_EBML, *header) + _element(_SEGMENT, segment)


def _key_frame(picture: bytes) -> bytes:
    """The chunk `VP8 ` of a WebP."""
    at = _RIFF_HEADER
    while at + 8 <= len(picture) and picture.startswith(b"RIFF"):
        name, size = picture[at : at + 4], int.from_bytes(picture[at + 4 : at + 8], "little")
        if name == b"VP8 ":
            return picture[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
    raise ValueError("not a lossy WebP")


def _master(identity: int, *parts: tuple[int, bytes | int]) -> bytes:
    return _element(identity, _parts(parts))


def _parts(parts: Sequence[tuple[int, bytes | int]]) -> bytes:
    return b"".join(_element(identity, value) for identity, value in parts)


def _element(identity: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        value = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
    # All sizes in eight bytes, the first of which says so.
    return _bytes_of(identity) + (len(value) | 1 << 56).to_bytes(8, "big") + value


def _bytes_of(identity: int) -> bytes:
    return identity.to_bytes((identity.bit_length() + 7) // 8, "big")
