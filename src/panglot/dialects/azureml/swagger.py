"""`/swagger.json`: the API of a script in Swagger 2.0, OpenAPI 3.0 and 3.1, as clients of the platform fetch it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine import interface as states
from panglot.web.models import Model
from panglot_worker.files.package_files import UnreadableFile, json_value

Object = dict[str, Any]

VERSIONS = {"2": ("2", "2.0"), "3": ("3", "3.0"), "3.1": ("3.1",)}
"""The versions of Swagger, each by the names it has in a query."""
OWN_FILES = {"2": ("swagger.json", "swagger2.json"), "3": ("swagger3.json",), "3.1": ("swagger3.1.json",)}
"""Files of a package that win over the documents made here."""
FAILED = {"x-ms-run-function-failed": "False"}


def page(model: Model, request: Request) -> Response:
    """The document of the version that the query names."""
    if model.engine.state not in states.SERVING:
        return _json(model, {"message": "the script is not loaded"}, 503)
    # Clients of the platform that name no version expect Swagger 2.
    wanted = request.query_params.get("version", "2")
    documents = {version: written for version in VERSIONS if (written := document(model, version)) is not None}
    known = ", ".join(sorted(documents))
    version = next((version for version, names in VERSIONS.items() if wanted in names), "")
    if not version:
        return _json(
            model, {"message": f"Swagger version [{wanted}] is not valid. Supported versions: [{known}]."}, 404
        )
    if version not in documents:
        problem = f"Swagger version [{version}] is not supported for the scoring script."
        return _json(model, {"message": f"{problem} Supported swagger versions: [{known}]."}, 404)
    return _json(model, documents[version])


def _json(model: Model, value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, {**FAILED, **version_header(model)}, "application/json")


def version_header(model: Model) -> dict[str, str]:
    """The header by which pages of the platform's server name its version."""
    version = str(model.package.options["server_version"])
    return {"x-ms-server-version": version} if version else {}


def document(model: Model, version: str) -> Object | None:
    """The package's own document, or a document made from the decorators; None where they do not fit this version."""
    for name in OWN_FILES[version]:
        try:
            own = json_value(model.package.folder / name)
        except (OSError, UnreadableFile):
            continue
        if isinstance(own, dict) and own:
            return own
    known = (model.description.get("api") or {}).get("platform", {}).get("swagger", {})
    if not set(VERSIONS[version]) & set(known.get("versions", ())):
        return None
    made = _document(model.package.options["service"], known["input"], known["output"], version)
    return {**made, "openapi": "3.1.0"} if version == "3.1" else made


def _document(service: Mapping[str, str], given: Object, answered: Object, version: str) -> Object:
    schemas = {
        "ServiceInput": given,
        "ServiceOutput": answered,
        "ErrorResponse": {"type": "object", "properties": {"message": {"type": "string"}}},
    }
    old = version == "2"
    info = {
        "title": service["name"],
        "description": f"The API of the scoring script of {service['name']}",
        "version": service["version"],
    }
    prefix = f"/{service['prefix'].strip('/')}" if service["prefix"] else ""
    bearer = {"type": "apiKey", "name": "Authorization", "in": "header", "description": "Bearer, and the token"}
    paths = _paths(prefix, old)
    if old:
        return {
            "swagger": "2.0",
            "info": info,
            "schemes": ["https"],
            "consumes": ["application/json"],
            "produces": ["application/json"],
            "securityDefinitions": {"Bearer": bearer},
            "paths": paths,
            "definitions": schemas,
        }
    return {
        "openapi": "3.0.3",
        "info": info,
        "security": [{"Bearer": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"Bearer": bearer}},
    }


def _paths(prefix: str, old: bool) -> Object:
    """The routes; a schema stands in `content` from version 3 on."""
    start = "#/definitions/" if old else "#/components/schemas/"

    def answer(about: str, media: str, schema: Object, example: str = "") -> Object:
        if old:
            return {"description": about, "schema": schema, **({"examples": {JSON: example}} if example else {})}
        return {"description": about, "content": {media: {"schema": {**schema, **_shown(example)}}}}

    def operation(name: str, about: str, success: Object, **more: Any) -> Object:
        failed = answer("The service failed.", JSON, {"$ref": start + "ErrorResponse"})
        return {"operationId": name, "description": about, **more, "responses": {"200": success, "default": failed}}

    text = {"type": "string"}
    kind = {"type": "integer", "enum": [2, 3]}
    version = {"name": "version", "in": "query", "required": False, **(kind if old else {"schema": kind})}
    payload = {"$ref": start + "ServiceInput"}
    body: Object = {"requestBody": {"description": "The input of the script.", "content": {JSON: {"schema": payload}}}}
    if old:
        parameter = {"name": "serviceInputPayload", "in": "body", "description": "The input of the script."}
        body = {"parameters": [{**parameter, "schema": payload}]}
    result = answer("The result of the script.", JSON, {"$ref": start + "ServiceOutput"})
    healthy = answer("The service is up.", "text/plain", text, "Healthy")
    document = answer("The Swagger document.", "text/plain", text)
    return {
        f"{prefix}/": {"get": operation("ServiceHealthCheck", "Whether the service is up", healthy)},
        f"{prefix}/score": {
            "post": operation("RunMLService", "Run the model", result, security=[{"Bearer": []}], **body)
        },
        f"{prefix}/swagger.json": {"get": operation("GetSwaggerSpec", "This document", document, parameters=[version])},
    }


def _shown(example: str) -> Object:
    return {"example": example} if example else {}


JSON = "application/json"
