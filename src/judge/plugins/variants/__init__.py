"""Robustness: tasks under variants that are proven to change no verdict, and what a participant loses under them."""

from collections.abc import Mapping
from typing import Annotated, Any

from shared.declarations import Option, Setting
from shared.models import Record
from shared.plugins import Plugin


class VariantOptions(Record):
    """The options."""

    variant_names: Annotated[
        tuple[str, ...],
        Setting(
            option=Option(
                "With --variants: this variant only; repeatable.", metavar="NAME", flag="variant", before="meter"
            )
        ),
    ] = ()


def configured(start: Any, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Which tasks under variants are played."""
    from judge.plugins.variants.proof import held_variants

    return held_variants(start.declared, config, start.options.variant_names)


def validated(scenario: Any, settings: Any, *, write: bool) -> tuple[list[str], list[str]]:
    """Problems and notes of playing right and wrong scripts under every variant."""
    from judge.plugins.variants.proof import prove

    return prove(scenario, settings, write=write)


def columns() -> type[Any]:
    """The columns of rows."""
    from judge.plugins.variants.columns import VariantColumns

    return VariantColumns


def run() -> type[Any]:
    """What the participant loses under variants."""
    from judge.plugins.variants.figures import LostUnderVariants

    return LostUnderVariants


PLUGIN = Plugin(settings=(VariantOptions,), configured=configured, validated=validated, columns=columns, run=run)
