"""Folders that paddle.jit.save wrote, by Paddle's predictor."""

from __future__ import annotations

from typing import Any, Sequence

from panglot_worker.runtimes import probing
from panglot_worker.runtimes.base import (
    DATATYPES,
    FREE,
    NUMPY,
    Arrays,
    ModelFile,
    ModelRuntime,
    ModelTensor,
    datatype_of,
)
from panglot_worker.runtimes.paddle import model_files, program_file


class PaddlePredictor(ModelRuntime):
    """One predictor. Two threads in one give silently wrong answers; here there is only one."""

    platform = "paddle_inference"

    def __init__(self, file: ModelFile) -> None:
        super().__init__(file)
        paddle = file.library("paddle")
        self.inference = file.library("paddle.inference")
        if file.wants_cuda and not paddle.device.is_compiled_with_cuda():
            raise file.no_cuda("paddle")
        program = self._program()
        self.predictor = self._loaded(program)
        self.inputs = [
            ModelTensor(spec.name, self._datatype(spec), [int(size) for size in spec.shape])
            for spec in model_files.inputs(program.path, program.new)
        ]
        self.outputs = [ModelTensor(name, "FP32", None) for name in self.predictor.get_output_names()]
        self._look_at_outputs()

    def _program(self) -> model_files.Program:
        try:
            return model_files.resolve(self.file.path, self.file.parameters)
        except model_files.BadModel as error:
            raise self.file.error(error.problem, error.fix) from None

    def _loaded(self, program: model_files.Program) -> Any:
        config = self.inference.Config(program.path, program.parameters)
        if self.file.wants_cuda:
            config.enable_use_gpu(256, 0)
        else:
            config.disable_gpu()
            config.set_cpu_math_library_num_threads(self.file.threads)
        config.disable_glog_info()
        try:
            return self.inference.create_predictor(config)
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            said = lines[-1][:300] if lines else type(error).__name__
            raise self.file.error("paddle cannot load it: %s" % said, "export it again by paddle.jit.save") from None

    def _datatype(self, spec: program_file.Input) -> str:
        if spec.dtype not in DATATYPES:
            raise self.file.error("its input %s has the type %s, which cannot be sent" % (spec.name, spec.dtype))
        return DATATYPES[spec.dtype]

    def _look_at_outputs(self) -> None:
        """Run made-up inputs once: only a result shows the outputs."""
        trial = probing.first_that_runs(self)
        if trial is None:
            return
        given = self.run(trial.arrays(self.inputs, 1), [spec.name for spec in self.outputs])
        free = all(spec.shape and spec.shape[0] == FREE for spec in self.inputs)
        self.outputs = [
            ModelTensor(name, datatype_of(array.dtype), [FREE, *array.shape[1:]] if free else list(array.shape))
            for name, array in given.items()
        ]

    def run(self, arrays: Arrays, wanted: Sequence[str]) -> Arrays:
        """The wanted outputs. Raises what Paddle raises."""
        import numpy

        for spec in self.inputs:
            handle = self.predictor.get_input_handle(spec.name)
            array = numpy.ascontiguousarray(arrays[spec.name], NUMPY[spec.datatype])
            handle.reshape(list(array.shape))
            handle.copy_from_cpu(array)
        self.predictor.run()
        return {name: self.predictor.get_output_handle(name).copy_to_cpu() for name in wanted}
