// A link that carries a request, where it is small and made of text alone. It lies behind the #, which servers never see.

const LONGEST = 4000;

/** The link of `{operation, way, parameters, body}`; empty where it cannot carry it. */
export function linkOf({ operation, way, parameters, body }) {
  const files = body.file || body.marks?.length || body.entries?.some((entry) => entry.file);
  if (files) return "";
  const plain = JSON.stringify({ operation, way, parameters, body });
  const carried = btoa(String.fromCharCode(...new TextEncoder().encode(plain))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return carried.length > LONGEST ? "" : `${location.origin}${location.pathname}${location.search}#try=${carried}`;
}

/** The request that this page's address carries; null where there is none, or it is no such thing. */
export function linked() {
  const carried = /^#try=([\w-]+)$/.exec(location.hash)?.[1];
  if (!carried) return null;
  try {
    const raw = atob(carried.replaceAll("-", "+").replaceAll("_", "/"));
    const found = JSON.parse(new TextDecoder().decode(Uint8Array.from(raw, (one) => one.charCodeAt(0))));
    return typeof found.operation === "string" && found.body && typeof found.body === "object" ? found : null;
  } catch {
    return null;
  }
}
