"""Imported prompts: the requests of an evaluator's source, and its handling of unreadable replies."""

import base64
import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from helpers.llm.scripted import ScriptedModel, parts_for
from judge.config import RunConfig
from judge.episode.preflight import check_config
from judge.judges.engine import JudgeParts
from judge.judges.methods import check_judge
from judge.judges.prompt_set import load_prompts
from judge.judges.published import published_status
from judge.judges.webjudge import WebJudge, WebJudgeKeyPoints
from judge.plugins.published.source import read_source, write_prompts
from judge.records.verdicts import Verdict
from judge.trajectory.files import load_trajectory
from plugins.published.evaluator_source import RecordingClient, evaluator_source, execute, reply_by_content
from shared.errors import ConfigError, ModelBlocked
from shared.llm.cache import CachedModel
from shared.llm.model import Completion, ImagePart, ModelRequest
from shared.settings import Settings

KEY_POINTS = "Here:\n**Points**:\n  1. a lamp {x}\n\n  2. under $50\n\n\nEnd"
RATINGS = (
    "1. **Why**: The list\nis shown.\n\nMore.\n\n2. **Mark**: 4\n## Mark: 4",
    "## Why: The filter\nis set. \n\n## Mark: 3",
    "**Why**: \n\n**Mark** 5 ## Why: ## Mark 5",
    "**Why**: nothing\n**Mark**: 1 ## Mark: 2",
    "no idea",
)


def encode_image(image: Any) -> str:
    data = io.BytesIO()
    (image.convert("RGB") if image.mode == "RGBA" else image).save(data, format="JPEG")
    return base64.b64encode(data.getvalue()).decode()


def a_folder(folder: Path, *, screenshots: int = 4, inputs: bool = False, **changes: Any) -> Path:
    """A folder in the evaluator's own layout, with pictures that differ."""
    noise = random.Random(folder.name)
    for number in range(screenshots):
        path = folder / f"trajectory/{number}_shot.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = "RGBA" if number % 2 else "RGB"
        Image.frombytes(mode, (8, 8), noise.randbytes(64 * len(mode))).save(path)
    result = {
        "task_id": "t1",
        "task": "Find {a} lamp\nunder $50",
        "action_history": ["<Lamps link> -> CLICK", "<Price {textbox}> -> TYPE: 50", "<page> -> PRESS: Enter"],
        "thoughts": ["SECRET one", "SECRET two"],
    }
    if inputs:
        (folder / "given").mkdir()
        Image.frombytes("RGB", (4, 4), noise.randbytes(48)).save(folder / "given/photo.png")
        result["input_image_paths"] = ["given/photo.png"]
    (folder / "result.json").write_text(json.dumps({**result, **changes}))
    return folder


def a_set(tmp_path: Path, source: str) -> Path:
    """The prompt set of that source."""
    file = tmp_path / "source.py"
    file.write_text(source)
    reminders = {f"reminder_{kind}.txt": f"Again: {kind}" for kind in WebJudge.reminders}
    write_prompts(read_source(file), tmp_path / "set", reminders)
    return tmp_path / "set"


def answer_as(stage: str, messages: list[Any], outcome: str = "Status: success") -> str:
    return {"List": KEY_POINTS, "Deci": outcome}.get(stage) or reply_by_content(messages, RATINGS)


class Wire(RecordingClient):
    """Our side of the comparison: keeps the messages as the OpenAI client would send them."""

    name = "test:wire"

    def __init__(self) -> None:
        super().__init__(lambda messages: answer_as(messages[0]["content"][:4], messages))

    async def complete(self, request: ModelRequest) -> Completion:
        # Late: every test process imports this file, one runs its tests, and the SDK takes a second.
        from shared.llm.providers.openai import messages_of

        return Completion(text=self.generate(messages_of(request))[0], model="x")

    async def aclose(self) -> None:
        """There are no connections."""


async def judged(folder: Path, prompts: Path, model: Any, **config: Any) -> Verdict:
    run_config = RunConfig(prompts=str(prompts), **config)
    loaded = load_prompts(prompts)
    cached = CachedModel(model, namespace=loaded.checksum, folder=None)
    judge = WebJudge(JudgeParts(config=run_config, model=cached, prompts=loaded))
    verdict = await judge.judge(load_trajectory(folder))
    await judge.aclose()
    return verdict


@pytest.mark.parametrize("variant", ["online_mind2web", "general"])
@pytest.mark.parametrize("sees_thoughts", [False, True])
@pytest.mark.parametrize(("detail", "max_images"), [("high", 50), ("low", 2), (None, 1)])
async def test_requests_are_those_of_the_source_byte_for_byte(
    tmp_path: Path, variant: str, sees_thoughts: bool, detail: str | None, max_images: int
) -> None:
    source = evaluator_source(variant, detail=detail, max_images=max_images)
    is_general = variant == "general"
    folder = a_folder(tmp_path / "t1", inputs=is_general)
    result = json.loads((folder / "result.json").read_text())
    shots = [str(folder / f"trajectory/{number}_shot.png") for number in range(4)]
    client = RecordingClient(lambda messages: answer_as(messages[0]["content"][:4], messages))
    module = execute(source, tmp_path / "source.py", encode_image)
    if is_general:
        thoughts = result["thoughts"] if sees_thoughts else None
        arguments = [str(folder / "given/photo.png")]
        evaluated = module.WebJudge_general_eval(
            result["task"], arguments, thoughts, result["action_history"], shots, client, 3
        )
    else:
        evaluated = module.WebJudge_Online_Mind2Web_eval(result["task"], result["action_history"], shots, client, 3)
    messages, record = await evaluated
    client.generate(messages)
    ours = Wire()
    verdict = await judged(
        folder, a_set(tmp_path, source), ours, fidelity="published", judge_sees_thoughts=sees_thoughts
    )
    assert sorted(ours.requests) == sorted(client.requests)
    assert [score.Score for score in verdict.image_judge_record] == record


async def test_without_a_selected_screenshot_the_outcome_request_has_no_section_about_them(tmp_path: Path) -> None:
    model = ScriptedModel(
        lambda request: {"List": KEY_POINTS, "Rate": "Mark: 1\nScore: 1"}.get(request.system[:4], "Status: success")
    )
    await judged(a_folder(tmp_path / "t1"), a_set(tmp_path, evaluator_source("online_mind2web")), model)
    assert str(model.requests[-1].parts[0]).endswith("3. <page> -> PRESS: Enter")


async def test_thoughts_are_not_shown_unless_wanted(tmp_path: Path) -> None:
    wire = Wire()
    await judged(a_folder(tmp_path / "t1"), a_set(tmp_path, evaluator_source("general")), wire)
    assert not any("SECRET" in request for request in wire.requests)


def typing(text: str) -> dict[str, Any]:
    """An attempt whose typed text is `text`."""
    return {"action_history": ["<Lamps link> -> CLICK", f"<Price textbox> -> TYPE: {text}"], "thoughts": []}


class FilteredWire(Wire):
    """Refuses what contains a text or a picture."""

    def __init__(self, objected: str) -> None:
        super().__init__()
        self._objected = objected

    async def complete(self, request: ModelRequest) -> Completion:
        completion = await super().complete(request)
        if self._objected in self.requests[-1]:
            raise ModelBlocked("unsafe")
        return completion


async def test_requests_after_a_refusal_are_those_of_the_source_for_what_is_left(tmp_path: Path) -> None:
    source = evaluator_source("online_mind2web")
    module = execute(source, tmp_path / "source.py", encode_image)
    expected = []
    for text in ("gunpowder lamp", "[withheld] lamp"):
        client = RecordingClient(lambda messages: answer_as(messages[0]["content"][:4], messages))
        folder = a_folder(tmp_path / "t1", screenshots=2, **typing(text))
        shots = [str(folder / f"trajectory/{number}_shot.png") for number in range(2)]
        actions = typing(text)["action_history"]
        messages, _ = await module.WebJudge_Online_Mind2Web_eval("Find {a} lamp\nunder $50", actions, shots, client, 3)
        client.generate(messages)
        expected.append(client.requests)
    folder = a_folder(tmp_path / "t1", screenshots=2, **typing("gunpowder lamp"))
    wire = FilteredWire("gunpowder")
    verdict = await judged(folder, a_set(tmp_path, source), wire, fidelity="published")
    assert (verdict.outcome, verdict.reason_code) == ("failure", "withheld_evidence")
    # The questions about the task and its screenshots are the same, so they are asked once.
    assert sorted(wire.requests) == sorted([*expected[0], expected[1][-1]])


@pytest.mark.parametrize("stage", ["List", "Rate", "Deci"])
async def test_with_published_fidelity_too_a_refusal_of_everything_is_neither_0_nor_failure(
    tmp_path: Path, stage: str
) -> None:
    def script(request: ModelRequest) -> Any:
        if request.system.startswith(stage):
            return ModelBlocked("unsafe")
        known = {"List": KEY_POINTS, "Rate": "Mark: 1", "Deci": "Status: success"}
        return known[request.system[:4]]

    folder, prompts = a_folder(tmp_path / "t1", screenshots=2), a_set(tmp_path, evaluator_source("online_mind2web"))
    model = ScriptedModel(script)
    verdict = await judged(folder, prompts, model, fidelity="published")
    if stage == "Rate":
        # Shown to the decision without a score; with 0, as for a reply without one, they would be left out.
        assert (verdict.outcome, [each.Score for each in verdict.image_judge_record]) == ("success", [None, None])
        assert sum(isinstance(part, ImagePart) for part in model.requests[-1].parts) == 2
    else:
        assert (verdict.outcome, verdict.reason_code) == ("unscored", None)


def unreadable(request: ModelRequest) -> str:
    return KEY_POINTS if request.system.startswith("List") else "no idea"


async def test_published_fidelity_counts_unreadable_replies_as_0_and_failure_and_asks_once(tmp_path: Path) -> None:
    model = ScriptedModel(unreadable)
    folder, prompts = a_folder(tmp_path / "t1", screenshots=1), a_set(tmp_path, evaluator_source("general"))
    verdict = await judged(folder, prompts, model, fidelity="published")
    assert (verdict.outcome, [score.Score for score in verdict.image_judge_record]) == ("failure", [0])
    assert len(model.requests) == 3
    assert verdict.judge is not None
    assert verdict.judge.model_dump()["fidelity"] == "published"


async def test_without_it_they_are_asked_for_again_and_then_unscored(tmp_path: Path) -> None:
    model = ScriptedModel(unreadable)
    folder, prompts = a_folder(tmp_path / "t1", screenshots=1), a_set(tmp_path, evaluator_source("general"))
    verdict = await judged(folder, prompts, model)
    assert (verdict.outcome, [score.Score for score in verdict.image_judge_record]) == ("unscored", [None])
    assert str(model.requests[-1].parts[0]).endswith("\n\nAgain: status")
    assert verdict.judge is not None
    assert "fidelity" not in verdict.judge.model_dump()


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("Status: success", "success"),
        ("STATUS: unsuccessful", "success"),
        ("Status: failed", "failure"),
        ("", "failure"),
    ],
)
def test_a_status_is_read_as_the_source_reads_it(reply: str, status: str) -> None:
    assert published_status(reply) == status


@pytest.mark.parametrize("name", ["../outside.png", "/etc/hostname", "given/absent.png"])
async def test_a_task_image_that_is_not_in_the_folder_leaves_the_verdict_unscored(tmp_path: Path, name: str) -> None:
    folder = a_folder(tmp_path / "t1", input_image_paths=[name])
    verdict = await judged(folder, a_set(tmp_path, evaluator_source("general")), Wire())
    assert verdict.outcome == "unscored"
    assert name in verdict.reason


def test_a_task_image_is_part_of_the_digest(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "t1", inputs=True)
    before = load_trajectory(folder).sha256
    (folder / "given/photo.png").write_bytes(b"another")
    assert load_trajectory(folder).sha256 != before


async def test_a_picture_that_cannot_be_encoded_leaves_the_verdict_unscored(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "t1")
    (folder / "trajectory/1_shot.png").write_bytes(b"\x89PNG and no more")
    verdict = await judged(folder, a_set(tmp_path, evaluator_source("online_mind2web")), Wire())
    assert verdict.outcome == "unscored"
    assert "1_shot.png" in verdict.reason


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("async def identify_key_points", "async def other", "no function identify_key_points"),
        ("WebJudge_Online_Mind2Web_eval", "evaluate", "no function WebJudge_Online_Mind2Web_eval"),
        ("T: {task}", "T: {website}", "not one format string"),
        ("T: {task}", "T: {task.x}", "not one format string"),
        ('r"[1-5]"', 'r"[1-9]"', "not one statement of the form"),
        ('.strip().lstrip("\\n")', ".strip()", "not one statement of the form"),
        ("MAX_IMAGE =50", "MAX_IMAGE = None", "not one limit of images"),
        ('{"role": "system", "content": system_msg}', '{"role": "user", "content": system_msg}', "not one system text"),
        ('"high"', '"closest"', "detail"),
        ("async def", "async deaf", "not readable as Python"),
    ],
)
def test_a_source_of_another_structure_is_refused_and_says_why(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    source = evaluator_source("online_mind2web")
    assert old in source
    (tmp_path / "source.py").write_text(source.replace(old, new))
    with pytest.raises(ConfigError, match=r"source\.py") as caught:
        read_source(tmp_path / "source.py")
    assert message in str(caught.value)


def test_the_source_is_read_and_not_executed(tmp_path: Path) -> None:
    file = tmp_path / "source.py"
    file.write_text(f"raise SystemExit(open({str(tmp_path / 'made')!r}, 'w'))\n" + evaluator_source("general"))
    assert read_source(file).variant == "general"
    assert not (tmp_path / "made").exists()


@settings(max_examples=50)
@given(st.data())
def test_any_damage_to_a_source_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    source = evaluator_source("general")
    begin = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(begin, min(len(source), begin + 60)))
    file = tmp_path_factory.getbasetemp() / "damaged.py"
    file.write_text(source[:begin] + data.draw(st.text(st.characters(codec="utf-8"), max_size=8)) + source[end:])
    with contextlib.suppress(ConfigError):
        read_source(file)


def test_imported_prompts_are_for_webjudge_only(tmp_path: Path) -> None:
    prompts = a_set(tmp_path, evaluator_source("general"))
    with pytest.raises(ConfigError, match="webjudge only"):
        WebJudgeKeyPoints(parts_for(ScriptedModel(unreadable), prompts=str(prompts)))


def test_published_fidelity_needs_imported_prompts() -> None:
    with pytest.raises(ConfigError, match="imported prompts"):
        check_judge(RunConfig(fidelity="published", judge_model="test:x"))


def test_published_fidelity_needs_a_set_that_was_imported(tmp_path: Path) -> None:
    bundled = Path(__file__).resolve().parents[3] / "src/judge/judges/prompts/default"
    config = RunConfig(fidelity="published", prompts=str(bundled))
    with pytest.raises(ConfigError, match="needs imported prompts"):
        check_config(config, Settings(), with_key=False)


@pytest.mark.parametrize(
    ("key", "value"), [("image", {"system": "", "user": "{task.__class__} {key_points}"}), ("max_images", 0), ("z", 1)]
)
def test_a_changed_set_is_refused_by_name(tmp_path: Path, key: str, value: object) -> None:
    prompts = a_set(tmp_path, evaluator_source("general"))
    stored = json.loads((prompts / "published.json").read_text())
    (prompts / "published.json").write_text(json.dumps({**stored, key: value}))
    with pytest.raises(ConfigError, match=r"published\.json"):
        load_prompts(prompts)
