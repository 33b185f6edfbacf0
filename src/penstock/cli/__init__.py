"""Commands: parse the words, call one function of `run`, print, give an exit code.

`app.py` lists the commands, which stand in one file for each group. A user's mistake is one line on stderr and a
non-zero exit; a traceback comes only with --debug.
"""
