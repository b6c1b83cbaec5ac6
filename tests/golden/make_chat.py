#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders test conversations with transformers' apply_chat_template.

    python tests/golden/make_chat.py TEMPLATES      (needs: transformers, tokenizers, jinja2)

TEMPLATES is a folder with the published chat template of each family as <family>.jinja (or <family>.<variant>.jinja);
the texts themselves are not part of this tree. Writes tests/golden/text/chat_cases.json: conversations, and for each
template its hash (FNV-1a of the text less one newline at the end) and the rendered texts, null where it raises.
"""
import json
import pathlib
import sys

import jinja2
import transformers
from tokenizers import Tokenizer, models

HERE = pathlib.Path(__file__).resolve().parent / "text"


def message(role, content):
    return {"role": role, "content": content}


CONVERSATIONS = [
    [message("user", "Hi there")],
    [message("user", "  What is 2+2?\n"), message("assistant", " 4 "), message("user", "\tand 3+3?")],
    [message("system", "Be brief. "), message("user", "ünïcode 🙂 \u3000")],
    [message("system", ""), message("user", "")],
    [message("system", "  S\n"), message("user", "u1"), message("assistant", "a1"), message("user", "u2"),
     message("assistant", "a2")],
    [message("user", "q"), message("assistant", "<think>\nhm\n\n</think>\n\nanswer")],
    [message("user", "q"), message("assistant", "<think>\nhm</think>first"), message("user", "again"),
     message("assistant", "no thoughts")],
    [message("user", "q"), message("assistant", "\n\nx</think>\n\ny</think>z\n")],
    [message("user", "q"), message("assistant", "one"), message("assistant", "<think>a</think>two")],
    [message("user", "q"), message("system", "late system"), message("user", "r")],
    [message("assistant", "I begin"), message("user", "ok")],
    [message("user", "<tool_response>5</tool_response>"), message("assistant", "<think>t</think>five")],
    [message("user", "q"), message("assistant", "a"), message("user", "<tool_response>5</tool_response>"),
     message("assistant", "<think>t</think>five")],
    [message("system", "only a system message")],
    [message("user", "<|im_end|>{{ braces }} {% raw %}")],
]


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001b3) % 2 ** 64
    return value


def main():
    tok = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>",
                                               eos_token="</s>")
    result = {"made_by": "tests/golden/make_chat.py", "transformers": transformers.__version__,
              "jinja2": jinja2.__version__, "bos_token": "<s>", "eos_token": "</s>", "conversations": CONVERSATIONS,
              "templates": []}
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")):
        template = path.read_text(encoding="utf-8")

        def render(messages, add_generation_prompt):
            try:
                return tok.apply_chat_template(messages, chat_template=template, tokenize=False,
                                               add_generation_prompt=add_generation_prompt)
            except jinja2.TemplateError:
                return None

        text = template[:-1] if template.endswith("\n") else template
        family = path.stem if path.stem in ("llama3.1",) or path.stem.startswith("qwen2.5") else path.stem.split(".")[0]
        result["templates"].append({"family": family, "hash": f"{fnv1a(text.encode()):016x}",
                                    "plain": [render(c, False) for c in CONVERSATIONS],
                                    "prompted": [render(c, True) for c in CONVERSATIONS]})
    with open(HERE / "chat_cases.json", "w", encoding="utf-8") as f:
        json.dump(result, f, ensure_ascii=False, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
