# SPDX-License-Identifier: Apache-2.0
"""What benchmarks that start `taper` and print Markdown tables share."""


def assignments(values):
    """Words of a command line that set parameters by name."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def print_row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def print_head(*titles):
    print_row(*titles)
    print("|---" * len(titles) + "|")
