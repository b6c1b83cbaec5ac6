# SPDX-License-Identifier: Apache-2.0
"""Words of summaries and pictures (standard library only)."""


def count_text(number: float, what: str) -> str:
    """"1 file", "3 files"; `what` is the singular of a word that takes an s."""
    return f"{int(number)} {what}{'' if number == 1 else 's'}"
