"""What lab.toml may hold: its tables as pydantic models, a module for each part of the file."""

from measuretwice.lab.schema.base import Name, NodeName
from measuretwice.lab.schema.collect import (
    Collect,
    CrowdFiles,
    FlowFiles,
    NodeFile,
    QdiscAt,
    QueueAt,
    SenderAt,
)
from measuretwice.lab.schema.expect import Checks, Expectation, ModelUse
from measuretwice.lab.schema.figures import (
    FIGURE_TABLES,
    AgainstFigure,
    BoxesFigure,
    FigureOf,
    OverTimeFigure,
    Panel,
    RegressionFigure,
    SequenceFigure,
    WindowsFigure,
)
from measuretwice.lab.schema.file import FORMAT_VERSION, About, LabFile
from measuretwice.lab.schema.first_try import FirstTry, Shown, TryStep
from measuretwice.lab.schema.parameters import (
    UNITS,
    InlineTrial,
    Parameter,
    TrialTable,
    Value,
    refers,
    unit_of,
)
from measuretwice.lab.schema.pitfalls import Again, Elsewhere, Factors, Pitfall, Predict, Stage
from measuretwice.lab.schema.recordings import Recording
from measuretwice.lab.schema.run import Run, Step
from measuretwice.lab.schema.topology import Edges, End, Link, Node, Topology

__all__ = [
    "FIGURE_TABLES",
    "FORMAT_VERSION",
    "UNITS",
    "About",
    "Again",
    "AgainstFigure",
    "BoxesFigure",
    "Checks",
    "Collect",
    "CrowdFiles",
    "Edges",
    "Elsewhere",
    "End",
    "Expectation",
    "Factors",
    "FigureOf",
    "FirstTry",
    "FlowFiles",
    "InlineTrial",
    "LabFile",
    "Link",
    "ModelUse",
    "Name",
    "Node",
    "NodeFile",
    "NodeName",
    "OverTimeFigure",
    "Panel",
    "Parameter",
    "Pitfall",
    "Predict",
    "QdiscAt",
    "QueueAt",
    "Recording",
    "RegressionFigure",
    "Run",
    "SenderAt",
    "SequenceFigure",
    "Shown",
    "Stage",
    "Step",
    "Topology",
    "TrialTable",
    "TryStep",
    "Value",
    "WindowsFigure",
    "refers",
    "unit_of",
]
