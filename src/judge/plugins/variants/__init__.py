"""Robustness: tasks under variants that are proven to change no verdict, and what a participant loses under them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from shared.declarations import Option, Setting
from shared.plugins import Plugin, PluginOptions, Trial


class VariantOptions(PluginOptions):
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


def prove(scenario: Any, settings: Any, *, write: bool) -> tuple[list[str], list[str]]:
    """Problems and notes of playing right and wrong scripts under every variant."""
    from judge.plugins.variants.proof import prove

    return prove(scenario, settings, write=write)


def measured(scenario: Path) -> str | None:
    """How many variants are proven."""
    from judge.plugins.variants.proof import proven_share

    return proven_share(scenario)


def columns() -> type[Any]:
    """The columns of rows."""
    from judge.plugins.variants.columns import VariantColumns

    return VariantColumns


def run() -> type[Any]:
    """What the participant loses under variants."""
    from judge.plugins.variants.figures import LostUnderVariants

    return LostUnderVariants


PLUGIN = Plugin(
    declares=(VariantOptions,),
    configured=configured,
    tries={"variants": Trial("Play right and wrong scripts with and without each variant.", prove)},
    measured=measured,
    columns=columns,
    run=run,
)
