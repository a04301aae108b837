"""Which parameter an error's text refuses."""

import pytest

from shared.llm.parameters import refused_parameters

PARAMETERS = ("temperature", "seed", "max_tokens")
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
# Each with the name of the parameter in braces.
REFUSALS = [
    "Unsupported parameter: '{}' is not supported with this model.",
    "Unsupported parameter: '{}' is not supported with this model. Use 'another_name' instead.",
    'BadRequestError: {{"error": {{"message": "Unsupported parameter: \'{}\' is not supported", "code": null}}}}',
    "Unknown parameter: '{}'.", "Unrecognized request argument supplied: {}", "{}: Extra inputs are not permitted",
    "{{'detail': [{{'type': 'extra_forbidden', 'loc': ['body', '{}'], 'msg': 'Extra inputs are not permitted'}}]}}",
    "`{}` is deprecated for this model.", "property '{}' is unsupported",
    "'{}' : property unsupported, did you mean another?",
    "UnsupportedParamsError: the provider does not support parameters: ['{}'], for model=m",
    "The model doesn't support the parameter {}", "Additional properties are not allowed ('{}' was unexpected)",
    "create() got an unexpected keyword argument '{}'",
    'Invalid JSON payload received. Unknown name "{}": Cannot find field.',
    "{} is not allowed when thinking is enabled", "This model does not accept {}.",
    "{} cannot be set for reasoning models", "Argument not supported on this model: {}",
]  # fmt: skip
# Of values; a limit's value is another matter.
REFUSED_VALUES = [
    "Unsupported value: '{}' does not support 0.0 with this model. Only the default (1) value is supported.",
    "gpt-x models don't support {}=0.0. Only {}=1 is supported.",
    "invalid {}: only 1 is allowed for this model",
    "`{}` must be strictly positive",
    "{} must be 1 for this model",
    "Invalid value for '{}'",
]
# About other things, or a value that is out of range.
OTHERS = [
    "The model is not supported. Your request had a temperature of 0 and a seed.",
    "max_tokens is too large: 100000. This model supports at most 4096 completion tokens",
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
    "unknown parameter: tool_choice",
    "unsupported parameter: top_temperature",
    "",
]


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("text", REFUSALS)
def test_a_refused_parameter_is_recognised(text: str, name: str) -> None:
    assert refused_parameters(text.format(name), PARAMETERS, limits=LIMITS) == {name}


@pytest.mark.parametrize("name", ["temperature", "seed"])
@pytest.mark.parametrize("text", REFUSED_VALUES)
def test_a_refused_value_refuses_its_parameter(text: str, name: str) -> None:
    assert refused_parameters(text.format(name, name), PARAMETERS, limits=LIMITS) == {name}


@pytest.mark.parametrize("text", OTHERS)
def test_other_errors_refuse_no_parameter(text: str) -> None:
    assert refused_parameters(text, PARAMETERS, limits=LIMITS) == set()


def test_several_parameters_are_recognised_together() -> None:
    text = "openai does not support parameters: ['temperature', 'seed'], for model=m"
    assert refused_parameters(text, PARAMETERS, limits=LIMITS) == {"temperature", "seed"}


def test_a_name_on_the_wire_is_recognised() -> None:
    text = 'Unknown name "maxOutputTokens" at generation_config'
    assert refused_parameters(text, ["max_output_tokens"], limits=LIMITS) == {"max_output_tokens"}


def test_only_what_was_sent_can_be_refused() -> None:
    text = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    assert refused_parameters(text, ["max_completion_tokens"], limits=LIMITS) == set()
