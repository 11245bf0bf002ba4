"""Every field of Triton's `config.pbtxt`, and its effect here. The list in the documents is made from this table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from panglot.errors import StartError
from panglot.packages.config_pbtxt.pbtxt import Message
from panglot.settings import suggestion

HONOURED, PASSED, IGNORED, REFUSED = "honoured", "given to the script", "no effect", "refused"
ONE, LIST, MAP = "", "list", "map"


class ConfigField(NamedTuple):
    """A field by its path from the top of the file."""

    path: str
    state: str
    about: str
    """Its effect here, or the behaviour without it."""
    kind: str = ONE
    files: bool = False
    """Whether it is honoured for model files without a script too."""
    values: tuple[str, ...] = ()
    """The only values that are honoured; none: all are."""

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    def is_honoured(self, has_script: bool) -> bool:
        return self.state in (HONOURED, PASSED) if has_script else self.state == HONOURED and self.files


def _tensors_and_batches() -> tuple[ConfigField, ...]:
    priority = "all requests have the same priority"
    batches = "requests are given to the script as they are, not joined"
    return (
        ConfigField("name", HONOURED, "the model's name", files=True),
        ConfigField("platform", HONOURED, "which kind of model it is, where `backend` does not say it", files=True),
        ConfigField("backend", HONOURED, "`python` for scripts; model files are recognised by themselves", files=True),
        ConfigField("runtime", IGNORED, "no other backend is loaded"),
        ConfigField("version_policy", HONOURED, "the versions that are served", files=True),
        ConfigField("version_policy.latest", HONOURED, "the newest versions", files=True),
        ConfigField("version_policy.latest.num_versions", HONOURED, "how many of them", files=True),
        ConfigField("version_policy.all", HONOURED, "every version", files=True),
        ConfigField("version_policy.specific", HONOURED, "the versions that are named", files=True),
        ConfigField("version_policy.specific.versions", HONOURED, "their numbers", LIST, files=True),
        ConfigField("max_batch_size", HONOURED, "the most rows of a call", files=True),
        *_tensor("input"),
        ConfigField("input.format", PASSED, "the order of an image's dimensions"),
        ConfigField("input.allow_ragged_batch", HONOURED, "requests of one call may always differ in their shapes"),
        ConfigField("input.optional", HONOURED, "a request may leave it out"),
        *_tensor("output"),
        ConfigField("output.label_filename", IGNORED, "the extension for classification is not offered"),
        ConfigField("batch_input", IGNORED, batches, LIST),
        ConfigField("batch_input.kind", IGNORED, batches),
        ConfigField("batch_input.target_name", IGNORED, batches, LIST),
        ConfigField("batch_input.data_type", IGNORED, batches),
        ConfigField("batch_input.source_input", IGNORED, batches, LIST),
        ConfigField("batch_output", IGNORED, batches, LIST),
        ConfigField("batch_output.target_name", IGNORED, batches, LIST),
        ConfigField("batch_output.kind", IGNORED, batches),
        ConfigField("batch_output.source_input", IGNORED, batches, LIST),
        *(ConfigField(path, IGNORED, DEVICE, kind) for path, kind in OPTIMIZATION),
        ConfigField("dynamic_batching", HONOURED, "requests share calls", files=True),
        ConfigField(
            "dynamic_batching.preferred_batch_size", IGNORED, "a call has what waits, up to its most rows", LIST
        ),
        ConfigField(
            "dynamic_batching.max_queue_delay_microseconds",
            HONOURED,
            "how long a call waits for more requests",
            files=True,
        ),
        ConfigField("dynamic_batching.preserve_ordering", IGNORED, "each answer goes out as soon as it is ready"),
        ConfigField("dynamic_batching.priority_levels", IGNORED, priority),
        ConfigField("dynamic_batching.default_priority_level", IGNORED, priority),
        *_queue_policy("dynamic_batching.default_queue_policy"),
        ConfigField("dynamic_batching.priority_queue_policy", IGNORED, priority, MAP),
    )


def _workers_and_the_rest() -> tuple[ConfigField, ...]:
    cached = "answers are not cached"
    return (
        ConfigField("sequence_batching", HONOURED, "requests of a sequence run one after the other, in one worker"),
        *(ConfigField(f"sequence_batching.{path}", state, about, kind) for path, state, about, kind in SEQUENCES),
        ConfigField("ensemble_scheduling", HONOURED, "the model is a graph of calls of other models"),
        *(ConfigField(f"ensemble_scheduling.{path}", HONOURED, about, kind) for path, about, kind in STEPS),
        ConfigField("ensemble_scheduling.max_inflight_requests", IGNORED, "each model has a queue of its own"),
        ConfigField("instance_group", HONOURED, "the workers", LIST, files=True),
        ConfigField("instance_group.name", PASSED, "a name for people"),
        ConfigField("instance_group.kind", HONOURED, "`KIND_CPU`: no GPU is used", files=True),
        ConfigField("instance_group.count", HONOURED, "how many workers, for each GPU that is named", files=True),
        ConfigField("instance_group.gpus", HONOURED, "the GPUs of the workers", LIST, files=True),
        *(ConfigField(f"instance_group.{path}", IGNORED, about, kind) for path, about, kind in INSTANCES),
        ConfigField("default_model_filename", HONOURED, "the script of a version, instead of `model.py`"),
        ConfigField("cc_model_filenames", IGNORED, DEVICE, MAP),
        ConfigField("metric_tags", IGNORED, "figures have the labels `model` and `version`", MAP),
        ConfigField("parameters", PASSED, "`EXECUTION_ENV_PATH` is honoured: another Python environment", MAP),
        ConfigField("model_warmup", HONOURED, "requests that run before the model is ready", LIST),
        *(ConfigField(f"model_warmup.{path}", HONOURED, about, kind) for path, about, kind in WARM_UP),
        ConfigField("model_operations", IGNORED, "no library of operations is loaded"),
        ConfigField("model_operations.op_library_filename", IGNORED, "no library of operations is loaded", LIST),
        ConfigField("model_transaction_policy", HONOURED, "how a model answers"),
        ConfigField("model_transaction_policy.decoupled", HONOURED, "the model sends any number of responses"),
        ConfigField("model_repository_agents", IGNORED, "no agent looks at the repository"),
        ConfigField("model_repository_agents.agents", IGNORED, "no agent looks at the repository", LIST),
        ConfigField("model_repository_agents.agents.name", IGNORED, "no agent looks at the repository"),
        ConfigField("model_repository_agents.agents.parameters", IGNORED, "no agent looks at the repository", MAP),
        ConfigField("response_cache", IGNORED, cached),
        ConfigField("response_cache.enable", IGNORED, cached),
        *(ConfigField(f"model_metrics{path}", IGNORED, "`/metrics` has fixed buckets", kind) for path, kind in METRICS),
    )


def _tensor(path: str) -> tuple[ConfigField, ...]:
    return (
        ConfigField(path, HONOURED, f"the {path}s of the model", LIST, files=True),
        ConfigField(f"{path}.name", HONOURED, "its name", files=True),
        ConfigField(f"{path}.data_type", HONOURED, "its type", files=True),
        ConfigField(f"{path}.dims", HONOURED, "its shape, without the rows", LIST, files=True),
        ConfigField(f"{path}.reshape", HONOURED, "the model's shape differs from that of clients"),
        ConfigField(f"{path}.reshape.shape", HONOURED, "the shape that the model has", LIST),
        ConfigField(f"{path}.is_shape_tensor", IGNORED, "for TensorRT alone"),
        ConfigField(f"{path}.is_non_linear_format_io", IGNORED, "for TensorRT alone"),
    )


def _queue_policy(path: str) -> tuple[ConfigField, ...]:
    return (
        ConfigField(path, HONOURED, "requests that wait too long"),
        ConfigField(f"{path}.timeout_action", HONOURED, "`REJECT`: 503; `DELAY` has no effect", values=("REJECT",)),
        ConfigField(f"{path}.default_timeout_microseconds", HONOURED, "how long a request may wait for a worker"),
        ConfigField(
            f"{path}.allow_timeout_override", IGNORED, "requests do not change it; `X-Timeout-Ms` is a deadline"
        ),
        ConfigField(f"{path}.max_queue_size", HONOURED, "how many requests may wait; 0: as many as `queue` says"),
    )


DEVICE = "what runs on a GPU, and how, is the script's own matter"
OPTIMIZATION = (
    ("optimization", ONE), ("optimization.graph", ONE), ("optimization.graph.level", ONE),
    ("optimization.priority", ONE), ("optimization.cuda", ONE), ("optimization.cuda.graphs", ONE),
    ("optimization.cuda.busy_wait_events", ONE), ("optimization.cuda.graph_spec", LIST),
    ("optimization.cuda.graph_spec.batch_size", ONE), ("optimization.cuda.graph_spec.input", MAP),
    ("optimization.cuda.graph_spec.graph_lower_bound", ONE),
    ("optimization.cuda.graph_spec.graph_lower_bound.batch_size", ONE),
    ("optimization.cuda.graph_spec.graph_lower_bound.input", MAP),
    ("optimization.cuda.output_copy_stream", ONE), ("optimization.execution_accelerators", ONE),
    ("optimization.execution_accelerators.gpu_execution_accelerator", LIST),
    ("optimization.execution_accelerators.gpu_execution_accelerator.name", ONE),
    ("optimization.execution_accelerators.gpu_execution_accelerator.parameters", MAP),
    ("optimization.execution_accelerators.cpu_execution_accelerator", LIST),
    ("optimization.execution_accelerators.cpu_execution_accelerator.name", ONE),
    ("optimization.execution_accelerators.cpu_execution_accelerator.parameters", MAP),
    ("optimization.input_pinned_memory", ONE), ("optimization.input_pinned_memory.enable", ONE),
    ("optimization.output_pinned_memory", ONE), ("optimization.output_pinned_memory.enable", ONE),
    ("optimization.gather_kernel_buffer_threshold", ONE), ("optimization.eager_batching", ONE),
)  # fmt: skip
INSTANCES = (
    ("rate_limiter", "workers wait for no resources", ONE),
    ("rate_limiter.resources", "workers wait for no resources", LIST),
    ("rate_limiter.resources.name", "workers wait for no resources", ONE),
    ("rate_limiter.resources.global", "workers wait for no resources", ONE),
    ("rate_limiter.resources.count", "workers wait for no resources", ONE),
    ("rate_limiter.priority", "workers wait for no resources", ONE),
    ("secondary_devices", "there is one device for each worker", LIST),
    ("secondary_devices.kind", "there is one device for each worker", ONE),
    ("secondary_devices.device_id", "there is one device for each worker", ONE),
    ("profile", "for TensorRT alone", LIST),
    ("passive", "every worker takes requests", ONE),
    ("host_policy", "workers run where the system puts them", ONE),
)
WARM_UP = (
    ("name", "a name for the log", ONE),
    ("batch_size", "how many rows", ONE),
    ("count", "how often it runs", ONE),
    ("inputs", "the inputs by name: `key` and `value`", MAP),
    ("inputs.key", "the name of an input", ONE),
    ("inputs.value", "its content", ONE),
    ("inputs.value.data_type", "its type", ONE),
    ("inputs.value.dims", "its shape, without the rows", LIST),
    ("inputs.value.zero_data", "all zero", ONE),
    ("inputs.value.random_data", "random numbers", ONE),
    ("inputs.value.input_data_file", "a file of `warmup/`, with the tensor's bytes", ONE),
)
NO_DELAY = "a call begins as soon as it can"
MEMORY = "what the state lies in is the server's matter"
SEQUENCES = (
    ("direct", HONOURED, "a sequence has a place of its own in each call, up to `max_batch_size` of them", ONE),
    ("direct.max_queue_delay_microseconds", IGNORED, NO_DELAY, ONE),
    ("direct.minimum_slot_utilization", IGNORED, NO_DELAY, ONE),
    ("oldest", HONOURED, "a call has the oldest requests, at most one of each sequence", ONE),
    ("oldest.max_candidate_sequences", HONOURED, "how many sequences run at the same time", ONE),
    ("oldest.preferred_batch_size", IGNORED, NO_DELAY, LIST),
    ("oldest.max_queue_delay_microseconds", IGNORED, NO_DELAY, ONE),
    ("oldest.preserve_ordering", IGNORED, "each answer goes out as soon as it is ready", ONE),
    ("max_sequence_idle_microseconds", HONOURED, "a sequence without requests for so long has ended", ONE),
    ("iterative_sequence", IGNORED, "a model does not have its requests again", ONE),
    ("control_input", HONOURED, "inputs that tell where in its sequence a request stands", LIST),
    ("control_input.name", HONOURED, "the input's name", ONE),
    ("control_input.control", HONOURED, "what it tells", LIST),
    ("control_input.control.kind", HONOURED, "START, READY, END or CORRID", ONE),
    ("control_input.control.int32_false_true", HONOURED, "its values", LIST),
    ("control_input.control.fp32_false_true", HONOURED, "its values", LIST),
    ("control_input.control.bool_false_true", HONOURED, "its values", LIST),
    ("control_input.control.data_type", HONOURED, "the type of the correlation id", ONE),
    ("state", HONOURED, "an output of one request that is an input of the next", LIST),
    ("state.input_name", HONOURED, "the input", ONE),
    ("state.output_name", HONOURED, "the output, which clients get where `output` lists it", ONE),
    ("state.data_type", HONOURED, "its type", ONE),
    ("state.dims", HONOURED, "its shape, without the rows", LIST),
    ("state.initial_state", HONOURED, "what it begins with; zeros without it", LIST),
    ("state.initial_state.name", HONOURED, "a name for people", ONE),
    ("state.initial_state.data_type", HONOURED, "its type is that of the state", ONE),
    ("state.initial_state.dims", HONOURED, "its shape, without the rows", LIST),
    ("state.initial_state.zero_data", HONOURED, "all zero", ONE),
    ("state.initial_state.data_file", HONOURED, "a file of `initial_state/`, with the tensor's bytes", ONE),
    ("state.use_same_buffer_for_input_output", IGNORED, MEMORY, ONE),
    ("state.use_growable_memory", IGNORED, MEMORY, ONE),
)
STEPS = (
    ("step", "a call of a model, made as soon as its inputs are there", LIST),
    ("step.model_name", "the model", ONE),
    ("step.model_version", "its version; -1: the newest", ONE),
    ("step.model_namespace", "there is one namespace", ONE),
    ("step.input_map", "by the model's inputs: tensors of the ensemble", MAP),
    ("step.output_map", "by the model's outputs: tensors of the ensemble", MAP),
)
METRICS = (
    ("", ONE), (".metric_control", LIST), (".metric_control.metric_identifier", ONE),
    (".metric_control.metric_identifier.family", ONE), (".metric_control.histogram_options", ONE),
    (".metric_control.histogram_options.buckets", LIST),
)  # fmt: skip

FIELDS = {row.path: row for row in (*_tensors_and_batches(), *_workers_and_the_rest())}
CONTAINERS = frozenset(row.path.rpartition(".")[0] for row in FIELDS.values())
"""The fields with fields below them in the table. Below other maps, users choose the names."""


def check(config: Message, path: Path) -> None:
    """Raise StartError for a field that does not exist, or that this server refuses."""
    _walk(config, path, "", None)


def warnings(config: Message, path: Path, has_script: bool) -> tuple[str, ...]:
    """A line for each field that has no effect on a model with a script, or on a model file."""
    lines: list[tuple[int, str]] = []

    def look(field: ConfigField, values: list[Any], line: int) -> bool:
        if field.is_honoured(has_script):
            wrong = [str(value) for value in values if field.values and str(value) not in field.values]
            if wrong:
                lines.append((line, f"{path.name}:{line}: {field.path}: {wrong[0]} has no effect here"))
            return True
        why = f": {field.about}" if field.state == IGNORED else " on a model file"
        lines.append((line, f"{path.name}:{line}: {field.path} has no effect here{why}"))
        return False

    _walk(config, path, "", look)
    return tuple(text for _, text in sorted(lines))


def _walk(message: Message, path: Path, above: str, look: Any) -> None:
    """Go through the fields. Raises StartError for one that is unknown or refused.

    `look` gets each field, and returns whether to go on below it; None: go on everywhere.
    """
    known = {row.name: row for row in FIELDS.values() if row.path.rpartition(".")[0] == above}
    for name, values in message.items():
        line = message.lines.get(name, message.line)
        field = known.get(name)
        if field is None:
            whose = above or "a model's configuration"
            raise StartError(f"'{name}' is no field of {whose}", file=str(path), line=line, fix=suggestion(name, known))
        if field.state == REFUSED:
            raise StartError(f"{name}: {field.about}", file=str(path), line=line)
        if (look is None or look(field, values, line)) and (field.kind != MAP or field.path in CONTAINERS):
            for value in values:
                if isinstance(value, Message):
                    _walk(value, path, field.path, look)
