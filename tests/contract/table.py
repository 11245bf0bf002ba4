"""The table of expectations: one row per platform. A new dialect adds its row, and a package beside the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from contract.platform import NUMBER, TEXT, Asked, Form, Order, Platform, Some, as_json, neutral
from support import mlflow

JSON, HTML, PLAIN = "application/json", "text/html; charset=utf-8", "text/plain; charset=utf-8"
WARNED = {"x-panglot-warning": Some("nan: .*")}
RETRY = {"retry-after": Some("[0-9]+")}
ACME = Path(__file__).parents[1] / "distributions" / "acme"


def result(number: Any, twice: Any) -> dict[str, Any]:
    return {"id": number, "twice": twice}


# plain


PLAIN_DIALECT = Platform(
    name="plain",
    package="plain",
    ask=lambda order: Asked("/predict", as_json(order)),
    answer=lambda number, twice: Form(200, JSON, result(number, twice)),
    batches=True,
    broken=Asked("/predict", b"{"),
    undecodable=neutral(400, "bad_request"),
    unauthorized=neutral(401, "unauthorized"),
    too_large=neutral(413, "body_too_large"),
    timeout=neutral(504, "timeout"),
    failed=neutral(500, "script_error"),
    died=neutral(500, "worker_died"),
    poisonous=neutral(422, "poisonous"),
    nan=Form(200, JSON, result(1, None), WARNED),
    unknown=neutral(404, "not_found"),
    wrong_method=neutral(405, "method_not_allowed"),
    loading=neutral(503, "loading"),
    queue_full=neutral(503, "queue_full"),
)


# tiinfer


def mosec(status: int, text: str) -> Form:
    return Form(status, PLAIN, text)


TIINFER = Platform(
    name="tiinfer",
    package="tiinfer",
    env={"TI_INFERENCE_MAX_BATCH_SIZE": "8"},
    ask=lambda order: Asked("/inference", as_json(order)),
    other_paths=("/v1/models/m:predict", "/tione/inference", "/tione/v1/models/m:predict"),
    answer=lambda number, twice: Form(200, JSON, result(number, twice)),
    batches=True,
    credentials={"authorization": "eyJhbGciOiJIUzI1NiJ9.e30.c2ln"},
    health={
        "/": mosec(200, "MOSEC service"),
        "/v1/models": Form(200, JSON, ["m"]),
        "/v1/models/m": Form(200, JSON, {"name": "m", "ready": True}),
    },
    not_ready={"/v1/models/m": Form(503, JSON, {"name": "m", "ready": False})},
    leaving={"/": mosec(503, "gracefully shutting down")},
    broken=Asked("/inference", b"{"),
    undecodable=mosec(400, Some("decoding error: .+")),
    unauthorized=mosec(401, TEXT),
    too_large=mosec(413, "request body is too large"),
    timeout=mosec(408, "inference timeout"),
    failed=mosec(500, "inference internal error"),
    died=mosec(500, "inference internal error"),
    poisonous=mosec(422, TEXT),
    nan=Form(200, JSON, result(1, None), WARNED),
    unknown=mosec(404, Some(".*POST /inference.*")),
    wrong_method=mosec(405, Some(".*POST")),
    loading=mosec(503, TEXT),
    queue_full=mosec(429, "too many request: task queue is full"),
    draining=mosec(503, "gracefully shutting down"),
)


# modelarts


def gateway(status: int, code: str, message: str) -> Form:
    return Form(status, JSON, {"error_code": code, "error_msg": message})


def recognition(status: int, number: str, message: str) -> Form:
    return Form(status, JSON, {"erno": number, "msg": message, "words_result": {}})


def prediction(status: int, number: str, message: str, info: str) -> Form:
    return Form(status, JSON, {"erno": number, "msg": message, "error_info": info})


def flask(status: int, phrase: str) -> Form:
    page = f"<!doctype html>\n<title>{status} {phrase}</title>\n<h1>{phrase}</h1>\n<p>.+</p>\n"
    return Form(status, "text/html", Some(page))


OF_THE_GATEWAY: dict[str, Any] = {
    "credentials": {"x-auth-token": "MIIZ"},
    "health": {"/health": Form(200, HTML, {"status": "OK"})},
    "not_ready": {"/health": Form(503, HTML, {"status": "NOT READY"}, RETRY)},
    "unauthorized": gateway(401, "APIG.0301", "Incorrect IAM authentication information"),
    "too_large": gateway(413, "APIG.0201", "Request entity too large"),
    "timeout": gateway(504, "APIG.0203", "Backend timeout"),
    "unknown": flask(404, "Not Found"),
    "wrong_method": flask(405, "Method Not Allowed"),
    "loading": gateway(503, "ModelArts.4302", "The model is still loading"),
    "queue_full": gateway(503, "ModelArts.4206", "Too many requests are waiting"),
}

MODELARTS = Platform(
    name="modelarts",
    package="modelarts",
    ask=lambda order: Asked("/", as_json(order)),
    answer=lambda number, twice: Form(200, JSON, result(number, twice)),
    broken=Asked("/", b"{"),
    undecodable=flask(400, "Bad Request"),
    failed=recognition(500, "MR.0105", "Recognition failed"),
    died=recognition(500, "MR.0105", "Recognition failed"),
    poisonous=recognition(422, "MR.0101", "The input parameter is invalid"),
    nan=Form(200, JSON, result(1, None), WARNED),
    **OF_THE_GATEWAY,
)


def row_of(order: Order) -> Asked:
    row = {"id": order["id"], "op": order.get("op", "echo"), "gate": order.get("gate", "")}
    return Asked("/", as_json({"data": {"req_data": [row]}}))


def rows(number: Any, twice: Any, **options: Any) -> Form:
    return Form(200, JSON, {"data": {"resp_data": [{"predictresult": result(number, twice)}]}}, **options)


MODELARTS_ROWS = Platform(
    name="modelarts_rows",
    package="modelarts_rows",
    ask=row_of,
    answer=rows,
    tells_why=True,
    broken=Asked("/", b"{"),
    undecodable=prediction(500, "PY.0101", "The input data is invalid", TEXT),
    failed=prediction(500, "PY.0105", "Predict failed", "ValueError: a secret of the script"),
    died=prediction(500, "PY.0105", "Predict failed", ""),
    poisonous=prediction(422, "PY.0101", "The input data is invalid", ""),
    nan=rows(1, None, headers=WARNED),
    **OF_THE_GATEWAY,
)


# evals


def ava(status: int, message: str = TEXT, **options: Any) -> Form:
    return Form(status, JSON, {"error": message}, **options)


def eval_request(order: Order) -> Asked:
    data = {"uri": "data:application/octet-stream;base64,aGVsbG8="}
    return Asked("/v1/eval", as_json({"data": data, "params": order}))


EVALS = Platform(
    name="evals",
    package="evals",
    ask=eval_request,
    other_paths=("/V1/Eval",),
    answer=lambda number, twice: Form(200, JSON, {"code": 0, "message": "", "result": result(number, twice)}),
    batches=True,
    tells_why=True,
    id_header="x-reqid",
    credentials={"authorization": "QiniuStub uid=1&ut=4"},
    health={"/health": Form(200, PLAIN, "ok orders")},
    not_ready={"/health": Form(503, PLAIN, "not ready", RETRY)},
    broken=Asked("/v1/eval", b"{"),
    undecodable=ava(400, "parse task request failed"),
    unauthorized=ava(401),
    too_large=ava(413),
    timeout=ava(504),
    failed=ava(599, "a secret of the script"),
    died=ava(500),
    poisonous=ava(422),
    nan=ava(599),
    unknown=ava(404),
    wrong_method=ava(405),
    loading=ava(503),
    queue_full=ava(503),
)


# paddle


def of_text(order: Order) -> Asked:
    return Asked("/predict", as_json({"text": json.dumps(order)}))


PADDLE = Platform(
    name="paddle",
    package="paddle",
    ask=of_text,
    answer=lambda number, twice: Form(200, JSON, result(number, twice)),
    broken=Asked("/predict", b"{"),
    undecodable=neutral(400, "bad_request"),
    unauthorized=neutral(401, "unauthorized"),
    too_large=neutral(413, "body_too_large"),
    timeout=neutral(504, "timeout"),
    failed=neutral(500, "script_error"),
    died=neutral(500, "worker_died"),
    poisonous=neutral(422, "poisonous"),
    nan=Form(200, JSON, result(1, None), WARNED),
    unknown=neutral(404, "not_found"),
    wrong_method=neutral(405, "method_not_allowed"),
    loading=neutral(503, "loading"),
    queue_full=neutral(503, "queue_full"),
)


def serving_request(order: Order) -> Asked:
    return Asked("/paddle/prediction", as_json({"key": ["text"], "value": [json.dumps(order)]}))


def serving_answer(number: Any, twice: Any, **options: Any) -> Form:
    pairs = {"key": ["id", "twice"], "value": [str(number), str(twice)]}
    return Form(200, JSON, {"err_no": 0, "err_msg": "", **pairs, "tensors": []}, **options)


def serving_error(number: int, status: int = 200) -> Form:
    return Form(status, JSON, {"err_no": number, "err_msg": TEXT, "key": [], "value": [], "tensors": []})


PADDLE_SERVING = Platform(
    name="paddle_serving",
    package="paddle",
    ask=serving_request,
    answer=serving_answer,
    broken=Asked("/paddle/prediction", b"{"),
    undecodable=serving_error(5000),
    unauthorized=serving_error(10000, 401),
    too_large=serving_error(5000, 413),
    timeout=serving_error(6000),
    failed=serving_error(10000),
    died=serving_error(10000),
    poisonous=serving_error(5000, 422),
    nan=serving_answer(1, None, headers=WARNED),
    unknown=neutral(404, "not_found"),
    wrong_method=neutral(405, "method_not_allowed"),
    loading=serving_error(10000, 503),
    queue_full=serving_error(10000, 503),
)


# megflow


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8ffff3f0005fe02fe0def46b80000000049454e44ae426082"
)
OCTETS = "application/octet-stream"


def warp(status: int, text: str = TEXT) -> Form:
    return Form(status, PLAIN, text)


OF_GRAPHS: dict[str, Any] = {
    "unauthorized": warp(401),
    "too_large": warp(413),
    "timeout": warp(504),
    "failed": warp(500, Some("node 'does' failed on this request.*")),
    "died": warp(500),
    "poisonous": warp(422),
    "unknown": warp(404),
    "wrong_method": warp(405),
    "loading": warp(503),
    "queue_full": warp(503),
}

MEGFLOW_IMAGE = Platform(
    name="megflow_image",
    encodes=False,
    goes_on=True,
    package="graph",
    file="image.toml",
    ask=lambda order: Asked("/analyze/" + quote(json.dumps(order), safe=""), PIXEL, "image/*"),
    answer=lambda number, twice: Form(200, JSON, json.dumps(result(number, twice))),
    broken=Asked("/analyze/any", b"no picture", "image/*"),
    undecodable=warp(500, Some("Unhandled rejection: .*")),
    # The graph's own text, as it is.
    nan=Form(200, JSON, '{"id": 1, "twice": NaN}'),
    **OF_GRAPHS,
)
MEGFLOW_BYTES = Platform(
    name="megflow_bytes",
    encodes=False,
    goes_on=True,
    package="graph",
    file="bytes.toml",
    ask=lambda order: Asked("/analyze/bytes", as_json(order), OCTETS),
    answer=lambda number, twice: Form(200, OCTETS, json.dumps(result(number, twice))),
    nan=Form(200, OCTETS, '{"id": 1, "twice": NaN}'),
    **OF_GRAPHS,
)


# model files


def order_as_text(order: Order) -> Asked:
    return Asked("/predict", as_json({"input": [json.dumps(order)]}))


BARE = Platform(
    name="bare",
    encodes=False,
    package="bare",
    ask=order_as_text,
    answer=lambda number, twice: Form(200, JSON, {"predict": [[number, twice]]}),
    batches=True,
    broken=Asked("/predict", b"{"),
    undecodable=neutral(400, "bad_request"),
    unauthorized=neutral(401, "unauthorized"),
    too_large=neutral(413, "body_too_large"),
    timeout=neutral(504, "timeout"),
    failed=neutral(500, "script_error"),
    died=neutral(500, "worker_died"),
    poisonous=neutral(422, "poisonous"),
    nan=Form(200, JSON, {"predict": [[1, None]]}, WARNED),
    unknown=neutral(404, "not_found"),
    wrong_method=neutral(405, "method_not_allowed"),
    loading=neutral(503, "loading"),
    queue_full=neutral(503, "queue_full"),
)


# Triton's Python backend


TRITON = replace(
    BARE,
    name="triton",
    encodes=False,
    package="triton",
    ask=lambda order: Asked("/predict", as_json({"ORDER": [[json.dumps(order)]]})),
    answer=lambda number, twice: Form(200, JSON, {"RESULT": [[number, twice]]}),
    nan=Form(200, JSON, {"RESULT": [[1, None]]}, WARNED),
)


# Hugging Face Inference Endpoints


def endpoint_error(status: int, message: Any = TEXT) -> Form:
    return Form(status, JSON, {"error": message})


HFENDPOINT = Platform(
    name="hfendpoint",
    package="hfendpoint",
    ask=lambda order: Asked("/", as_json({"inputs": order})),
    other_paths=("/predict",),
    answer=lambda number, twice: Form(200, JSON, result(number, twice)),
    tells_why=True,
    credentials={"authorization": "Bearer hf_of_the_platform"},
    health={"/": Form(200, PLAIN, "Ok"), "/health": Form(200, PLAIN, "Ok")},
    not_ready=dict.fromkeys(("/", "/health"), Form(503, PLAIN, "Not ready", RETRY)),
    broken=Asked("/", b"{"),
    undecodable=endpoint_error(400),
    unauthorized=endpoint_error(401),
    too_large=endpoint_error(413),
    timeout=endpoint_error(504),
    failed=endpoint_error(400, "a secret of the script"),
    died=endpoint_error(500),
    poisonous=endpoint_error(422),
    nan=Form(200, JSON, result(1, None), WARNED),
    unknown=Form(404, PLAIN, "Not Found"),
    wrong_method=Form(405, PLAIN, "Method Not Allowed"),
    loading=endpoint_error(503),
    queue_full=endpoint_error(503),
)


# PAI-EAS


def processor_error(status: int, text: Any = TEXT) -> Form:
    return Form(status, PLAIN, text)


PAIEAS = Platform(
    name="paieas",
    encodes=False,
    package="paieas",
    ask=lambda order: Asked("/api/predict/orders", as_json(order), OCTETS),
    other_paths=("/api/predict/others", "/api/predict/orders/further", "/test", "/"),
    answer=lambda number, twice: Form(200, JSON, result(number, twice)),
    unauthorized=processor_error(401),
    too_large=processor_error(413),
    timeout=processor_error(504),
    failed=processor_error(500, Some(".*the server's log says why")),
    died=processor_error(500),
    poisonous=processor_error(422),
    # The script writes its JSON itself.
    nan=Form(200, JSON, '{"id": 1, "twice": NaN}'),
    takes_any_path=True,
    unknown=processor_error(405, "/nowhere takes POST"),
    wrong_method=processor_error(405),
    loading=processor_error(503),
    queue_full=processor_error(503),
)


# TorchServe


def server_exception(status: int, kind: str = "InternalServerException", message: Any = TEXT) -> Form:
    return Form(status, JSON, {"code": status, "type": kind, "message": message})


NO_RESOURCE = "Requested resource is not found, please refer to API document."
TORCHSERVE = Platform(
    name="torchserve",
    package="torchserve",
    ask=lambda order: Asked("/predictions/orders", as_json(order)),
    other_paths=("/predictions/orders/1.0", "/predictions/orders/1.0/a/b", "/invocations", "/orders/predict"),
    answer=lambda number, twice: Form(200, JSON, result(number, twice)),
    batches=True,
    health={"/ping": Form(200, JSON, {"status": "Healthy"})},
    not_ready={"/ping": Form(500, JSON, {"status": "Unhealthy"})},
    other_method="DELETE",
    broken=Asked("/predictions/orders", b"no form", "multipart/form-data; boundary=b"),
    undecodable=server_exception(400, "BadRequestException"),
    unauthorized=server_exception(401, "InvalidKeyException"),
    too_large=server_exception(413),
    timeout=server_exception(500, message="Worker died."),
    failed=server_exception(503, message="Prediction failed"),
    died=server_exception(500, message="Worker died."),
    poisonous=server_exception(422),
    nan=Form(200, JSON, result(1, None), WARNED),
    unknown=server_exception(404, "ResourceNotFoundException", NO_RESOURCE),
    wrong_method=server_exception(405, "MethodNotAllowedException"),
    loading=server_exception(503, "ServiceUnavailableException"),
    queue_full=server_exception(503, "ServiceUnavailableException"),
)


# azureml


def azmlinfsrv(status: int, message: str = TEXT, **options: Any) -> Form:
    return Form(status, JSON, {"message": message}, **options)


SCORING_FAILED = "An unexpected error occurred in scoring script. Check the logs for more info."
AZUREML = Platform(
    name="azureml",
    package="azureml",
    ask=lambda order: Asked("/score", as_json(order)),
    answer=lambda number, twice: Form(200, JSON, result(number, twice), {"x-ms-run-function-failed": "False"}),
    credentials={"authorization": "Bearer a-key-of-an-endpoint"},
    health={"/": Form(200, HTML, "Healthy")},
    not_ready={"/": azmlinfsrv(503, headers=RETRY)},
    broken=Asked("/score", b"\xff"),
    undecodable=azmlinfsrv(400, Some("Input cannot be decoded as UTF-8: .*")),
    unauthorized=azmlinfsrv(401),
    too_large=azmlinfsrv(413),
    timeout=azmlinfsrv(500, Some("Scoring timeout after [0-9]+ ms")),
    failed=azmlinfsrv(500, SCORING_FAILED, headers={"x-ms-run-function-failed": "True"}),
    died=azmlinfsrv(500, SCORING_FAILED),
    poisonous=azmlinfsrv(422),
    nan=Form(200, JSON, result(1, None), WARNED),
    unknown=azmlinfsrv(404, Some("The requested URL was not found on the server.*")),
    wrong_method=azmlinfsrv(405, "The method is not allowed for the requested URL."),
    loading=azmlinfsrv(503),
    queue_full=azmlinfsrv(503),
)


# sagemaker


def model_server(status: int, message: str = TEXT, kind: str = TEXT, **options: Any) -> Form:
    return Form(status, JSON, {"code": status, "type": kind, "message": message}, **options)


SAGEMAKER = Platform(
    name="sagemaker",
    package="sagemaker",
    ask=lambda order: Asked("/invocations", as_json(order)),
    other_paths=("/endpoints/any-name/invocations",),
    answer=lambda number, twice: Form(200, JSON, result(number, twice)),
    credentials={"authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-west-1/sagemaker/aws4_request"},
    health={"/ping": Form(200, JSON, {"status": "Healthy"})},
    not_ready={"/ping": Form(500, JSON, {"status": "Unhealthy"}, RETRY)},
    broken=Asked("/invocations", b"\xff"),
    undecodable=Form(500, PLAIN, Some("'utf-8' codec can't decode .*")),
    unauthorized=model_server(401),
    too_large=model_server(413, kind="RequestEntityTooLargeException"),
    timeout=model_server(500, kind="InternalServerException"),
    failed=Form(500, PLAIN, TEXT),
    tells_why=True,
    died=model_server(500, "Worker died.", "InternalServerException"),
    poisonous=model_server(422),
    nan=Form(200, JSON, result(1, None), WARNED),
    unknown=model_server(404, kind="ResourceNotFoundException"),
    wrong_method=model_server(405, kind="MethodNotAllowedException"),
    loading=model_server(503, kind="ServiceUnavailableException"),
    queue_full=model_server(503, Some("No worker is available to serve request for model: .*")),
)


# truss


def baseten(status: int, code: int, message: str = TEXT, **headers: str) -> Form:
    about = {"x-baseten-error-source": "04", "x-baseten-error-code": str(code), **headers}
    return Form(status, JSON, {"error": message}, about)


MODEL_FAILED = "Internal Server Error (in model/chainlet)."
TRUSS = Platform(
    name="truss",
    package="truss",
    ask=lambda order: Asked("/v1/models/model:predict", as_json(order)),
    other_paths=("/v1/models/any:predict", "/invocations", "/predict", "/production/predict", "/deployment/x/predict"),
    answer=lambda number, twice: Form(200, JSON, result(number, twice)),
    id_header="x-baseten-request-id",
    credentials={"authorization": "Api-Key a-key-of-baseten"},
    health={
        "/": Form(200, JSON, True),
        "/v1/models/model": Form(200, JSON, {}),
        "/v1/models/model/loaded": Form(200, JSON, {}),
        "/ping": Form(200, JSON, {}),
    },
    not_ready={
        path: baseten(503, 600, "Model with name model is not ready.", **RETRY)
        for path in ("/v1/models/model", "/v1/models/model/loaded", "/ping")
    },
    broken=Asked("/v1/models/model:predict", b"{"),
    undecodable=baseten(400, 700, Some("Invalid JSON payload: Expecting property name.*")),
    unauthorized=baseten(401, 700),
    too_large=baseten(413, 700),
    timeout=baseten(504, 600),
    failed=baseten(500, 600, MODEL_FAILED),
    died=baseten(500, 600, MODEL_FAILED),
    poisonous=baseten(422, 700),
    nan=Form(200, JSON, result(1, None), WARNED),
    unknown=Form(404, JSON, {"detail": "Not Found"}),
    wrong_method=Form(405, JSON, {"detail": "Method Not Allowed"}),
    loading=baseten(503, 600, "Model with name model is not ready."),
    queue_full=baseten(503, 600),
)


# mlflow


def exception(status: int, code: str, message: str = TEXT, **more: Any) -> Form:
    return Form(status, JSON, {"error_code": code, "message": message, **more})


def predicted(number: Any, twice: Any, **options: Any) -> Form:
    return Form(200, JSON, {"predictions": result(number, twice)}, **options)


INVALID = {"sqlstate": "KAM00", "error_class": "INVALID_PARAMETER_VALUE"}
MLFLOW = Platform(
    name="mlflow",
    package="mlflow",
    python=mlflow.python,
    ask=lambda order: Asked("/invocations", as_json({"inputs": [json.dumps(order)]})),
    other_paths=("/serving-endpoints/mlflow/invocations", "/model/mlflow/1/invocations"),
    answer=predicted,
    credentials={"authorization": "Bearer dapi-a-token-of-databricks"},
    health={"/ping": Form(200, JSON, "\n"), "/health": Form(200, JSON, "\n")},
    not_ready=dict.fromkeys(("/ping", "/health"), Form(503, JSON, "\n", RETRY)),
    broken=Asked("/invocations", b"{"),
    undecodable=exception(400, "BAD_REQUEST", Some("Invalid input. Ensure that input is a valid JSON.*"), **INVALID),
    unauthorized=exception(401, "UNAUTHENTICATED"),
    too_large=exception(413, "BAD_REQUEST"),
    timeout=Form(504, JSON, "Request processing time exceeded limit"),
    failed=exception(400, "BAD_REQUEST", Some("Encountered an unexpected error.*"), **INVALID),
    died=exception(500, "INTERNAL_ERROR"),
    poisonous=exception(422, "BAD_REQUEST"),
    nan=predicted(1, None, headers=WARNED),
    unknown=Form(404, JSON, {"detail": "Not Found"}),
    wrong_method=Form(405, JSON, {"detail": "Method Not Allowed"}),
    loading=exception(503, "TEMPORARILY_UNAVAILABLE"),
    queue_full=exception(503, "TEMPORARILY_UNAVAILABLE"),
)


# runpod


JOB_ID = Some("sync-[0-9a-z]{26}-u1")


def job(status: str, **more: Any) -> dict[str, Any]:
    told = {"id": JOB_ID, "status": status, "workerId": TEXT}
    return {**told, "delayTime": NUMBER, "executionTime": NUMBER, **more}


def worker_error(status: int, message: str = TEXT) -> Form:
    return Form(status, JSON, {"error": message})


RUNPOD = Platform(
    name="runpod",
    package="runpod",
    stores_jobs=True,
    accepted=200,
    ask=lambda order: Asked("/runsync", as_json({"input": order})),
    other_paths=("/v2/any-endpoint/runsync",),
    answer=lambda number, twice: Form(200, JSON, job("COMPLETED", output=result(number, twice))),
    tells_why=True,
    credentials={"authorization": "Bearer rpa_a-key-of-the-platform"},
    broken=Asked("/runsync", b"{"),
    undecodable=Form(422, JSON, {"detail": [{"type": "json_invalid", "loc": ["body", 0], "msg": "JSON decode error",
                                             "input": {}, "ctx": {"error": TEXT}}]}),
    unauthorized=worker_error(401),
    too_large=worker_error(413),
    # The job goes on, and the client may ask for it.
    timeout=Form(200, JSON, {"id": JOB_ID, "status": "IN_PROGRESS", "delayTime": NUMBER, "workerId": TEXT}),
    failed=Form(200, JSON, job("FAILED", error=Some(".*a secret of the script.*"))),
    died=Form(200, JSON, job("FAILED", error=TEXT)),
    poisonous=Form(200, JSON, job("FAILED", error=TEXT)),
    nan=Form(200, JSON, job("COMPLETED", output=result(1, None)), WARNED),
    unknown=Form(404, JSON, {"detail": "Not Found"}),
    wrong_method=Form(405, JSON, {"detail": "Method Not Allowed"}),
    loading=worker_error(503),
    queue_full=worker_error(429),
)  # fmt: skip


# cog


def prediction_of(order: Order) -> Asked:
    return Asked("/predictions", as_json({"input": {"order": json.dumps(order)}}))


def prediction_ended(status: str, output: Any, error: Any, metrics: Any, logs: str = "") -> Form:
    shown = {"id": None, "version": None, "created_at": None, "started_at": TEXT, "completed_at": TEXT}
    body = {"input": {"order": TEXT}, "output": output, **shown, "logs": Some(logs), "error": error}
    return Form(200, JSON, {**body, "status": status, "metrics": metrics})


def no_prediction(status: int) -> Form:
    return Form(status, JSON, {"error": TEXT, "status": "failed"})


def predicted_by_cog(number: Any, twice: Any) -> Form:
    return prediction_ended("succeeded", result(number, twice), None, {"predict_time": NUMBER}, "(order .* waits\n)?")


def cog_health(status: str, setup: dict[str, Any]) -> Form:
    return Form(200, JSON, {"status": status, "setup": setup, "version": {"cog": TEXT}})


SET_UP = {"started_at": TEXT, "completed_at": TEXT, "logs": "", "status": "succeeded"}
COG = Platform(
    name="cog",
    package="cog",
    ask=prediction_of,
    answer=predicted_by_cog,
    of_job=lambda form: replace(form, body={**form.body, "id": TEXT, "created_at": TEXT}),
    tells_why=True,
    credentials={"authorization": "Token r8_a-token-of-the-platform"},
    health={"/health-check": cog_health("READY", SET_UP)},
    not_ready={"/health-check": cog_health("STARTING", {"started_at": None, "status": "starting", "logs": ""})},
    leaving={"/health-check": cog_health("DEFUNCT", SET_UP)},
    broken=Asked("/predictions", b"{"),
    undecodable=Form(422, JSON, {"detail": [{"loc": ["body", 0], "msg": TEXT, "type": "value_error.jsondecode"}]}),
    unauthorized=no_prediction(401),
    too_large=no_prediction(413),
    timeout=no_prediction(504),
    failed=prediction_ended("failed", None, "a secret of the script", None),
    died=no_prediction(500),
    poisonous=no_prediction(422),
    nan=prediction_ended("failed", None, TEXT, None),
    unknown=Form(404, JSON, {"detail": "Not Found"}),
    wrong_method=Form(405, JSON, {"detail": "Method Not Allowed"}),
    loading=no_prediction(503),
    queue_full=no_prediction(503),
)


# acme, which comes from outside


def acme(status: int, number: int = 99) -> Form:
    return Form(status, JSON, {"acme_error": {"number": number, "text": TEXT}})


def signed(number: Any, twice: Any, **options: Any) -> Form:
    return Form(200, JSON, {"answer": result(number, twice), "signed": "ACME"}, **options)


OUTSIDE = Platform(
    name="acme",
    package="acme",
    outside=ACME,
    ask=lambda order: Asked("/acme/ask", as_json({"question": order})),
    answer=signed,
    health={"/acme/alive": Form(200, PLAIN, "yes")},
    broken=Asked("/acme/ask", b"{"),
    undecodable=acme(400),
    unauthorized=acme(401),
    too_large=acme(413),
    timeout=acme(504, 30),
    failed=acme(500),
    died=acme(500),
    poisonous=acme(422),
    nan=signed(1, None, headers=WARNED),
    unknown=acme(404, 40),
    wrong_method=acme(405),
    loading=acme(503),
    queue_full=acme(503, 31),
)

PLATFORMS = (
    PLAIN_DIALECT, TIINFER, MODELARTS, MODELARTS_ROWS, EVALS, PADDLE, PADDLE_SERVING, MEGFLOW_IMAGE, MEGFLOW_BYTES,
    BARE, TRITON, HFENDPOINT, PAIEAS, AZUREML, SAGEMAKER, TRUSS, MLFLOW, TORCHSERVE, RUNPOD,
    COG, OUTSIDE,
)  # fmt: skip
