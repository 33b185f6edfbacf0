"""The doctor judges facts that are passed in: every machine can be described here."""

from dataclasses import replace

import pytest

from penstock.runtime.doctor import Facts, Finding, diagnose, run_python

HEALTHY = Facts(
    versions={
        "torch": "2.13.0+cpu",
        "torchrec": "1.8.0",
        "fbgemm-gpu-cpu": "1.8.0",
        "torchmetrics": "1.0.3",
    }
)


def with_versions(**changes: str | None) -> Facts:
    """The healthy machine with other versions; None: not installed."""
    versions = dict(HEALTHY.versions)
    for name, version in changes.items():
        package = name.replace("_", "-")
        versions.pop(package, None)
        if version is not None:
            versions[package] = version
    return replace(HEALTHY, versions=versions)


def failures(facts: Facts) -> list[Finding]:
    return [finding for finding in diagnose(facts) if not finding.ok]


PIP = "python -m pip install --no-deps"
WRONG = [
    (
        replace(HEALTHY, python_version=(3, 10, 4)),
        "python: is 3.10.4; 3.11, 3.12 or 3.13 is needed",
        "rm -rf .venv && make setup PYTHON=python3.11",
    ),
    (
        with_versions(torch="2.12.1+cpu"),
        "torch: is 2.12.1+cpu; fbgemm and torchrec 1.8 are built for 2.13",
        f"{PIP} torch==2.13.0+cpu",
    ),
    (
        with_versions(torchrec="1.7.0"),
        "torchrec: is 1.7.0; torch 2.13.0+cpu goes with torchrec 1.8",
        f"{PIP} torchrec==1.8.0",
    ),
    (
        with_versions(fbgemm_gpu="1.8.0"),
        (
            "fbgemm-gpu: is installed beside fbgemm-gpu-cpu; they overwrite each other, and torch is a CPU build, "
            "which needs fbgemm-gpu-cpu"
        ),
        (
            "python -m pip uninstall --yes fbgemm-gpu fbgemm-gpu-cpu && "
            f"{PIP} --force-reinstall fbgemm-gpu-cpu==1.8.0"
        ),
    ),
    (replace(HEALTHY, open_files=256), "open files: at most 256; 1024 are needed", "ulimit -n 65536"),
]


@pytest.mark.parametrize(("facts", "message", "fix"), WRONG, ids=[message for _, message, _ in WRONG])
def test_what_is_wrong_is_said_with_its_fix(facts: Facts, message: str, fix: str):
    assert [str(finding) for finding in failures(facts)] == [f"FAIL  {message}\n      fix: {fix}"]


def test_cuda_fbgemm_with_cpu_torch_is_missing_the_right_one_and_has_the_wrong_one():
    facts = with_versions(fbgemm_gpu_cpu=None, fbgemm_gpu="1.8.0")

    missing, wrong = failures(facts)

    assert str(missing).startswith("FAIL  fbgemm-gpu-cpu: is not installed\n      fix: ")
    assert wrong.message == "is of the other kind, and torch is a CPU build, which needs fbgemm-gpu-cpu"


def test_a_module_that_does_not_load_is_a_fact():
    assert run_python("import no_such_module") == (
        "",
        "ModuleNotFoundError: No module named 'no_such_module'",
    )
    assert run_python("import os; os.kill(os.getpid(), 11)") == ("", "crashed with signal 11")


def test_whether_the_processor_computes_bf16_is_told_and_is_no_failure():
    facts = replace(HEALTHY, bf16_problem="crashed with signal 4", bf16_is_cured=True)
    message = (
        "fails on this processor (crashed with signal 4), and does not with the environment variable "
        "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16: set it for mixed_precision: BF16"
    )

    assert Finding("BF16", message) in diagnose(facts)
    assert failures(facts) == []
