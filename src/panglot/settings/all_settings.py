"""Every setting, declared once: its flag, variable, `panglot.toml` key, default, unit and help derive from here.

`max_batch` is the flag `--max-batch`, the variable `PANGLOT_MAX_BATCH` and the key `max_batch`. What is given wins in
this order: flag, variable, `panglot.toml`, the dialect's own configuration, the default below.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from panglot.settings import machine, worker_settings
from panglot.settings.counts import ANY, WorkerCount
from panglot.settings.pools import PoolSize
from panglot.settings.setting import (
    ACCESS,
    BATCHES,
    HTTP,
    INPUT,
    JOBS,
    LOGS,
    MODEL,
    MODELS,
    RAY,
    RECORDING,
    SERVER,
    VIDEO,
    WORKERS,
    setting,
)

MIB = 1024 * 1024


@dataclass(frozen=True)
class Settings:
    """One resolved set of settings."""

    dialect: str = setting("", "the package's dialect, if Panglot should not detect it", "str")
    host: str = setting("127.0.0.1", "address to listen on, or unix:PATH for a Unix socket", "str", scope=SERVER)
    port: int = setting(8080, "port to listen on; 0 takes a free one", "int", least=0, most=65535, scope=SERVER)
    grpc_port: int = setting(
        -1, "port for gRPC; 0 takes a free one, -1: no gRPC", "int", least=-1, most=65535, scope=SERVER
    )
    grpc_transport: str = setting(
        "own", "what carries gRPC", "str", scope=SERVER, former="Panglot's own HTTP/2 always carries gRPC"
    )
    timeout: float = setting(
        60.0, "a request without an answer by then gets 504; X-Timeout-Ms of a client lowers it", "seconds", least=0.001
    )
    drain: float = setting(
        30.0, "how long accepted requests may take to finish after SIGTERM", "seconds", least=0, scope=SERVER
    )
    inline: bool = setting(
        False, "for debugging: run the script in the server's own process, so that breakpoint() works", "bool",
        scope=SERVER,
    )  # fmt: skip
    fronts: int = setting(1, "processes that speak HTTP and share the workers; auto: by cores and workers", "fronts",
                          most=64, scope=SERVER)  # fmt: skip
    no_playground: bool = setting(False, "no page to try the model; / shows its status", "bool", scope=SERVER)
    dev: bool = setting(False, "for development: show the script's tracebacks on pages and in a header", "bool")

    workers: WorkerCount = setting(
        ANY, "number of worker processes; MIN:MAX: more while requests wait; 0: what the script says, or 1", "workers",
        group=WORKERS,
    )  # fmt: skip
    scale_wait: float = setting(
        0.5, "with MIN:MAX workers: how long requests wait before another worker starts", "seconds",
        group=WORKERS, least=0.01, most=3600,
    )  # fmt: skip
    scale_idle: float = setting(
        60.0, "with MIN:MAX workers: how long a worker is not needed before it ends", "seconds",
        group=WORKERS, least=0.1, most=86400,
    )  # fmt: skip
    sleep_after: float = setting(
        0.0, "after this long without requests a model's workers end, until the next request; 0: never", "seconds",
        group=WORKERS, least=0,
    )  # fmt: skip
    wake_queue: int = setting(
        256, "requests that may wait while a model wakes; more get 503", "int", group=WORKERS, least=1
    )
    wake_timeout: float = setting(
        0.0, "longest wait for a model to wake, then 503; 0: as long as its timeout", "seconds", group=WORKERS,
        least=0,
    )  # fmt: skip
    memory: int = setting(
        0, "with memory_budget: memory of the model; 0: the most that it has used", "size", group=WORKERS, least=0
    )
    gpu_memory: int = setting(
        0, "with gpu_memory_budget: GPU memory of the model; 0: the most that it has used", "size", group=WORKERS,
        least=0,
    )  # fmt: skip
    pools: Mapping[str, PoolSize] = setting(
        {}, "run stages in separate processes: preprocess=4,inference=2,postprocess=2", "pools",
        group=WORKERS, metavar="NAME=N,…",
    )  # fmt: skip
    handoff_slot: int = setting(
        8 * MIB, "shared memory for one result between two pools; larger ones use a socket; 0: all do", "size",
        group=WORKERS, least=0, most=1024 * MIB,
    )  # fmt: skip
    python: str = setting("", "Python that runs the script; default: the one that runs Panglot", "str", group=WORKERS)
    device: str = setting(
        "", "cpu, or GPUs such as cuda:0,cuda:1, which the workers share", "devices", group=WORKERS, metavar="DEVICES"
    )
    mps: bool = setting(
        False, "start NVIDIA's MPS, so that workers on one GPU use it side by side", "bool", group=WORKERS, scope=SERVER
    )
    install: bool = setting(
        False, "install the package's requirements into a separate environment, and run it there", "bool",
        group=WORKERS,
    )  # fmt: skip
    link_paths: bool = setting(
        False, "let the platform's paths that are written in the script lead to the package", "bool", group=WORKERS
    )
    run_timeout: float = setting(
        0.0, "the longest one script call may take; 5 s later its worker is killed; 0: same as timeout", "seconds",
        group=WORKERS, least=0,
    )  # fmt: skip
    kill_grace: float = setting(
        5.0, "how long a call may go on after run_timeout or an interrupt before its worker is killed",
        "seconds", group=WORKERS, least=0,
    )  # fmt: skip
    on_leave: str = setting(
        "finish", "a call that nobody waits for any more: let it finish, interrupt the script, or kill its worker",
        "str", group=WORKERS, choices=("finish", "interrupt", "kill"),
    )  # fmt: skip
    slow_reader: float = setting(
        10.0,
        "how long a slow reader of a stream may keep a worker while others wait; 0: for ever",
        "seconds", group=WORKERS, least=0,
    )  # fmt: skip
    load_timeout: float = setting(300.0, "how long loading the script may take", "seconds", group=WORKERS, least=0.1)
    await_threads: bool = setting(
        True, "the script is ready only when threads that it starts while loading have ended", "bool", group=WORKERS
    )
    rerun: bool = setting(True, "if a batch fails, run each of its requests once more, alone", "bool", group=WORKERS)
    slots: int = setting(
        16, "requests that a worker runs at the same time, for async scripts", "int", group=WORKERS, least=1, most=4096
    )
    worker_memory: int = setting(
        0,
        "a worker that holds more memory is replaced once a new one is ready; 0: no limit",
        "size",
        group=WORKERS,
        least=0,
    )
    worker_max_requests: int = setting(
        0, "replace a worker after this many requests; 0: never", "int", group=WORKERS, least=0
    )
    reload: bool = setting(False, "load the script again whenever a file of the package changes", "bool", group=WORKERS)
    warm_up: str = setting(
        "warn", "if the example fails at load: warn, or fail to load; off: do not run it", "str",
        group=WORKERS, choices=("warn", "fail", "off"),
    )  # fmt: skip
    worker_net: str = setting(
        "open", "what scripts may connect to: guard: public addresses only, while a request runs; none: nothing", "str",
        group=WORKERS, choices=("guard", "open", "none"),
    )  # fmt: skip
    url_allow: tuple[str, ...] = setting(
        (), "further hosts that addresses in requests may lead to", "hosts", group=WORKERS, metavar="HOST[:PORT]"
    )
    restart_delay: float = setting(
        0.5, "first pause before a worker that died while idle starts again; doubles each time", "seconds",
        group=WORKERS, least=0,
    )  # fmt: skip
    restart_delay_max: float = setting(30.0, "the longest such pause", "seconds", group=WORKERS, least=0)
    sick_after: int = setting(
        20, "replace a worker after this many calls in a row fail with the same exception; 0: never", "int",
        group=WORKERS, least=0,
    )  # fmt: skip
    poison_deaths: int = setting(
        3, "refuse a request with 422 after it has killed this many workers, alone; 0: never", "int",
        group=WORKERS, least=0,
    )  # fmt: skip
    poison_time: float = setting(600.0, "for how long such a request is refused", "seconds", group=WORKERS, least=0.05)

    max_batch: int = setting(
        32, "most requests in one call, for scripts with a batch method", "int", group=BATCHES, least=1, most=65535
    )
    max_wait_ms: float = setting(
        0.0,
        "how long a batch may wait for more requests, in milliseconds, counted from its oldest one",
        "float",
        group=BATCHES,
        least=0,
    )
    max_batch_bytes: int = setting(64 * MIB, "most bytes in one script call", "size", group=BATCHES, least=1)
    ahead: bool = setting(
        True,
        "send a busy worker its next full batch, or its next short call, early if enough requests wait",
        "bool",
        group=BATCHES,
    )
    queue: int = setting(1024, "requests that may wait; beyond it 503", "int", group=BATCHES, least=1)
    queue_timeout: float = setting(
        0.0, "how long a request may wait for a worker; beyond it 503; 0: until its deadline", "seconds", group=BATCHES,
        least=0,
    )  # fmt: skip
    queue_bytes: int = setting(256 * MIB, "bytes that may wait; beyond it 503", "size", group=BATCHES, least=1)

    max_body: int = setting(64 * MIB, "largest request body; beyond it 413", "size", group=HTTP, least=0, scope=MODEL)
    request_memory: int = setting(
        machine.request_memory,
        "memory for bodies, and for answers not yet read; beyond it 503 [a quarter of memory, at most 4 GiB]",
        "size",
        group=HTTP,
        least=1,
        formerly="max_held",
    )
    small_body: int = setting(
        65536, "a body up to this size counts as small: it may use all of request_memory", "size", group=HTTP, least=0
    )
    small_share: float = setting(
        0.125,
        "share of request_memory that large bodies cannot take, from 0 to 1",
        "float",
        group=HTTP,
        least=0,
        most=1,
    )
    share_from: int = setting(
        16 * 1024, "bodies and answers from this size on are in memory shared with workers; 0: none", "size",
        group=HTTP, least=0,
    )  # fmt: skip
    max_connections: int = setting(
        machine.connections,
        "connections at once; then the longest idle is closed, or 503 [1024, or 60 % of the open files]", "int",
        group=HTTP, least=1,
    )  # fmt: skip
    max_requests_per_connection: int = setting(
        1000, "requests on one connection before it is closed", "int", group=HTTP, least=1
    )
    max_request_line: int = setting(8192, "longest request line; beyond it 414", "size", group=HTTP, least=64)
    max_header: int = setting(8192, "longest single header; beyond it 431", "size", group=HTTP, least=64)
    max_headers: int = setting(32768, "all headers together; beyond it 431", "size", group=HTTP, least=64)
    max_header_count: int = setting(100, "number of headers; beyond it 431", "int", group=HTTP, least=1)
    max_chunks: int = setting(65536, "chunks of a chunked body; beyond it 400", "int", group=HTTP, least=1)
    header_timeout: float = setting(
        10.0,
        "longest time to receive the headers of a request; then 408",
        "seconds",
        group=HTTP,
        least=0.05,
    )
    keep_alive: float = setting(65.0, "how long an idle connection is kept", "seconds", group=HTTP, least=0.05)
    body_gap: float = setting(15.0, "longest pause inside a body; then 408", "seconds", group=HTTP, least=0.05)
    body_timeout: float = setting(120.0, "longest time for a whole body; then 408", "seconds", group=HTTP, least=0.05)
    body_rate: int = setting(
        1024, "slowest upload in bytes per second after body_rate_after; then 408", "size", group=HTTP, least=0
    )
    body_rate_after: float = setting(10.0, "when body_rate begins", "seconds", group=HTTP, least=0.05)
    write_stall: float = setting(
        30.0, "how long a client may read nothing of its answer", "seconds", group=HTTP, least=0.05
    )
    peer_timeout: float = setting(
        45.0, "close a connection whose machine has not answered for this long; at least write_stall", "seconds",
        group=HTTP, least=1, most=86400,
    )  # fmt: skip

    max_json: int = setting(32 * MIB, "largest JSON body; beyond it 413", "size", group=INPUT, least=1)
    max_json_depth: int = setting(64, "deepest JSON nesting; beyond it 400", "int", group=INPUT, least=1, most=500)
    max_parts: int = setting(64, "parts of a multipart body", "int", group=INPUT, least=1)
    max_files: int = setting(32, "files in a multipart body", "int", group=INPUT, least=0)
    max_text_field: int = setting(MIB, "largest text field of a multipart body", "size", group=INPUT, least=1)
    max_output: int = setting(64 * MIB, "largest answer of a script", "size", group=INPUT, least=1)
    max_output_depth: int = setting(64, "deepest nesting of an answer", "int", group=INPUT, least=1, most=500)
    max_pixels: int = setting(40_000_000, "pixels of one image", "int", group=INPUT, least=1)
    nan: str = setting("null", "NaN and Infinity in answers: null, an error, or as the platform wrote them", "str",
                       group=INPUT, choices=("null", "error", "platform"))  # fmt: skip
    strict_results: bool = setting(
        False, "encode results exactly as the platform did, which may fail on numpy values", "bool",
        group=INPUT,
    )  # fmt: skip

    fetch_bytes: int = setting(20 * MIB, "largest file at an address in a request", "size", group=INPUT, least=1)
    fetch_connect: float = setting(3.0, "longest time to connect there", "seconds", group=INPUT, least=0.01)
    fetch_timeout: float = setting(10.0, "longest time to fetch it, redirects included", "seconds", group=INPUT,
                                   least=0.01)  # fmt: skip
    fetch_redirects: int = setting(3, "redirects to follow; each address is checked", "int", group=INPUT, least=0)
    fetch_urls: int = setting(16, "addresses in one request", "int", group=INPUT, least=0)
    fetch_at_once: int = setting(16, "addresses fetched at once, for all requests", "int", group=INPUT, least=1)

    video_seconds: float = setting(600.0, "longest video file", "seconds", group=VIDEO, least=0.001)
    video_frames: int = setting(18_000, "most frames of a video file", "int", group=VIDEO, least=1)
    video_pixels: int = setting(4096 * 2304, "pixels of one frame", "int", group=VIDEO, least=1, most=1 << 27)
    video_bytes: int = setting(256 * MIB, "largest video in a request, or at an address", "size", group=VIDEO, least=1)
    spool_bytes: int = setting(2048 * MIB, "disk for videos in requests; beyond it 507", "size", group=VIDEO, least=1,
                               scope=SERVER)  # fmt: skip
    video_open: float = setting(10.0, "longest time to open a video", "seconds", group=VIDEO, least=0.05)
    video_stall: float = setting(10.0, "longest time without a frame", "seconds", group=VIDEO, least=0.05)
    stream_max_s: float = setting(0.0, "longest time a live stream runs; 0: until it is stopped", "seconds",
                                  group=VIDEO, least=0)  # fmt: skip
    stream_retries: int = setting(5, "tries in a row to get a live stream back", "int", group=VIDEO, least=0, most=1000)
    stream_results: int = setting(1000, "results of a stream that are kept", "int", group=VIDEO, least=1)
    max_streams: int = setting(64, "streams at once; beyond it 503", "int", group=VIDEO, least=1, most=4096)

    ray: str = setting(
        "", "workers on a Ray cluster: auto, HOST:6379 or ray://HOST:10001; with panglot[ray]", "str", group=RAY,
        metavar="ADDRESS",
    )  # fmt: skip
    worker_resources: Mapping[str, float] = setting(
        {}, "resources each worker needs on its node: cpu=1,gpu=1, or your own by name [cpu=1]", "amounts",
        group=RAY, metavar="NAME=N,…", scope=MODEL, formerly="place",
    )  # fmt: skip
    ray_python: str = setting(
        "", "Python on this machine with the cluster's Ray; default: the one that runs Panglot", "str", group=RAY,
        metavar="PATH",
    )  # fmt: skip
    ray_files: str = setting(
        "send", "send: copy the package to the nodes; shared: it has the same path there", "str", group=RAY,
        choices=("send", "shared"), scope=MODEL,
    )  # fmt: skip
    ray_tls: bool = setting(False, "encrypt the connections to the nodes", "bool", group=RAY)
    agent_ports: tuple[int, ...] = setting(
        (), "ports that the nodes listen on for this server, such as 20000-20099; default: any", "ports", group=RAY,
        metavar="A-B", formerly="keeper_ports",
    )  # fmt: skip

    models: str = setting(
        "", "folder of models to serve, with packages in NAME or NAME/VERSION", "folder", group=MODELS, metavar="DIR"
    )
    default: str = setting("", "the model whose routes are also at the root [the first named]", "str", group=MODELS,
                           metavar="NAME")  # fmt: skip
    partial: bool = setting(False, "start even if some models cannot be loaded", "bool", group=MODELS)
    load_at_once: int = setting(2, "models that load at the same time", "int", group=MODELS, least=1, most=64)
    memory_budget: int = setting(
        0, "memory for the workers of all models; beyond it idle models go to sleep; 0: no limit", "size",
        group=MODELS, least=0,
    )  # fmt: skip
    gpu_memory_budget: int = setting(
        0, "the same for memory of GPUs, as nvidia-smi counts it; 0: no limit", "size", group=MODELS, least=0
    )
    state_folder: str = setting(
        "", "folder for what the server knows about models that sleep [~/.local/state/panglot]", "str", group=MODELS,
        metavar="DIR",
    )  # fmt: skip
    admin: bool = setting(
        False, "models of the folder can be loaded and unloaded by requests with PANGLOT_ADMIN_TOKEN", "bool",
        group=MODELS,
    )  # fmt: skip
    admin_token_file: str = setting("", "file that holds that token", "str", group=MODELS, metavar="FILE")

    jobs: str = setting("", "folder that jobs are stored in; without it they are in memory, and a restart loses them",
                        "str", group=JOBS, metavar="DIR")  # fmt: skip
    jobs_count: int = setting(0, "jobs that may be stored, ended ones too; beyond it 429 [a million; in memory 1000]",
                              "int", group=JOBS, least=0)  # fmt: skip
    jobs_bytes: int = setting(0, "bytes of all jobs' bodies and answers; beyond it 429 [10 GiB; in memory 64 MiB]",
                              "size", group=JOBS, least=0)  # fmt: skip
    jobs_queued: int = setting(0, "jobs of one model that may wait; beyond it 429; 0: as many as may be stored", "int",
                               group=JOBS, least=0)  # fmt: skip
    jobs_lifetime: float = setting(86400.0, "how long a job may wait before it expires", "seconds", group=JOBS,
                                   least=1, scope=MODEL)  # fmt: skip
    jobs_keep: float = setting(3600.0, "how long a job and its answer are stored after its end", "seconds", group=JOBS,
                               least=1, scope=MODEL)  # fmt: skip
    jobs_attempts: int = setting(2, "how often a job is started in all, if its worker dies or it takes too long", "int",
                                 group=JOBS, least=1, most=100, scope=MODEL)  # fmt: skip
    jobs_share: float = setting(0.05, "least share of the workers that jobs get beside requests, from 0 to 1",
                                "float", group=JOBS, least=0, most=1, scope=MODEL)  # fmt: skip
    jobs_workers: int = setting(0, "workers that jobs of a model may use at once; 0: all", "int", group=JOBS, least=0,
                                scope=MODEL)  # fmt: skip
    webhook_allow: tuple[str, ...] = setting((), "hosts that jobs may call back; none by default", "hosts", group=JOBS,
                                             metavar="HOST[:PORT]")  # fmt: skip
    webhook_secret_file: str = setting(
        "", "file with the secret that signs these calls; PANGLOT_WEBHOOK_SECRET holds it directly", "str", group=JOBS,
        metavar="FILE",
    )  # fmt: skip

    no_auth: bool = setting(False, "serve without a token, also to other machines", "bool", group=ACCESS)
    token_file: str = setting(
        "", "file that holds the access token; PANGLOT_TOKEN holds it directly", "str", group=ACCESS
    )
    keys: str = setting("", "file of keys: rights and limits of each client", "str", group=ACCESS, metavar="FILE")
    metrics_token_file: str = setting(
        "", "file with a token for /metrics only; PANGLOT_METRICS_TOKEN holds it directly", "str", group=ACCESS
    )
    tls_cert: str = setting("", "certificate chain to serve HTTPS with", "str", group=ACCESS, metavar="FILE")
    tls_key: str = setting("", "private key of that certificate", "str", group=ACCESS, metavar="FILE")
    cors_origin: tuple[str, ...] = setting(
        (), "web pages of these origins may call the script, * for all; none by default", "origins", group=ACCESS,
        metavar="ORIGINS",
    )  # fmt: skip
    allow_host: tuple[str, ...] = setting(
        (), "further Host names to accept while no token is needed", "words", group=ACCESS, metavar="HOSTS"
    )

    log_format: str = setting(
        "human", "human lines or one JSON object per line", "str", group=LOGS, choices=("human", "json")
    )
    log_level: str = setting(
        "info", "log lines of this level and above", "str", group=LOGS, choices=("debug", "info", "warning", "error")
    )
    access_log: float = setting(
        machine.on_terminal, "share of the requests to log, from 0 (none) to 1 (all) [1 on a terminal, else 0]",
        "float", group=LOGS, least=0, most=1,
    )  # fmt: skip
    otel_endpoint: str = setting(
        "", "OpenTelemetry collector (OTLP over HTTP) that gets a span per request", "str", group=LOGS, metavar="URL"
    )

    record: str = setting("", "file to record requests and answers to; credentials are never written", "str",
                          group=RECORDING, metavar="FILE")  # fmt: skip
    record_redact: tuple[str, ...] = setting(
        (), "headers, and places in JSON such as /user/name, that are not written", "words", group=RECORDING
    )
    record_every: int = setting(1, "record one of this many requests", "int", group=RECORDING, least=1)
    record_failures: bool = setting(False, "record only answers of status 400 and above", "bool", group=RECORDING)
    record_paths: tuple[str, ...] = setting((), "record only these paths, such as /v1/*", "words", group=RECORDING)
    record_max_body: int = setting(16 * MIB, "longer bodies are left out", "size", group=RECORDING, least=0)
    record_memory: int = setting(
        256 * MIB, "memory for what is not on disk yet; beyond it requests are not recorded", "size", group=RECORDING,
        least=65536,
    )  # fmt: skip
    record_rotate_size: int = setting(0, "begin a new file at this size; 0: never", "size", group=RECORDING, least=0)
    record_rotate_age: float = setting(
        0.0, "begin a new file after this time; 0: never", "seconds", group=RECORDING, least=0
    )
    record_retain: int = setting(0, "older files to retain; 0: all", "int", group=RECORDING, least=0)
    log_line: int = setting(
        16384, "longest line of script output that is logged", "size", group=LOGS, least=80, scope=MODEL
    )
    log_rate: int = setting(
        MIB, "what a worker may print per second, and the log may say about it; the rest is dropped and counted",
        "size", group=LOGS, least=1024, scope=MODEL,
    )  # fmt: skip
    log_queue: int = setting(
        4 * MIB, "log lines that wait for a slow reader; the rest is counted and dropped", "size", group=LOGS,
        least=4096,
    )  # fmt: skip

    @property
    def effective_run_timeout(self) -> float:
        return self.run_timeout or self.timeout

    def for_worker(self) -> dict[str, Any]:
        """The settings that a worker gets."""
        return worker_settings.of(self)


def table_of(settings: type[Settings]) -> dict[str, dataclasses.Field[Any]]:
    """The settings a class declares, by name; a dialect's class has the common ones too."""
    return {entry.name: entry for entry in dataclasses.fields(settings)}


def former_names(settings: type[Settings]) -> dict[str, str]:
    """The settings that were renamed: their names of today, by the old ones that still work."""
    return {
        about.metadata["formerly"]: name for name, about in table_of(settings).items() if about.metadata["formerly"]
    }
