"""`penstock doctor`."""

import typer

from penstock.cli.errors import one_line_errors


def doctor() -> None:
    """Tell what does not fit together on this machine, and the exact fix."""
    with one_line_errors():
        from penstock.runtime.doctor import diagnose

        findings = diagnose()
        for finding in findings:
            print(finding)
        if not all(finding.ok for finding in findings):
            raise typer.Exit(1)
