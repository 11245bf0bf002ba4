"use strict";

const model = new URLSearchParams(location.search).get("model");

SwaggerUIBundle({
  url: model ? `models/${encodeURIComponent(model)}/openapi.json` : "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  validatorUrl: null,
});
