"""The run file: text -> checked sections.

A section is a pydantic model beside its owner. A file in one of three syntaxes becomes plain data with
positions (`syntax`), edits change the data (`edits`), and `load` finds every problem at once; the result is the
section and what its fields report about themselves. `write` goes the other way. This
package knows no section of any other package: the root class is passed in.
"""
