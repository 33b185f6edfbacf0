"""Changes to a run file from the command line: PATH=VALUE, or a JSON object of many paths.

A path is read into steps (`steps`), the steps find the places of the data that they mean (`places`), and the
value takes the type of the field that stands there (`values`). Nothing is checked here beyond the path: the
edited data are checked as a whole, so that every problem is reported once.
"""

from penstock.config.edits.apply import Edited, Edits, edit_data

__all__ = ["Edited", "Edits", "edit_data"]
