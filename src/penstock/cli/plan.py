"""`penstock plan`."""

from penstock.cli import options
from penstock.cli.errors import one_line_errors


def plan(
    run_file: options.RunFile,
    train_input_path: options.TrainInput = None,
    eval_input_path: options.EvalInput = None,
    model_dir: options.ModelDir = None,
    memory: options.Memory = None,
    sets: options.Sets = None,
    edit_config_json: options.EditJson = None,
    strict: options.Strict = False,
) -> None:
    """Say what each stage of RUN will hold, before it starts; write nothing."""
    with one_line_errors(run_file):
        paths = {
            "train_input_path": train_input_path,
            "eval_input_path": eval_input_path,
            "model_dir": model_dir,
            "memory.limit": memory,
        }
        run = options.load(run_file, paths, sets, edit_config_json, strict)
        from penstock.observe.summary import plan_summary
        from penstock.run.plan import plan as plan_run

        print(plan_summary(plan_run(run)))
