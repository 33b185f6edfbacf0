"""Raw files -> samples -> batch files: in parallel, in bounded memory, and going on after any interruption.

    inputs, tasks    files in order, and in tasks: what is done at a stretch, and kept or repeated as a whole
    schema_search    which arrays there are, from the first sample
    folder           what was begun in intermediate_dir, and whether one may go on there
    executing        tasks here, in processes (crew, worker, second_chances), or on Ray (ray_tasks)
    work             a task -> batch files and a record of them (records), by way of extraction
    watching         hears of everything: shows it, logs it, may end it (patience, summary)
    preparing        all of this in order; the manifest of all batch files is written last

A task is done when its record is on disk. Which bytes there are depends on the files and the run file alone, not on who
did which task when.
"""
