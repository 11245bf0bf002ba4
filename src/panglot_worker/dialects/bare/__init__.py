"""Model files without a script: what they take and give is in the file, and `runtimes` runs it."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional, Sequence

from panglot_worker.dialects.bare import describing
from panglot_worker.dialects.bare.pictures import PictureInput, picture_input
from panglot_worker.dialects.bare.requests import InputReader
from panglot_worker.dialects.bare.tensors import LABELS, TensorTaker
from panglot_worker.dialects.base import Answer, Dialect, Package, Request, Stages, TensorStages
from panglot_worker.line.description import Description
from panglot_worker.runtimes import open_model, proving
from panglot_worker.runtimes.base import Arrays, DeclaredInput, ModelFile, ModelRuntime
from panglot_worker.runtimes.rows import Feed, run_rows, run_together


class Bare(Dialect):
    """One model per worker."""

    streams = False

    def __init__(self, package: Package) -> None:
        super().__init__(package)
        self.model: ModelRuntime
        self.reader: InputReader
        self.sliced = 0
        """The most rows of one run; 0: as many as a request brings."""

    def load(self, progress: Callable[[str], None]) -> Stages:
        """Open the model. Raises ScriptError, one line with a fix."""
        options = self.package.options
        progress("loading " + os.path.basename(self.package.script))
        declared = {spec["name"]: spec for spec in options.get("inputs", ())}
        self.model = open_model(options["kind"], self._file(declared))
        unknown = sorted(set(declared) - {spec.name for spec in self.model.inputs})
        if unknown:
            names = ", ".join(spec.name for spec in self.model.inputs)
            raise self.model.file.error("panglot.toml declares the input %s; the model has %s" % (unknown[0], names))
        pictures = {spec.name: picture_input(spec, declared.get(spec.name, {})) for spec in self.model.inputs}
        taken: Dict[str, PictureInput] = {name: picture for name, picture in pictures.items() if picture is not None}
        self.reader = InputReader(self.model.inputs, taken, self.model.any_name, self.limits)
        return Stages(decode=self.decode, infer=self.infer, encode=self.encode, decodes_ahead=True)

    def _file(self, declared: Dict[str, Any]) -> ModelFile:
        inputs = [
            DeclaredInput(spec["name"], spec.get("datatype", ""), spec.get("shape")) for spec in declared.values()
        ]
        device = os.environ.get("PANGLOT_DEVICE", "")
        threads = int(os.environ.get("OMP_NUM_THREADS", "1") or 1)
        options = self.package.options
        names = dict(options.get("outputs", ()))
        return ModelFile(self.package.script, device, threads, inputs, options.get("parameters", ""), names)

    def describe(self) -> Description:
        return describing.describe(self.model, self.reader.pictures, self.package.folder)

    def warm_up(self, stages: Stages) -> Stages:
        """Run the model's example, then see whether rows of several requests may share a run, and say why or not."""
        example = self._example()
        if example is not None:
            self.infer(Feed(example, self._outputs()))
        verdict = proving.verdict(self.model, int(self.package.settings["max_batch"]), example)
        self.sliced = verdict.sliced
        if self.package.worker == 0:
            self.note("requests are batched, up to %d rows in one run: %s" % (verdict.rows, verdict.why) if verdict.rows
                      else "requests are not batched: %s" % verdict.why)  # fmt: skip
        if not verdict.rows:
            return stages
        self.max_batch = verdict.rows
        return stages._replace(infer_batch=self.infer_batch)

    def _example(self) -> Optional[Arrays]:
        """The example beside the model. Raises ClientError where the model does not take it."""
        given = describing.given_example(self.package.folder)
        if given is None:
            return None
        fields = given if isinstance(given, dict) else {self.reader.only.name: given}
        return self.reader.from_fields(fields)

    def _outputs(self) -> Any:
        return tuple(spec.name for spec in self.model.outputs)

    # The stages

    def decode(self, request: Request) -> Feed:
        arrays = self.reader.decode(request.head.content_type.decode("latin-1"), request.body)
        return self._counted(request, Feed(arrays, self._outputs()))

    def _counted(self, request: Request, feed: Feed) -> Feed:
        """The same, with its rows noted where requests share runs by them."""
        if self.max_batch is not None:
            request.rows = feed.rows
        return feed

    def infer(self, feed: Feed) -> Arrays:
        return run_rows(self.model, feed, self.sliced) if self.sliced else self.model.run(feed.arrays, feed.wanted)

    def infer_batch(self, feeds: List[Feed]) -> Sequence[Arrays]:
        return run_together(self.model, feeds, self.sliced)

    def tensors(self) -> TensorStages:
        taking = TensorTaker(self.model, self.reader).stages(rows=self.max_batch is not None)
        return taking._replace(decode=lambda infer, request: self._counted(request, taking.decode(infer, request)))

    def encode(self, output: Arrays, request: Request) -> Answer:
        """The outputs as a JSON object by name, with the labels of those that have some."""
        labels = {name + LABELS: self.model.labels(name) for name in self.model.labelled.intersection(output)}
        return self.answer({**output, **labels}, request)


DIALECT = Bare
