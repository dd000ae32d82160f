"""A random graph with the feeds of its runs and the flags that it is compiled with."""

from dataclasses import dataclass, field

import onnx

from judge import Judge


@dataclass
class Case:
    model: onnx.ModelProto
    runs: list  # of feeds, arrays by name
    flags: list = field(default_factory=list)

    def values(self):
        """What all names of the graph are in each run. Raises Declined where that cannot be judged."""
        judge = Judge.of(self.flags, self.model.opset_import[0].version)
        return [judge.graph(self.model.graph, feeds) for feeds in self.runs]

    def wanted(self):
        """The outputs of each run."""
        return [{output.name: scope[output.name] for output in self.model.graph.output} for scope in self.values()]
