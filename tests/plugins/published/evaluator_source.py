"""Evaluator sources of the structure that `wabe prompts import` knows, with texts of our own, and what they send."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

_HEAD = """
import re, asyncio
from PIL import Image
from utils import encode_image

{limit}
"""
_KEY_POINTS = '''
async def identify_key_points(task{inputs_parameter}, model):
    system_msg = """List what counts.
  - Say it as the "task" says it.  """
    prompt = """The task is {{task}}"""
    text = prompt.format(task=task)
    pictures = []
{inputs_loop}
    messages = [{{"role": "system", "content": system_msg}},
                {{"role": "user", "content": [{{"type": "text", "text": text}}] + pictures}}]
    return (await asyncio.to_thread(model.generate, messages))[0]
'''
_IMAGE = '''
async def judge_image(task{inputs_parameter}, image_path, key_points, model):
    system_msg = """Rate this picture.
"""
    encoded = encode_image(Image.open(image_path))
    prompt = """T: {{task}}

K: {{key_points}}
"""
    text = prompt.format(task=task, key_points=key_points)
    pictures = []
{inputs_loop}
    messages = [{{"role": "system", "content": system_msg}}]
{inputs_message}
    messages.append({{"role": "user", "content": [
        {{"type": "text", "text": text}},
        {{"type": "image_url", "image_url": {{"url": f"data:image/jpeg;base64,{{encoded}}"{detail}}}}}]}})
    return (await asyncio.to_thread(model.generate, messages))[0]
'''
_OUTCOME = '''
async def {name}(task{outcome_parameters}, last_actions, images_path, model, score_threshold):
    system_msg = """Decide.

Status: "success" or "failure"
"""
    prompt = """T={{task}}
K={{key_points}}
A:
{{last_actions}}
S:
{{thoughts}}"""
    key_points = await identify_key_points(task{inputs_argument}, model)
    key_points = key_points.replace("\\n\\n", "\\n")
    try:
        key_points = key_points.split({first!r})[1]
        key_points = "\\n".join(line.lstrip() for line in key_points.splitlines())
    except:
        key_points = key_points.split({other!r})[-1]
        key_points = "\\n".join(line.lstrip() for line in key_points.splitlines())
    replies = [await judge_image(task{inputs_argument}, path, key_points, model) for path in images_path]
    chosen, whys, record, pattern = [], [], [], None
    pattern = r"[1-5]"
    for response, image_path in zip(replies, images_path):
        try:
            score_text = response.split({score!r})[1]
            thought = response.split({reason!r})[-1].strip().lstrip("\\n").split({end!r})[0].replace("\\n", " ")
            score = re.findall(pattern, score_text)[0]
            record.append(int(score))
        except Exception:
            score = 0
            record.append(0)
        if int(score) >= score_threshold:
            encoded = encode_image(Image.open(image_path))
            chosen.append({{"type": "image_url", "image_url": {{"url": f"data:image/png;base64,{{encoded}}"{detail}}}}})
            if thought != "":
                whys.append(thought)
    chosen = chosen[:{bound}]
    whys = whys[:{bound}]
    if len(chosen) == 0:
        prompt = """T={{task}}
K={{key_points}}
A:
{{last_actions}}"""
    said = {actions}
    text = prompt.format(task=task, key_points=key_points,
                         last_actions="\\n".join(f"{{i+1}}. {{one}}" for i, one in enumerate(said)),
                         thoughts="\\n".join(f"{{i+1}}. {{one}}" for i, one in enumerate(whys)))
    pictures = []
{inputs_loop}
    messages = [{{"role": "system", "content": system_msg}}]
{inputs_message}
    messages.append({{"role": "user", "content": [{{"type": "text", "text": text}}] + chosen}})
    return messages, record
'''
_INPUTS_LOOP = """
    if input_image_paths is not None:
        for input_path in input_image_paths:
            encoded_input = encode_image(Image.open(input_path))
            pictures.append(
                {{"type": "image_url", "image_url": {{"url": f"data:image/png;base64,{{encoded_input}}"{detail}}}}})
"""
_INPUTS_MESSAGE = """
    if pictures:
        messages.append({"role": "user", "content": [{"type": "text", "text": "Given pictures:"}] + pictures})
"""
_PLAIN = {
    "name": "WebJudge_Online_Mind2Web_eval",
    "inputs_parameter": "",
    "outcome_parameters": "",
    "inputs_argument": "",
    "inputs_message": "",
    "actions": "last_actions",
    "first": "**Points**:",
    "other": "Points:",
    "score": "Mark",
    "reason": "**Why**:",
    "end": "\n\n",
}
_GENERAL = {
    "name": "WebJudge_general_eval",
    "inputs_parameter": ", input_image_paths",
    "outcome_parameters": ", input_image_paths, action_thoughts",
    "inputs_argument": ", input_image_paths",
    "inputs_message": _INPUTS_MESSAGE,
    "actions": "last_actions if action_thoughts is None else"
    ' [f"{a}. Reasoning: {t}" for a, t in zip(last_actions, action_thoughts)]',
    "first": "**Points**:",
    "other": "Points:",
    "score": "## Mark",
    "reason": "## Why:",
    "end": "## Mark",
}


def evaluator_source(variant: str, *, detail: str | None = "high", max_images: int = 50) -> str:
    """A source of a variant, with texts of our own."""
    words = _GENERAL if variant == "general" else _PLAIN
    label = f', "detail": "{detail}"' if detail else ""
    loop = _INPUTS_LOOP.format(detail=label) if variant == "general" else ""
    head = _HEAD.format(limit=f"MAX_IMAGE ={max_images}")
    values = {**words, "inputs_loop": loop, "detail": label, "bound": "MAX_IMAGE"}
    return head + "".join(part.format(**values) for part in (_KEY_POINTS, _IMAGE, _OUTCOME))


class RecordingClient:
    """Stands in for the evaluator's model: answers by `answer`, and keeps what it was sent."""

    def __init__(self, answer: Callable[[list[Any]], str]) -> None:
        self.requests: list[str] = []
        self._answer = answer

    def generate(self, messages: list[Any]) -> list[str]:
        self.requests.append(json.dumps(messages))
        return [self._answer(messages)]


def execute(source: str, path: Path, encode_image: Callable[[Any], str]) -> ModuleType:
    """The source as a module, as its own evaluation would import it."""
    module = ModuleType(path.stem)
    text = source.replace("from utils import encode_image", "")
    vars(module)["encode_image"] = encode_image
    exec(compile(text, str(path), "exec"), vars(module))
    return module


def reply_by_content(messages: list[Any], replies: tuple[str, ...]) -> str:
    """One of the replies, the same for the same picture."""
    picture = messages[-1]["content"][-1]["image_url"]["url"]
    return replies[int(hashlib.sha256(picture.encode()).hexdigest(), 16) % len(replies)]
