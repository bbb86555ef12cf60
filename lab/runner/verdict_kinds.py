"""The kinds of verdict. Written by scripts/write-tables from the tables of src/analysis; edit those."""

KINDS = (
    "cpu",
    "allocator",
    "spin",
    "network-stack",
    "serial-stage",
    "lock",
    "disk",
    "network",
    "downstream",
    "timer",
    "scheduler",
    "throttled",
    "accelerator",
    "concurrency-limited",
    "underloaded",
    "mixed",
    "withheld",
)
