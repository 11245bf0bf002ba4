"use strict";

const model = new URLSearchParams(location.search).get("model");
const root = document.getElementById("swagger-ui");

/** What Swagger UI leaves out for people who use the keyboard or a screen reader: an attribute, where, and its value. */
const LACKING = [
  ["tabindex", "pre.microlight, .download-contents", () => "0"],
  ["role", ".download-contents", () => "button"],
  ["aria-label", ".copy-to-clipboard button", () => "Copy"],
  ["aria-label", ".close-modal", () => "Close"],
  ["aria-label", ".body-param__text", () => "Request body"],
  ["aria-label", "[data-property-name] :is(input, select, textarea)", (one) => one.closest("tr").dataset.propertyName],
  ["aria-label", "[data-param-name] :is(input, select, textarea)", (one) => one.closest("tr").dataset.paramName],
  ["aria-label", ".responses-table", (one) => one.id.replaceAll("_", " ")],
];

new MutationObserver(() => {
  for (const [name, where, value] of LACKING) {
    for (const one of root.querySelectorAll(`:is(${where}):not([${name}])`)) one.setAttribute(name, value(one));
  }
}).observe(root, { childList: true, subtree: true });

root.addEventListener("keydown", ({ key, target }) => {
  if (key === "Enter" && target.matches(".download-contents")) target.click();
});

/** Paths as texts: as links they would lie inside of buttons. To open an operation writes its address all the same. */
const paths = ({ React }) => ({
  wrapComponents: { DeepLink: () => ({ text }) => React.createElement("span", { className: "nostyle" }, text) },
});

SwaggerUIBundle({
  url: model ? `models/${encodeURIComponent(model)}/openapi.json` : "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  plugins: [paths],
  validatorUrl: null,
});
