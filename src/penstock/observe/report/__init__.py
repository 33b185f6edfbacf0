"""A run's own records -> one page that explains it: report.html, without anything from elsewhere.

`run_record` reads a model_dir, `page` chooses what is shown, `charts` and `tables` make values of it, and page.html.j2
with page.css and page.js draws them.
"""
