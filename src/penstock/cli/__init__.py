"""Commands: parse the words, call one function of `pipeline`, print, give an exit code.

Each command is a file; `app.py` lists them. A user's mistake is one line on stderr and a non-zero exit; a traceback
comes only with --debug.
"""
