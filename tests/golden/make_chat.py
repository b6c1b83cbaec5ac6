#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders test conversations with transformers' apply_chat_template.

    python tests/golden/make_chat.py PUBLISHED           (needs: transformers, tokenizers, jinja2)
    python tests/golden/make_chat.py --of FOLDER OUT.json [NAME ...]

PUBLISHED is the folder share/minja/templates of the dependency minja, which holds published chat templates; they are
not part of this tree. To them come those of tests/golden/text/templates and data/chat_templates. Writes
tests/golden/text/chat_cases.json: chats, and for each template, by its file's name, the rendered texts, null if it
raises, and false if it is applied to what it is not made for. The date is the one that Taper gives to templates. The
second form renders all templates *.jinja of a folder, such as TRL's, less those whose names begin with a NAME, for
test_text with TAPER_CHAT_CASES=OUT.json.
"""
import datetime
import json
import pathlib
import sys

import jinja2
import transformers
from tokenizers import Tokenizer, models
from transformers.utils import chat_template_utils

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = ROOT / "tests/golden/text"
PUBLISHED = ["Mistral-Small-3.2-24B-Instruct-2506", "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "Qwen-QwQ-32B",
             "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
             "google-gemma-2-2b-it", "ibm-granite-granite-3.3-2B-Instruct", "meta-llama-Llama-3.1-8B-Instruct",
             "meta-llama-Llama-3.2-3B-Instruct", "meta-llama-Llama-3.3-70B-Instruct", "microsoft-Phi-3.5-mini-instruct",
             "mistralai-Mistral-Nemo-Instruct-2407", "moonshotai-Kimi-K2", "openai-gpt-oss-120b",
             "unsloth-mistral-Devstral-Small-2507"]


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26)


def message(role, content, **other):
    return {"role": role, "content": content, **other}


TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The <b>weather</b> of a place's \"now\"",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "such as Zürich"},
                                                    "days": {"type": "integer"}}, "required": ["city"]}}}]
CALL = message("assistant", "", tool_calls=[
    {"type": "function", "id": "abcdefghi",
     "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}}])
RESULT = message("tool", "12 °C", name="get_weather", tool_call_id="abcdefghi")

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
CHATS = [{"messages": messages} for messages in CONVERSATIONS] + [
    {"messages": [message("user", "w?")], "tools": TOOLS},
    {"messages": [message("system", "sys"), message("user", "w?"), CALL, RESULT], "tools": TOOLS},
    {"messages": [message("user", "w?"), CALL, RESULT, message("assistant", "It is 12."), message("user", "thanks")],
     "tools": TOOLS},
]


def in_golden_file(published):
    """The templates of chat_cases.json, by the names they have there."""
    embedded = json.loads((ROOT / "data/tokenizer/tokenizer_config.json").read_text(encoding="utf-8"))["chat_template"]
    templates = {"data/tokenizer": embedded}
    for folder in ("tests/golden/text/templates", "data/chat_templates"):
        for path in sorted((ROOT / folder).glob("*.jinja")):
            templates[f"{folder}/{path.name}"] = path.read_text(encoding="utf-8")
    for name in PUBLISHED:
        templates[f"{name}.jinja"] = (pathlib.Path(published) / f"{name}.jinja").read_text(encoding="utf-8")
    return templates


def main():
    if sys.argv[1] == "--of":
        paths = sorted(path for path in pathlib.Path(sys.argv[2]).resolve().glob("*.jinja")
                       if not path.name.startswith(tuple(sys.argv[4:])))
        templates, out = {str(path): path.read_text(encoding="utf-8") for path in paths}, sys.argv[3]
    else:
        templates, out = in_golden_file(sys.argv[1]), TEXT / "chat_cases.json"
    chat_template_utils.datetime = FixedDate
    tok = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>",
                                               eos_token="</s>")

    def render(chat, template, add_generation_prompt):
        try:
            return tok.apply_chat_template(chat["messages"], tools=chat.get("tools"), chat_template=template,
                                           tokenize=False, add_generation_prompt=add_generation_prompt)
        except jinja2.TemplateError:
            return None
        except TypeError:  # such as a loop over tools that are not there
            return False

    result = {"made_by": "tests/golden/make_chat.py", "transformers": transformers.__version__,
              "jinja2": jinja2.__version__, "bos_token": "<s>", "eos_token": "</s>", "chats": CHATS,
              "templates": [{"file": file, "plain": [render(chat, text, False) for chat in CHATS],
                             "prompted": [render(chat, text, True) for chat in CHATS]}
                            for file, text in templates.items()]}
    with open(out, "w", encoding="utf-8") as f:
        json.dump(result, f, ensure_ascii=False, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
