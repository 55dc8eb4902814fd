"""Files whose memory `fit` cannot plan, told without a search."""

from modelplan.model import Graph
from modelplan.runtimes.tflm.file import FileModel


def why_unplannable(file: FileModel, graph: Graph) -> str:
    """Why the file's memory cannot be planned by `fit`, empty where it can."""
    called = [op for subgraph in file.subgraphs for op in subgraph.ops if op.calls]
    if any(op.kind != "CALL_ONCE" for op in called) or len(file.subgraphs) != 1 + len(called):
        callers = (f"op {i} {op.kind}" for i, op in enumerate(file.subgraphs[0].ops) if op.calls)
        listed = ", ".join(callers) or "no operator of the main graph"
        return (
            f"it has {len(file.subgraphs)} subgraphs ({listed} runs others), and these plans are for one alone;"
            " `modelplan fit --only plan` plans such files without stripes"
        )
    if file.compressed:
        return "its weights are compressed by metadata"
    if len(file.subgraphs[0].ops) != len(graph.ops):
        return "its graph has other operators than the file"
    strange = sorted({op.kind for op in file.subgraphs[0].ops if op.kind == "ethos-u"})
    return f"it holds {', '.join(strange)}" if strange else ""
