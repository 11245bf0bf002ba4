"""TensorFlow frozen graphs: one .pb file, fed by its placeholders, read at its ends."""

from __future__ import annotations

import glob
import os
from typing import Any, Dict

from model_service.model_service import SingleNodeService


class FrozenGraphBaseService(SingleNodeService):
    """`_inference` feeds placeholders by name and returns every output nothing else consumes, as arrays."""

    def __init__(self, model_name: str, model_path: str) -> None:
        super().__init__(model_name, model_path)
        self.model_name = model_name
        self.model_path = model_path
        self.model_inputs: Dict[str, Any] = {}
        self.model_outputs: Dict[str, Any] = {}
        self.sess: Any = None

    def _inference(self, data: Any) -> Any:
        self.prepare_default_inference()
        feed = {self.model_inputs[key]: value for key, value in data.items()}
        return self.sess.run(self.model_outputs, feed_dict=feed)

    def prepare_default_inference(self) -> None:
        """Load the graph the default `_inference` runs."""
        if getattr(self, "sess", None) is not None:
            return
        files = sorted(glob.glob(os.path.join(self.model_path, "*.pb")))
        if not files:
            raise FileNotFoundError("there is no .pb file in %s" % self.model_path)
        import tensorflow as tf

        definition = tf.compat.v1.GraphDef()
        with open(files[0], "rb") as file:
            definition.ParseFromString(file.read())
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(definition, name="")
        operations = graph.get_operations()
        self.model_inputs = {entry.name: entry.outputs[0] for entry in operations if entry.type == "Placeholder"}
        self.model_outputs = {
            entry.name: entry.outputs[0]
            for entry in operations
            if entry.outputs and not any(output.consumers() for output in entry.outputs)
        }
        self.sess = tf.compat.v1.Session(graph=graph)
