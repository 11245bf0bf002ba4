"""TensorFlow: the SavedModel is run in this process, by the signature TensorFlow Serving would have been asked for."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

from model_service import log
from model_service.model_service import SingleNodeService

logger = log.getLogger(__name__)
SERVE = "serve"
DEFAULT_SIGNATURE = "serving_default"
INTERNAL_SIGNATURE = "__saved_model_init_op"


class TfServingBaseService(SingleNodeService):
    """`_inference` feeds the dict it gets, key by key, and returns a dict of Python lists."""

    def __init__(self, model_name: str, model_path: str) -> None:
        super().__init__(model_name, model_path)
        self.model_name = model_name
        self.model_path = model_path
        self.model_inputs: Dict[str, Any] = {}
        self.model_outputs: Dict[str, Any] = {}
        self.stub = None
        self.model = SavedModel(model_name, model_path)

    def _inference(self, data: Any) -> Any:
        return self._saved_model().run(data)

    def _saved_model(self) -> SavedModel:
        """The model as the base class loads it, also for a script that never called the base constructor."""
        found = getattr(self, "model", None)
        if not isinstance(found, SavedModel):
            found = self.__dict__.get("_panglot_saved_model")
        if found is None:
            found = SavedModel(getattr(self, "model_name", SERVE), getattr(self, "model_path", ""))
            self._panglot_saved_model = found
        return found

    def prepare_default_inference(self) -> None:
        """Load what the default `_inference` needs. Raises when there is nothing it could run."""
        self._saved_model().load()


class SavedModel:
    """A SavedModel and its chosen signature. Nothing is read before it is needed."""

    def __init__(self, model_name: str, model_path: str) -> None:
        self.model_name = model_name
        self.model_path = model_path
        self._session: Optional[Any] = None
        self._signature: Optional[Any] = None
        self._name = ""

    @property
    def model_signature(self) -> str:
        self._read()
        return self._name

    @property
    def model_inputs(self) -> Dict[str, Any]:
        return dict(self._read().inputs)

    @property
    def model_outputs(self) -> Dict[str, Any]:
        return dict(self._read().outputs)

    def load(self) -> Tuple[Any, Any]:
        """A session with the model in a graph of its own, and the signature to call."""
        if self._session is not None:
            return self._session, self._signature
        self._check()
        import tensorflow as tf

        session = tf.compat.v1.Session(graph=tf.Graph())
        meta_graph = tf.compat.v1.saved_model.loader.load(session, [SERVE], self.model_path)
        self._choose(dict(meta_graph.signature_def))
        self._session = session
        return session, self._signature

    def run(self, data: Any) -> Dict[str, Any]:
        """One forward pass. Raises ValueError for keys that are not the signature's."""
        session, signature = self.load()
        inputs, outputs = signature.inputs, signature.outputs
        strange = [str(key) for key in data if key not in inputs]
        if strange:
            raise ValueError("input key %s is not in model inputs %s" % (", ".join(strange), sorted(inputs)))
        graph = session.graph
        feed = {graph.get_tensor_by_name(inputs[key].name): value for key, value in data.items()}
        fetch = {key: graph.get_tensor_by_name(about.name) for key, about in outputs.items()}
        return {key: listed(value) for key, value in session.run(fetch, feed_dict=feed).items()}

    def _check(self) -> None:
        if not os.path.isfile(os.path.join(self.model_path, "saved_model.pb")):
            raise FileNotFoundError(
                "there is no saved_model.pb in %s, and the script has no _inference of its own" % self.model_path
            )

    def _read(self) -> Any:
        """The signature, from the file alone."""
        if self._signature is None:
            self._check()
            from tensorflow.core.protobuf import saved_model_pb2

            saved = saved_model_pb2.SavedModel()
            with open(os.path.join(self.model_path, "saved_model.pb"), "rb") as file:
                saved.ParseFromString(file.read())
            graphs = [graph for graph in saved.meta_graphs if SERVE in graph.meta_info_def.tags]
            self._choose(dict(graphs[0].signature_def) if graphs else {})
        return self._signature

    def _choose(self, signatures: Dict[str, Any]) -> None:
        """The only signature whatever its name, else serving_default."""
        names: List[str] = sorted(name for name in signatures if name != INTERNAL_SIGNATURE)
        if not names:
            raise ValueError("the SavedModel in %s has no signature to call" % self.model_path)
        name = names[0] if len(names) == 1 else DEFAULT_SIGNATURE
        if len(names) > 1:
            logger.warning("signatures more than one, use serving_default signature")
        if name not in signatures:
            raise ValueError("the SavedModel has the signatures %s and no %s" % (", ".join(names), DEFAULT_SIGNATURE))
        self._name, self._signature = name, signatures[name]


def listed(value: Any) -> Any:
    """An array as nested lists; text as text."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [listed(item) for item in value] if _holds_bytes(value) else value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _holds_bytes(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, bytes)
