"""Where a feature finds its values, which depends on the input mode of the run (data_config.fg_mode)."""

from dataclasses import dataclass

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint
from penstock.features.sections.basic import IdFeature, RawFeature
from penstock.features.sections.parsing import FgMode, ParsingSection

_SIDES = ("user", "item", "context")
_LATER_SIDES = ("feature", "const")


@dataclass(frozen=True, slots=True)
class FeatureInput:
    """The data column of a feature and how its texts are read."""

    column: str
    separator: bytes
    default: str | None
    """What stands in for a missing value; None: nothing does."""

    default_option: str
    """The option that sets the default, for messages."""

    encoded: bool
    """FG_NONE: the column holds ids and numbers that need no further work."""


def feature_input(config: IdFeature | RawFeature, parsing: ParsingSection) -> FeatureInput:
    """The input of a feature that reads one column."""
    mode = parsing.resolved_fg_mode()
    if mode is FgMode.FG_NONE:
        return FeatureInput(
            config.feature_name,
            parsing.fg_encoded_multival_sep.encode(),
            config.fg_encoded_default_value or None,
            "fg_encoded_default_value",
            encoded=True,
        )
    if mode is FgMode.FG_NORMAL:
        column = column_of(config.expression)
        return FeatureInput(
            column, config.separator.encode(), config.default_value or None, "default_value", encoded=False
        )
    raise ConfigError.at("data_config.fg_mode", f"{mode} is not available yet; FG_NONE and FG_NORMAL are")


def column_of(expression: str) -> str:
    """The column in a `side:column` expression.

    >>> column_of("user:age")
    'age'
    """
    side, colon, column = expression.partition(":")
    if side in _LATER_SIDES:
        raise ConfigError.at("expression", f"'{expression}': the side '{side}' is not available yet")
    if not colon or not column:
        raise ConfigError.at("expression", f"'{expression}' is not of the form side:column, such as user:age")
    if side not in _SIDES:
        raise ConfigError.at("expression", f"'{expression}': unknown side '{side}'; {hint(side, _SIDES)}")
    return column
