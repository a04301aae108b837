"""Images: type and size from the first bytes, and re-encoding with Pillow, which is optional."""

import io
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from shared.imports import optional_package

if TYPE_CHECKING:
    from PIL import Image

    Pictures = Iterator[Image.Image]
else:
    Pictures = Iterator

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
# A file of a few kilobytes can decode to gigabytes of pixels.
_MAX_PIXELS = 50_000_000
# The most that JPEG can express; the header of a damaged PNG may claim any 32-bit number.
_MAX_SIDE = 65_535
# The usual file name extension, by media type.
SUFFIXES: Mapping[str, str] = MappingProxyType({"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp"})
_WEBP_QUALITY = 80
# On a scale of 0 to 6: takes a third of the default's time and a few percent more bytes.
_WEBP_EFFORT = 2
# Of a film's pictures: the caption's height as a share of the width, and the colours of text and ground.
_CAPTION_SHARE = 0.075
_INK, _PAPER = (240, 240, 240), (24, 28, 36)


def media_type(data: bytes) -> str | None:
    """The media type of a JPEG, PNG or WebP; `None` for other bytes."""
    if data.startswith(b"RIFF"):
        return "image/webp" if data[8:12] == b"WEBP" else None
    return "image/png" if data.startswith(_PNG) else "image/jpeg" if data.startswith(_JPEG) else None


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a JPEG, PNG or WebP, from its first bytes; `None` if unknown."""
    # Imported here because it loads far more than reading sizes needs.
    import imagesize

    if media_type(data) is None:
        return None
    try:
        width, height = imagesize.get(io.BytesIO(data))
    except Exception:  # noqa: BLE001
        # The library fails in many ways on damaged files; without a size, a page only lacks the outline.
        return None
    return (width, height) if 0 < width <= _MAX_SIDE and 0 < height <= _MAX_SIDE else None


def require_pillow(what: str, extra: str) -> None:
    """Raises `ConfigError` when Pillow is not installed; `extra` is our optional dependency that installs it."""
    with optional_package(f"{what} need Pillow", extra):
        import PIL.Image  # noqa: F401


def encoded_as_jpeg(data: bytes) -> bytes:
    """The image as JPEG. Raises whatever the decoder raises."""
    from PIL import Image

    image = Image.open(io.BytesIO(data))
    out = io.BytesIO()
    # As Online-Mind2Web's evaluator does it: requests with published prompts must match its own byte for byte.
    (image.convert("RGB") if image.mode == "RGBA" else image).save(out, format="JPEG")
    return out.getvalue()


def scaled_webp(data: bytes, max_width: int) -> bytes | None:
    """The image as WebP, at most `max_width` pixels wide; `None` if it is huge or not an image."""
    if (image := opened_image(data)) is None:
        return None
    out = io.BytesIO()
    image.thumbnail((max_width, image.height))
    image.save(out, format="WEBP", quality=_WEBP_QUALITY, method=_WEBP_EFFORT)
    return out.getvalue()


def opened_image(data: bytes) -> "Image.Image | None":
    """The image with its pixels decoded; `None` if it is huge or not an image."""
    from PIL import Image

    try:
        opened = Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "WEBP"))
        return None if opened.width * opened.height > _MAX_PIXELS else opened.convert("RGB")
    # The bytes are foreign, and image decoders raise all kinds of exceptions.
    except Exception:  # noqa: BLE001
        return None


class CaptionedImage(NamedTuple):
    """A screenshot, its caption, and the colour behind that, if not the usual one."""

    screenshot: bytes
    caption: str
    tint: tuple[int, int, int] | None = None


def captioned(scenes: Sequence[CaptionedImage], width: int) -> "Pictures":
    """The screenshots with their captions below, all of the first one's size at this width.

    Captions are in the font that comes with Pillow, which has Latin letters only.
    """
    from PIL import Image, ImageDraw, ImageFont

    bar = max(24, round(width * _CAPTION_SHARE) // 2 * 2)
    font = ImageFont.load_default(bar * 0.4)
    shape = next((size for scene in scenes if (size := image_size(scene.screenshot))), (16, 9))
    # Even, because VP8 halves the resolution of colours.
    height = max(2, min(round(width * shape[1] / shape[0]), 2 * width) // 2 * 2)
    for scene in scenes:
        picture = Image.new("RGB", (width, height + bar), _PAPER)
        if (shot := opened_image(scene.screenshot)) is not None:
            shot.thumbnail((width, height))
            picture.paste(shot, ((width - shot.width) // 2, 0))
        draw, text = ImageDraw.Draw(picture), scene.caption
        draw.rectangle((0, height, width, height + bar), fill=scene.tint or _PAPER)
        while len(text) > 1 and draw.textlength(text, font) > width - bar // 2:
            text = f"{text[:-2]}…"
        draw.text((bar // 4, height + bar // 2), text, fill=_INK, font=font, anchor="lm")
        yield picture


def as_gif(pictures: "Pictures", colours: int, shown_ms: int) -> bytes:
    """An animation that repeats, each picture shown for that long."""
    palette_pictures = (picture.quantize(colours) for picture in pictures)
    out = io.BytesIO()
    next(palette_pictures).save(
        out, "GIF", save_all=True, append_images=palette_pictures, duration=shown_ms, loop=0, optimize=False
    )
    return out.getvalue()


def as_webp_frames(pictures: "Pictures", quality: int) -> tuple[list[bytes], tuple[int, int]]:
    """The pictures as lossy WebP, and the size that they have."""
    frames, size = [], (0, 0)
    for picture in pictures:
        out = io.BytesIO()
        picture.save(out, "WEBP", quality=quality, method=_WEBP_EFFORT)
        frames.append(out.getvalue())
        size = picture.size
    return frames, size
