#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures and a report of runs: taper report RUN_DIR [RUN_DIR ...] [--output DIR]
or of a latency profile: taper report profile.h5 [--output DIR]
or of a scaling study: taper report --scaling RUN_DIR [RUN_DIR ...] [--output DIR]
or for TensorBoard: taper report RUN_DIR [RUN_DIR ...] --tensorboard DIR

Writes PNG pictures, index.md, index.html (one file, pictures inside) and summary.json. Several runs
are drawn over one another; runs that differ in nothing but seeds and places of output are drawn as
their mean and standard deviation.
"""
import argparse
import json
import math
import os
import sys
from pathlib import Path

BAD_INPUT = 2  # exit code, as of the other commands

def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="taper report", description="Pictures and a report of runs of taper train."
    )
    parser.add_argument(
        "runs",
        metavar="RUN_DIR",
        nargs="+",
        type=Path,
        help="output directory of a run, or one profile.h5",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        help="where to write (default: RUN_DIR/report; of several runs: ./report)",
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--scaling",
        action="store_true",
        help="throughput and efficiency over the number of ranks; the runs of a directory are one study",
    )
    kind.add_argument(
        "--tensorboard",
        metavar="DIR",
        type=Path,
        help="writes event files for TensorBoard there, one directory a run, instead of a report",
    )
    return parser.parse_args(arguments)


def missing_package(name: str | None) -> str:
    """What to do where the interpreter lacks a package."""
    cure = "install them there, or name another interpreter with TAPER_PYTHON"
    top = Path(__file__).resolve().parents[1]
    if (top / "cmake/deps/install.sh").exists():
        cure = f'in {top}: eval "$(cmake/deps/install.sh --python)", which makes one that has them and sets TAPER_PYTHON'
    return f"error: taper report finds no {name} for {sys.executable} (h5py, numpy and matplotlib are needed); {cure}"


try:
    from report.captions import CAPTIONS
    from report.data import (
        Group,
        NamedRun,
        differing_parameters,
        group_runs,
        is_fine_tuning,
        load_runs,
        phase_table,
        span_text,
        trained_steps,
    )
    from report.figures import FIGURES
    from report.glossary import glossary
    from report.pages import Page, Picture, Table, html_page, markdown_page
    from report.profile import profile_page
    from report.scaling import console_table, scaling_figures, scaling_page, scaling_rows, studies_of
    from report.style import COLOURS, render
    from report.tensorboard import event_file, event_path
    from report.summary import console_lines, phase_rows, summarize, summary_table, time_shares
    from report.words import count_text
    from taper_h5 import ReadError, format_of, read_profile
except ModuleNotFoundError as missing:
    parse_arguments(sys.argv[1:])  # --help needs no packages
    sys.exit(missing_package(missing.name))


def write_whole(path: Path, content: bytes) -> None:
    """Aside, to disk, renamed: readers never find a half."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def draw_pictures(groups: list[Group]) -> list[Picture]:
    pictures = []
    for name, heading, draw in FIGURES:
        figure = draw(groups)
        if figure is not None:
            pictures.append(Picture(f"{name}.png", heading, render(figure), CAPTIONS[name]))
    return pictures


def fact_rows(runs: list[NamedRun]) -> list[list[str]]:
    """What ran where, with what came of it, a column for each run."""
    facts = [
        {"directory": str(named.directory.resolve())}
        | {
            name: value
            for name, value in named.run.facts.items()
            if name not in ("format", "format_version")
        }
        | {
            f"status/{name}": str(value)
            for name, value in named.status.items()
            if not isinstance(value, (dict, list))
        }
        for named in runs
    ]
    names = list(dict.fromkeys(name for fact in facts for name in fact))
    return [["", *(named.name for named in runs)]] + [
        [name, *(fact.get(name, "-") for fact in facts)] for name in names
    ]


def tables_of_origin(runs: list[NamedRun]) -> list[Table]:
    tables = []
    if differing := differing_parameters(runs):
        head = ["parameter", *(named.name for named in runs)]
        rows = [head, *([k, *v] for k, v in differing.items())]
        tables.append(Table("Parameters that differ", rows, False))
    return [*tables, Table("Where it ran", fact_rows(runs), False)]


def make_page(runs: list[NamedRun], groups: list[Group], pictures: list[Picture]) -> Page:
    tables = [Table("Summary", summary_table(groups))]
    for named in runs:
        rows = phase_rows(named)
        if rows:
            tables.append(
                Table("Time by phase" + (f", {named.name}" if len(runs) > 1 else ""), rows)
            )
    tables += tables_of_origin(runs)
    span = [f"{named.name}: {span_text(named.run)}" for named in runs]
    phases = {phase: None for named in runs for phase in phase_table(named.run)[1]}
    if phases and len(runs) > 1:
        phases["other"] = None
    terms = glossary([picture.file.removesuffix(".png") for picture in pictures], list(phases))
    title = f"Run {runs[0].name}" if len(runs) == 1 else f"{len(runs)} runs"
    configs = {named.name: named.run.config for named in runs}
    return Page(title, "; ".join(span), tables, pictures, configs, terms)


def summary_json(runs: list[NamedRun]) -> str:
    """The figures for scripts, by run; what cannot be said is null."""
    figures = {}
    for named in runs:
        values = summarize(named.run)
        clean = {key: value if math.isfinite(value) else None for key, value in values.items()}
        figures[named.name] = clean | {"time_shares": time_shares(named.run)}
    return json.dumps(figures, indent=2) + "\n"


def make_report(run_directories: list[Path], output: Path | None) -> Path:
    return write_report(load_runs(run_directories), output)


def write_report(runs: list[NamedRun], output: Path | None) -> Path:
    if output is None:
        output = runs[0].directory / "report" if len(runs) == 1 else Path("report")
    groups = group_runs(runs, COLOURS)
    pictures = draw_pictures(groups)
    page = make_page(runs, groups, pictures)
    write_pages(page, output)
    write_whole(output / "summary.json", summary_json(runs).encode())
    return output


def write_events(runs: list[NamedRun], directory: Path) -> None:
    """The metrics of each run as an event file, for `tensorboard --logdir DIRECTORY`."""
    for named in runs:
        path = event_path(directory, named.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, event_file(named.run))
        kind = "step" if is_fine_tuning(named.run) else "iteration"
        print(f"{path}: {count_text(len(trained_steps(named.run)), kind)}")


def make_profile_report(path: Path, output: Path | None) -> Path:
    page = profile_page(read_profile(path))
    output = output or path.with_name(path.stem + "-report")
    write_pages(page, output)
    return output


def make_scaling_report(run_directories: list[Path], output: Path | None) -> Path:
    """A size that failed is no reason to leave out the others."""
    studies, problems = studies_of(run_directories)
    for problem in problems:
        print(f"warning: {problem}", file=sys.stderr)
    if not studies:
        raise ReadError("no run is left to report")
    output = output or Path("report")
    runs = [named for study in studies for named in study.runs]
    write_pages(scaling_page(studies, problems, tables_of_origin(runs)), output)
    write_whole(output / "summary.json", json.dumps(scaling_figures(studies), indent=2).encode())
    print("\n".join(console_table(scaling_rows(studies))))
    return output


def write_pages(page: Page, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for picture in page.pictures:
        write_whole(output / picture.file, picture.png)
    write_whole(output / "index.md", markdown_page(page).encode())
    write_whole(output / "index.html", html_page(page).encode())


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    try:
        if options.tensorboard is not None:
            write_events(load_runs(options.runs), options.tensorboard)
            print(f"tensorboard --logdir {options.tensorboard} shows them")
            return 0
        if options.scaling:
            output = make_scaling_report(options.runs, options.output)
        elif len(options.runs) == 1 and format_of(options.runs[0]) == "taper-profile":
            output = make_profile_report(options.runs[0], options.output)
        else:
            runs = load_runs(options.runs)
            output = write_report(runs, options.output)
            for line in (line for named in runs for line in console_lines(named)):
                print(line)
    except ReadError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(
            f"error: the report cannot be written to {error.filename} ({error.strerror}); name another place with --output",
            file=sys.stderr,
        )
        return 1
    print(f"report written to {output / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
