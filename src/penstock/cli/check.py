"""`penstock check`."""

from penstock.cli import options
from penstock.cli.errors import one_line_errors


def check(
    run_file: options.RunFile,
    train_input_path: options.TrainInput = None,
    eval_input_path: options.EvalInput = None,
    model_dir: options.ModelDir = None,
    memory: options.Memory = None,
    sets: options.Sets = None,
    edit_config_json: options.EditJson = None,
    strict: options.Strict = False,
) -> None:
    """Read RUN, open its data, build its model, take one batch; write nothing.

    Of a run file that has only preprocessing, the files are found and the first sample is made.
    """
    with one_line_errors(run_file):
        paths = {
            "train_input_path": train_input_path,
            "eval_input_path": eval_input_path,
            "model_dir": model_dir,
            "memory.limit": memory,
        }
        run = options.load(run_file, paths, sets, edit_config_json, strict)
        from penstock.run.check import check_preparation, is_for_preparation, preview_lines

        if is_for_preparation(run):
            print("\n".join(preview_lines(check_preparation(run))))
            return
        from penstock.observe.summary import check_summary
        from penstock.run.check import check as check_run

        print(check_summary(check_run(run)))
