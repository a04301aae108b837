"""Pictures: their kind and size, from the first bytes, and encoding them again with Pillow, which is optional."""

import io
import struct

from shared.errors import ConfigError

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8"
_MAX_PIXELS = 50_000_000
_WEBP_QUALITY = 80
# Of 0 to 6: a third of the time of the default for a few percent more bytes.
_WEBP_EFFORT = 2
# Start of frame: all codes from C0 to CF except three that mean something else.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def media_type(data: bytes) -> str | None:
    """The media type of a JPEG, PNG or WebP; `None` for other bytes."""
    if data.startswith(b"RIFF"):
        return "image/webp" if data[8:12] == b"WEBP" else None
    return "image/png" if data.startswith(_PNG) else "image/jpeg" if data.startswith(_JPEG + b"\xff") else None


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a JPEG or PNG; `None` if the bytes do not tell."""
    try:
        if data.startswith(_PNG):
            width, height = struct.unpack_from(">II", data, 16)
        elif data.startswith(_JPEG):
            height, width = struct.unpack_from(">HH", data, _frame(data) + 5)
        else:
            return None
    except (struct.error, IndexError):
        return None
    return (width, height) if width and height else None


def _frame(data: bytes) -> int:
    """Where the start of frame of a JPEG is. Raises `IndexError` or `struct.error` without one."""
    at = len(_JPEG)
    while data[at] == 0xFF:
        if data[at + 1] in _FRAMES:
            return at
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + length
    raise IndexError


def require_pillow(what: str, extra: str) -> None:
    """Raises `ConfigError` when Pillow is not installed; `extra` is our optional dependency that brings it."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise ConfigError(
            f"{what} need Pillow, which is not installed", remedy=f'pip install "wabe[{extra}]"'
        ) from None


def encoded_as_jpeg(data: bytes) -> bytes:
    """The picture as JPEG. Raises whatever the decoder raises."""
    from PIL import Image

    image = Image.open(io.BytesIO(data))
    out = io.BytesIO()
    (image.convert("RGB") if image.mode == "RGBA" else image).save(out, format="JPEG")
    return out.getvalue()


def scaled_webp(data: bytes, max_width: int) -> bytes | None:
    """The picture as WebP, at most `max_width` pixels wide; `None` for bytes that are no picture, or a huge one."""
    from PIL import Image

    out = io.BytesIO()
    try:
        opened = Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "WEBP"))
        if opened.width * opened.height > _MAX_PIXELS:
            return None
        image = opened.convert("RGB")
        image.thumbnail((max_width, image.height))
        image.save(out, format="WEBP", quality=_WEBP_QUALITY, method=_WEBP_EFFORT)
    # The bytes are foreign, and image decoders raise whatever they like.
    except Exception:  # noqa: BLE001
        return None
    return out.getvalue()
