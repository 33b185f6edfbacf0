"""Raw files -> samples -> batch files: in parallel, in bounded memory, and going on after any interruption.

    preparing            all of it in order; the manifest of all batch files is written last
    inputs, tasks        files in order, and in tasks: what is done at a stretch, and kept or repeated as a whole
    settings, folder     what decides the bytes; what was begun in intermediate_dir, and whether one may go on there
      places, changes      where one may write (output_place: where a merge may); what has changed since
    schema_search        which arrays there are, from the first sample (extraction.schema_finding)
    crew                 tasks here, in processes, or on Ray: `executing` chooses
      crew, crew_size      how many processes there are, and who does what
      worker_process       a process, seen from both ends
      worker               what is said between it and its parent
      second_chances       what becomes of a task whose worker ended
      patience             notices who is silent
    work, records        a task -> batch files, and a record of them: with it the task is done
    extraction           a file -> samples or arrays, by the user's function (extract_function)
      column_roles         or by its columns (column_numbers, text_values)
      feature_groups       features in arrays of their own
      split_groups         what keeps samples together in splits (group_texts)
    failures, forks      whose fault it is, in one line; copies of a process that come back from the user's code
    watching             hears of everything: shows it, logs it, may end it
    summary              what was done

Which bytes there are depends on the files and the run file alone, not on who did which task when.
"""
