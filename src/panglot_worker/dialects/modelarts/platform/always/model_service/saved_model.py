"""A SavedModel, run by one of its signatures.

What TensorFlow 2 wrote is loaded by TensorFlow 2: the session loader does not restore every variable of such a model,
Keras 3's for one. Exports of TensorFlow 1, and scripts that turned TensorFlow 2 behaviour off, have the session loader.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional

from model_service import log
from model_service.model_inputs import Input, refuse_incomplete, refuse_strange

logger = log.getLogger(__name__)
SERVE = "serve"
DEFAULT_SIGNATURE = "serving_default"
INTERNAL_SIGNATURE = "__saved_model_init_op"
FILE = "saved_model.pb"

Run = Callable[[Dict[str, Any]], Dict[str, Any]]


class SavedModel:
    """A SavedModel and its chosen signature. Nothing is read before it is needed."""

    def __init__(self, model_name: str, model_path: str) -> None:
        self.model_name = model_name
        self.model_path = model_path
        self._graph: Optional[Any] = None
        self._run: Optional[Run] = None

    @property
    def model_signature(self) -> str:
        """The name of the signature: the only one whatever its name, else serving_default. Raises ValueError."""
        names = self._names()
        if not names:
            raise ValueError("the SavedModel in %s has no signature to call" % self.model_path)
        if len(names) == 1:
            return names[0]
        if DEFAULT_SIGNATURE not in names:
            raise ValueError("the SavedModel has the signatures %s and no %s" % (", ".join(names), DEFAULT_SIGNATURE))
        return DEFAULT_SIGNATURE

    @property
    def model_inputs(self) -> Dict[str, Any]:
        return dict(self._signature().inputs)

    @property
    def model_outputs(self) -> Dict[str, Any]:
        return dict(self._signature().outputs)

    def described_inputs(self) -> Dict[str, Input]:
        """The inputs of the signature, from the file alone. Raises what `load` raises."""
        import tensorflow as tf

        inputs = {}
        for name, about in self._signature().inputs.items():
            sizes = [size.size if size.size >= 0 else None for size in about.tensor_shape.dim]
            kind = tf.dtypes.as_dtype(about.dtype).name
            inputs[name] = Input(kind, None if about.tensor_shape.unknown_rank else sizes)
        return inputs

    def load(self) -> Run:
        """The function that runs the signature. Raises when there is no SavedModel, or none that can be called."""
        if self._run is None:
            name, signature = self.model_signature, self._signature()
            if len(self._names()) > 1:
                logger.warning("signatures more than one, use serving_default signature")
            import tensorflow as tf

            of_tensorflow_2 = len(self._meta_graph().object_graph_def.nodes) > 0
            if of_tensorflow_2 and tf.executing_eagerly():
                self._run = by_signature(tf, self.model_path, name, signature)
            else:
                self._run = by_session(tf, self.model_path, signature)
        return self._run

    def run(self, data: Any) -> Dict[str, Any]:
        """One forward pass. Raises ValueError for keys that are not the signature's."""
        return self.load()(data)

    def _meta_graph(self) -> Any:
        """The graph to serve and its signatures, read from the file without loading a weight."""
        if self._graph is None:
            path = os.path.join(self.model_path, FILE)
            if not os.path.isfile(path):
                raise FileNotFoundError(
                    "there is no %s in %s, and the script has no _inference of its own" % (FILE, self.model_path)
                )
            from tensorflow.core.protobuf import saved_model_pb2

            saved = saved_model_pb2.SavedModel()
            with open(path, "rb") as file:
                saved.ParseFromString(file.read())
            graphs = [graph for graph in saved.meta_graphs if SERVE in graph.meta_info_def.tags]
            if not graphs:
                raise ValueError("the SavedModel in %s has no graph tagged %r" % (self.model_path, SERVE))
            self._graph = graphs[0]
            self._graph.ClearField("graph_def")
        return self._graph

    def _names(self) -> List[str]:
        return sorted(name for name in self._meta_graph().signature_def if name != INTERNAL_SIGNATURE)

    def _signature(self) -> Any:
        return self._meta_graph().signature_def[self.model_signature]


def by_signature(tf: Any, path: str, name: str, signature: Any) -> Run:
    """The signature of a model that TensorFlow 2 wrote."""
    loaded = tf.saved_model.load(path)
    types = {key: tf.dtypes.as_dtype(about.dtype).as_numpy_dtype for key, about in signature.inputs.items()}

    def run(data: Dict[str, Any]) -> Dict[str, Any]:
        """Outputs by name. Raises ValueError unless the keys are the signature's inputs, and what TensorFlow raises."""
        import numpy

        refuse_strange(data, types)
        refuse_incomplete(data, types)
        inputs = {key: tf.constant(numpy.asarray(value, types[key])) for key, value in data.items()}
        # Read from `loaded` every time: a signature alone does not keep the variables of its model alive.
        return {key: value.numpy() for key, value in loaded.signatures[name](**inputs).items()}

    return run


def by_session(tf: Any, path: str, signature: Any) -> Run:
    """The signature of a model that TensorFlow 1 wrote, in a session with a graph of its own."""
    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph)
    tf.compat.v1.saved_model.loader.load(session, [SERVE], path)
    inputs = {key: graph.get_tensor_by_name(about.name) for key, about in signature.inputs.items()}
    outputs = {key: graph.get_tensor_by_name(about.name) for key, about in signature.outputs.items()}

    def run(data: Dict[str, Any]) -> Dict[str, Any]:
        refuse_strange(data, inputs)
        answer: Dict[str, Any] = session.run(outputs, feed_dict={inputs[key]: value for key, value in data.items()})
        return answer

    return run
