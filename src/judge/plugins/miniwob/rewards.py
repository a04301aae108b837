"""Rewards of MiniWoB++: which ones count as a success, and the best possible ones on pages with partial rewards.

Most pages give 1 for the right answer. Some reward how close a click on a drawing was, and on most seeds no whole pixel
is exactly right, so that no participant can reach a raw reward of 1.
"""

from collections.abc import Mapping
from types import MappingProxyType

from judge.evaluators.kinds.probe import LEAST, ProbeCheck
from judge.records.checks import SuccessRule

# The raw reward once the episode is over; `null` before.
REWARD = "window.WOB_DONE_GLOBAL ? window.WOB_RAW_REWARD_GLOBAL : null"

# Tries every pixel of the drawing, with the page's formula (`score`, of the centre of the circle that a click
# draws), in an isolated world.
_BEST = """(() => {
  const box = (selector, at = 0) => document.querySelectorAll(selector)[at].getBBox();
  const hypot = (a, b) => Math.sqrt(Math.pow(b.x - a.x, 2) + Math.pow(b.y - a.y, 2));
  const angle = (a, b, v) => {
    const [av, bv, ab] = [hypot(v, a), hypot(v, b), hypot(b, a)];
    return (Math.acos((bv * bv + av * av - ab * ab) / (2 * bv * av)) * 180) / Math.PI;
  };
  const score = (() => { %s })();
  const area = document.querySelector("svg").getBoundingClientRect();
  let best = -1;
  for (let x = Math.ceil(area.left); x < area.right; x++)
    for (let y = Math.ceil(area.top); y < area.bottom; y++) best = Math.max(best, score({ x, y: y - 50 }) || -1);
  return best;
})()"""
_FORMULAS: Mapping[str, str] = MappingProxyType(
    {
        "circle-center": """const goal = box(".black-circle"), r = goal.width / 2;
            const centre = { x: goal.x + r - 3, y: goal.y + r - 3 };
            return p => (r - hypot({ x: p.x - 3.5, y: p.y - 3.5 }, centre)) / r;""",
        "find-midpoint": """const [a, b] = [box(".black-circle"), box(".black-circle", 1)];
            const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
            return p => (30 - hypot({ x: p.x - 3.5, y: p.y - 3.5 }, middle)) / 30;""",
        "bisect-angle": """const [a, b, v] = [box(".init-black"), box(".init-black", 1), box(".init-blue")];
            const whole = angle(a, b, v);
            return p => {
              const c = { x: p.x - 3.5, y: p.y - 3.5 };
              const larger = Math.max(angle(a, c, v), angle(b, c, v));
              return larger > whole ? -1 : (whole - larger) / (whole / 2);
            };""",
        "right-angle": """const [a, v] = [box("#init-black"), box("#init-blue")];
            return p => (90 - Math.abs(90 - angle(a, { x: p.x - 3, y: p.y - 3 }, v))) / 90;""",
    }
)
BEST_REWARD: Mapping[str, str] = MappingProxyType({name: _BEST % formula for name, formula in _FORMULAS.items()})


def success_check(rule: SuccessRule) -> ProbeCheck:
    """The check of a task: the first end of its episode decides it and ends the attempt."""
    if rule == "exact":
        about = "The episode's raw reward is 1"
        return ProbeCheck(kind="probe", expression=REWARD, expected=1.0, keep="first", ends=True, description=about)
    about = "The episode's raw reward is above 0"
    return ProbeCheck(kind="probe", expression=REWARD, min=LEAST, keep="first", ends=True, description=about)
