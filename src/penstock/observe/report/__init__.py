"""A run's own records -> one page that explains it: report.html.

`run_record` reads a model_dir; `curves` and the modules named `*_part` turn one or several runs into parts of the
page; `line_chart` and `bar_chart` turn series into SVG and know nothing of runs; `page` puts
the parts together with the style and the script that lie beside it. Nothing here imports torch or needs a network.
"""
