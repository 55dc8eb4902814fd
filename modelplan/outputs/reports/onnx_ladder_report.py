"""The ladder of an .onnx file as text: its rungs, what was chosen, and its settings as lines of Python and of C++."""

from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import human
from modelplan.questions.onnx_fitting import FitOnnxRequest
from modelplan.rewriting.striped_onnx.ladder import OnnxLadder
from modelplan.runtimes.ort.measuring import ort_version
from modelplan.runtimes.ort.settings_code import changed_options, cpp_settings, python_settings


def first_section(ladder: OnnxLadder) -> list[Section]:
    """Says that the file that needs least helps only with other settings, where that is so."""
    usual, least = ladder.rungs[0].usual.peak, ladder.least
    if least.model is None or least.usual.peak < usual:
        return []
    changes = " ".join(changed_options(least.settings, ladder.rungs[0].settings))
    line = f"a new file helps only with {changes}: {least.best.peak:,} bytes; as the model is run now {usual:,}"
    if ladder.chosen is not least:
        line += ", so none is written; give these options where you set this in your program"
    return [Section("", (line,))]


def rungs_section(request: FitOnnxRequest, ladder: OnnxLadder) -> Section:
    """The rungs with what each needs and costs."""
    headings = ("rung", ">usual: first", ">later runs", ">best: first", ">later runs", ">MACs", ">time", ">spread",
                ">nodes", "best settings")  # fmt: skip
    rows = tuple(
        (
            rung.name + " *" * (rung is ladder.chosen),
            f"{rung.usual.first:,}", f"{rung.usual.steady:,}", f"{rung.best.first:,}", f"{rung.best.steady:,}",
            f"{100 * (rung.macs - ladder.macs) / max(ladder.macs, 1):+.1f} %", f"x {rung.seconds:.2f}",
            "{:.2f} to {:.2f}".format(*rung.spread) if rung.difference else "", f"{rung.nodes}",
            rung.settings.described(),
        )
        for rung in ladder.rungs
    )  # fmt: skip
    level, threads = request.settings.level, request.settings.threads
    lines = (
        f"measured on ONNX Runtime {ort_version()}, optimization level {level}, threads: {threads}",
        "bytes of a run above what the loaded session of the model needs; weights and inputs are not among them",
        "what the session of a new file needs more than that, such as weights packed for each stripe, is counted",
    )
    return Section(f"{request.path}: rungs", lines, Table(headings, rows))


def verdict(request: FitOnnxRequest, ladder: OnnxLadder, output: str) -> list[Section]:
    """What was chosen and is written to `output`, what it changes, and the settings to paste."""
    lines = []
    rung = ladder.chosen
    if rung is None:
        budget, least = human(request.budget or 0), human(ladder.least.best.peak)
        lines.append(f"nothing fits in {budget}; the least that was found is {least}")
    else:
        lines += [f"stripes        {line}" for line in rung.stretches]
        if rung.model is None:
            lines.append(f"nothing is written: {request.path} is the file to use, at these settings")
        else:
            lines.append(f"changes        {rung.what}")
            if rung.difference is not None:
                lines.append(f"checked        {rung.difference.described()}")
            lines.append(f"written to     {output}")
    if ladder.ended_early:
        lines.append("ended early    not all was tried; more time, by --seconds, may find less")
    lines += [f"remark         {remark}" for remark in ladder.remarks]
    sections = [Section("", tuple(lines))]
    if rung is not None:
        file = output if rung.model else request.path
        sections += [
            Section("Python", commands=tuple(python_settings(rung.settings, file))),
            Section("C++", commands=tuple(cpp_settings(rung.settings, file))),
        ]
    return sections
