"""The tests that CI may skip, each with its reason; any other skip is a failure there."""

EXPECTED_SKIPS: dict[str, str] = {}
