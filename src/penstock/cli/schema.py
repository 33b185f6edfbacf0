"""`penstock schema`."""

import json

from penstock.cli.errors import one_line_errors


def schema() -> None:
    """Print the JSON Schema of the run file, for editors."""
    with one_line_errors():
        from penstock.config.schema import json_schema
        from penstock.run.run_config import RunConfig

        print(json.dumps(json_schema(RunConfig), indent=2))
