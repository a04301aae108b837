"""Drags and long presses, on pages whose handlers demand what drag-and-drop libraries demand."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser, ref_of
from helpers.cases import each
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.settle import SettleMode
from shared.models import Page
from shared.snapshot import parse_snapshot

pytestmark = pytest.mark.e2e

# Each part is a `section` with a card and a lane. It says its name once the card was dropped as its sensor wants it.
STYLE = """<!doctype html><title>Drags</title><style>section { position: relative; display: inline-block; width: 290px;
    height: 110px; margin: 5px; border: 1px solid #ccc; vertical-align: top } .card, .lane { position: absolute;
      height: 30px;
    user-select: none } .card { left: 5px; top: 5px; width: 70px; background: #cce } .lane { left: 150px; top: 50px;
      width: 120px;
    height: 50px; background: #eee } .cell { position: absolute; top: 60px; width: 30px; height: 30px;
      background: #eec }
    </style><p id=said role=status>said:</p><script>
    window.say = text => { said.textContent += ` ${text}` };
    const isOver = (e, element) => {
      const b = element.getBoundingClientRect();
      return e.clientX >= b.left && e.clientX < b.right && e.clientY >= b.top && e.clientY < b.bottom;
    };
    const part = (name, build) => {
      const section = document.querySelector(`section[data-name="${name}"]`);
      const [card, lane] = ['.card', '.lane'].map(each => section.querySelector(each));
      build({ say: () => say(name), card, lane, section });
    };
    const far = (a, b) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);</script>"""
# The script of each part.
SENSORS = {
    # A drag begins after 8 px; collisions are found in the next frame.
    "distance": """let down, on, over, frame;
        card.onpointerdown = e => { down = e };
        document.addEventListener('pointermove', e => {
          if (!down) return;
          if (!on) { on = far(e, down) > 8; return }
          cancelAnimationFrame(frame);
          frame = requestAnimationFrame(() => { over = isOver(e, lane) });
        });
        document.addEventListener('pointerup', () => { if (on && over) say(); down = on = over = null });""",
    # Mouse events; places are collected in a frame after the beginning, and moves before that are lost.
    "frames": """let down, ready, last, moves = 0;
        card.onmousedown = e => { e.preventDefault(); down = e };
        addEventListener('mousemove', e => {
          if (!down) return;
          if (!ready && far(e, down) >= 5) ready = requestAnimationFrame(() => requestAnimationFrame(() => {
            ready = 'yes' }));
          if (ready === 'yes') { moves += 1; requestAnimationFrame(() => { last = e }) }
        });
        addEventListener('mouseup', () => { if (moves > 4 && last && isOver(last, lane)) say();
          down = ready = last = null; moves = 0 });""",
    # Held for half a second without moving by more than 5 px.
    "delay": """let timer, on;
        card.onpointerdown = down => {
          timer = setTimeout(() => { on = true }, 500);
          const early = e => { if (!on && far(e, down) > 5) clearTimeout(timer) };
          document.addEventListener('pointermove', early);
        };
        document.addEventListener('pointerup', e => { clearTimeout(timer); if (on && isOver(e, lane)) say();
          on = false });""",
    # Native, with data, and a target that wants to see what comes.
    "native": """card.draggable = true; let overs = 0;
        card.ondragstart = e => e.dataTransfer.setData('text/plain', 'the card');
        lane.ondragover = e => { e.preventDefault(); overs += 1 };
        lane.ondrop = e => { e.preventDefault(); if (overs > 2 &&
          e.dataTransfer.getData('text/plain') === 'the card') say() };""",
    # Native, and the item changes places with what it is dragged over. The drop may be anywhere then.
    "sorted": """card.draggable = lane.draggable = true; card.after(lane);
        card.ondragstart = e => { e.dataTransfer.effectAllowed = 'move';
          setTimeout(() => card.classList.add('ghost')) };
        lane.ondragover = e => { e.preventDefault();
          if (card.classList.contains('ghost')) section.insertBefore(lane, card) };
        card.ondragend = () => { if (section.firstElementChild === lane) say() };""",
    # The place under the pointer is looked up every 50 ms, not in a handler.
    "polled": """let at, timer, over;
        card.onpointerdown = () => { timer = setInterval(() => {
          card.style.pointerEvents = 'none';
          over = at && document.elementFromPoint(at.clientX, at.clientY) === lane;
        }, 50) };
        document.addEventListener('pointermove', e => { at = e });
        document.addEventListener('pointerup', () => { clearInterval(timer); card.style.pointerEvents = '';
          if (over) say(); over = false });""",
    # The pointer is captured, and only relative moves count.
    "slider": """lane.remove(); const high = section.querySelector('.cell'); let value = 0, from = null;
        card.style.width = '20px';
        card.onpointerdown = e => { card.setPointerCapture(e.pointerId); from = e.clientX };
        card.onpointermove = e => {
          if (from === null) return;
          const step = e.clientX - from; from = e.clientX;
          if (Math.abs(step) < 40) value += step;
          card.style.transform = `translateX(${value}px)`;
        };
        card.onpointerup = () => { from = null; if (Math.abs(value - 245) < 12) say() };""",
    # What is dragged over is selected, cell by cell.
    "range": """const seen = new Set(); let on = false;
        for (const cell of section.querySelectorAll('.cell')) {
          cell.onmousedown = () => { on = true; seen.add(cell) };
          cell.onmouseenter = () => { if (on) seen.add(cell) };
          cell.onmouseup = () => { if (seen.size === 4) say(); on = false };
        }""",
    # The target takes drops only while something is dragged, after an animation.
    "awaited": """let ready, entered, timer;
        card.onpointerdown = () => { timer = setTimeout(() => { ready = true }, 250) };
        document.addEventListener('pointermove', e => { entered = ready && isOver(e, lane) });
        document.addEventListener('pointerup', () => { clearTimeout(timer); if (entered) say();
          ready = entered = false });""",
    # The board moves its lane aside as soon as something is dragged; the card follows the pointer.
    "board": """let down, on, over;
        card.onpointerdown = e => { down = e; e.preventDefault() };
        document.addEventListener('pointermove', e => {
          if (!down) return;
          on ||= far(e, down) > 4;
          card.style.translate = `${e.clientX - down.clientX}px ${e.clientY - down.clientY}px`;
          lane.style.paddingTop = on ? '4px' : '';
          requestAnimationFrame(() => { over = on && isOver(e, lane) });
        });
        document.addEventListener('pointerup', () => { if (over) { lane.append(card);
          say() } down = on = over = null; card.style.translate = '' });""",
    # A menu of a long press, which a shorter one or a move cancels.
    "press": """let timer;
        card.onpointerdown = () => { timer = setTimeout(say, 700) };
        for (const type of ['pointerup', 'pointercancel']) card.addEventListener(type, () => clearTimeout(timer));""",
    # A line on a canvas, of at least ten points at least 8 ms apart.
    "signature": """const points = []; const canvas = section.querySelector('canvas'), ink = canvas.getContext('2d');
        canvas.onpointerdown = e => { points.push(e); ink.moveTo(e.offsetX, e.offsetY) };
        canvas.onpointermove = e => {
          if (!points.length || e.timeStamp - points.at(-1).timeStamp < 8) return;
          points.push(e); ink.lineTo(e.offsetX, e.offsetY); ink.stroke();
        };
        canvas.onpointerup = e => { if (points.length >= 10) say() };""",
}
CELLS = "".join(
    f'<div class=cell role=gridcell aria-label="Hour {n} range" style="left: {10 + 40 * n}px">{n}</div>'
    for n in range(4)
)
INSIDE = {
    "range": CELLS,
    "slider": '<div class=cell role=note aria-label="High" style="left: 255px; top: 5px; width: 20px">hi</div>',
    "signature": '<canvas width=280 height=90 role=img aria-label="Signature"></canvas>',
}


def write_page(name: str, script: str) -> str:
    both = f"""<div class=card role=button tabindex=0 aria-label="Card {name}">{name}</div>
        <div class=lane role=region aria-label="Lane {name}"></div>"""
    inside = both + INSIDE[name] if name == "slider" else INSIDE.get(name, both)
    return f"""<section data-name={name}>{inside}</section>
        <script>part('{name}', ({{ say, card, lane, section }}) => {{ {script} }})</script>"""


PAGE = STYLE + "".join(write_page(name, script) for name, script in SENSORS.items())


def action(page: Page, name: str) -> tuple[str, dict[str, Any]]:
    """The action that a part wants."""
    ref = {**dict.fromkeys(("range",), ("Hour 0 range", "Hour 3 range")), "slider": ("Card slider", "High")}
    start, end = ref.get(name, (f"Card {name}", f"Lane {name}"))
    if name == "press":
        return "browser_click", {"target": ref_of(page.snapshot, f'"{start}"'), "hold_ms": 900}
    if name == "signature":
        snapshot = parse_snapshot(page.snapshot)
        node = next(node for node in snapshot.nodes if node.name == "Signature")
        x, y, width, height = snapshot.boxes[node.position] or (0, 0, 0, 0)
        ends = {"endX": x + width - 20, "endY": y + height - 10}
        return "browser_mouse_drag_xy", {"startX": x + 20, "startY": y + 20, **ends}
    refs = {"startTarget": ref_of(page.snapshot, f'"{start}"'), "endTarget": ref_of(page.snapshot, f'"{end}"')}
    return "browser_drag", refs | ({"hold_ms": 800} if name == "delay" else {})


def status_texts(page: Page) -> list[str]:
    snapshot = parse_snapshot(page.snapshot)
    (text,) = [snapshot.text_of(node) for node in snapshot.find("status")]
    return text.removeprefix("said:").split()


@pytest.fixture
async def browser() -> AsyncIterator[PlaywrightBrowser]:
    async with a_browser() as browser:
        yield browser


@pytest.mark.parametrize("settle", each(["page-time", "real-time"], suite=["page-time"]))
async def test_every_kind_of_component_notices_a_drag(browser: PlaywrightBrowser, settle: SettleMode) -> None:
    with hostile_site({"/": PAGE}) as site:
        await browser.open(site.url, settle)
        page = await browser.observe()
        for name in SENSORS:
            result = await browser.act(*action(page, name))
            assert result.ok, (name, result.text)
        after = await browser.observe()
    assert status_texts(after) == list(SENSORS)
    assert after.notice is None


async def test_a_drag_that_changes_nothing_is_noticed(browser: PlaywrightBrowser) -> None:
    with hostile_site({"/": PAGE}) as site:
        await browser.open(site.url, "page-time")
        page = await browser.observe()
        # Without the hold that they want, and on nothing.
        attempts: Mapping[str, tuple[str, dict[str, Any]]] = {
            "too short a press": ("browser_click", {"target": ref_of(page.snapshot, '"Card press"'), "hold_ms": 100}),
            "no delay": (
                "browser_drag",
                {
                    "startTarget": ref_of(page.snapshot, '"Card delay"'),
                    "endTarget": ref_of(page.snapshot, '"Lane delay"'),
                },
            ),
        }
        results = {}
        for name, (tool, params) in attempts.items():
            # So that the focus has moved before.
            await browser.act("browser_click", {"target": params.get("target", params.get("startTarget"))})
            await browser.observe()
            await browser.act(tool, params)
            observation = await browser.observe()
            results[name] = (observation.notice and observation.notice.code, status_texts(observation))
        assert results == dict.fromkeys(attempts, ("nothing_changed", []))
        await browser.act("browser_click", {"target": ref_of(page.snapshot, '"Card press"')})
        assert (await browser.observe()).notice is None
