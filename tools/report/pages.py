# SPDX-License-Identifier: Apache-2.0
"""The report as index.md beside its pictures, and as one index.html that holds them."""
import base64
import html
import re
from dataclasses import dataclass

STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #f4f6f8; color: #1f2933; font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; }
h2 { font-size: 1.15rem; margin: 0 0 .7rem; }
.lead { color: #5b6770; margin: 0 0 1.4rem; }
section { background: #fff; border: 1px solid #dfe4ea; border-radius: 10px; padding: 1.1rem 1.3rem; margin: 0 0 1.1rem;
          overflow-x: auto; }
nav { margin: 0 0 1.2rem; line-height: 1.9; }
nav a { color: #2563a8; text-decoration: none; margin-right: 1rem; white-space: nowrap; }
nav a:hover { text-decoration: underline; }
.unseen { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%); }
img { display: block; width: 100%; max-width: 1000px; height: auto; margin: 0 auto; }
.caption { color: #5b6770; max-width: 1000px; margin: .6rem auto 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .28rem .9rem .28rem 0; border-bottom: 1px solid #eceff2; vertical-align: top; }
th { color: #5b6770; font-weight: 600; vertical-align: bottom; }
td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 8.5rem; position: sticky; left: 0;
                                 background: #fff; }
.left td { white-space: normal; min-width: 6.5rem; }
.left th, .left td { text-align: left; overflow-wrap: anywhere; }
details { margin-top: .4rem; }
summary { cursor: pointer; color: #5b6770; }
pre { background: #f4f6f8; border-radius: 6px; padding: .8rem; overflow-x: auto; font-size: 12.5px; line-height: 1.4; }
@media (max-width: 700px) {
  main { padding: 1.2rem .6rem 2rem; }
  section { padding: .8rem; position: relative; }
  img { width: 660px; max-width: none; }  /* smaller is not readable: the picture scrolls in its frame */
}
@media print { nav { display: none; } section { break-inside: avoid; } body { background: #fff; } }
"""


@dataclass(frozen=True)
class Table:
    heading: str
    rows: list[list[str]]  # the first is the head
    numbers: bool = True  # columns after the first to the right


@dataclass(frozen=True)
class Picture:
    file: str
    heading: str
    png: bytes
    caption: str = ""  # what one sees, in a sentence


@dataclass(frozen=True)
class Page:
    title: str
    lead: str
    tables: list[Table]  # the first stands above the pictures, the others below
    pictures: list[Picture]
    configs: dict[str, str]  # name of a run -> its parameters
    glossary: Table  # the end of the page


def markdown_page(page: Page) -> str:
    parts = [f"# {page.title}", page.lead, *(_markdown_table(table) for table in page.tables[:1])]
    parts += [_markdown_picture(picture) for picture in page.pictures]
    parts += [_markdown_table(table) for table in page.tables[1:]]
    for name, text in page.configs.items():
        fence = "```" if "```" not in text else "~~~~"
        parts.append(f"## Parameters of {name}\n\n{fence}\n{text.rstrip()}\n{fence}")
    parts.append(_markdown_table(page.glossary))
    return "\n\n".join(parts) + "\n"


def _markdown_picture(picture: Picture) -> str:
    text = f"## {picture.heading}\n\n![{picture.heading}]({picture.file})"
    return f"{text}\n\n{picture.caption}" if picture.caption else text


def _markdown_table(table: Table) -> str:
    head, *body = [
        [cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in table.rows
    ]
    rule = ["---"] + ["---:" if table.numbers else "---"] * (len(head) - 1)
    lines = ["| " + " | ".join(row) + " |" for row in [head, rule, *body]]
    return f"## {table.heading}\n\n" + "\n".join(lines)


def html_page(page: Page) -> str:
    parts = [_html_table(table) for table in page.tables[:1]]
    parts += [_html_picture(picture) for picture in page.pictures]
    parts += [_html_table(table) for table in page.tables[1:]]
    parts += [_html_config(name, text) for name, text in page.configs.items()]
    parts.append(_html_table(page.glossary))
    parts.insert(0, _html_contents(page))
    title, lead, body = html.escape(page.title), html.escape(page.lead), "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        f'<p class="lead">{lead}</p>\n{body}\n</main>\n</body>\n</html>\n'
    )


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _html_heading(heading: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<h2{mark} id="{_anchor(heading)}">{html.escape(heading)}</h2>'


def _html_contents(page: Page) -> str:
    order = (*page.tables[:1], *page.pictures, *page.tables[1:], page.glossary)
    headings = [part.heading for part in order]
    links = [f'<a href="#{_anchor(heading)}">{html.escape(heading)}</a>' for heading in headings]
    return "<nav>\n" + "\n".join(links) + "\n</nav>"


def _html_table(table: Table) -> str:
    head, *body = [[html.escape(cell) for cell in row] for row in table.rows]
    lines = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body]
    kind = "" if table.numbers else ' class="left"'
    rows = "\n".join(lines)
    heading = _html_heading(table.heading)
    return f"<section>\n{heading}\n<table{kind}>\n{rows}\n</table>\n</section>"


def _html_picture(picture: Picture) -> str:
    data, name = base64.b64encode(picture.png).decode("ascii"), html.escape(picture.heading)
    heading = _html_heading(picture.heading, "unseen")  # the picture has its own
    caption = f'<p class="caption">{html.escape(picture.caption)}</p>\n' if picture.caption else ""
    image = f'<img alt="{name}" src="data:image/png;base64,{data}">'
    return f"<section>\n{heading}\n{image}\n{caption}</section>"


def _html_config(name: str, text: str) -> str:
    return (
        f"<section>\n{_html_heading('Parameters of ' + name)}\n<details>\n<summary>show</summary>\n"
        f"<pre>{html.escape(text.rstrip())}</pre>\n</details>\n</section>"
    )
