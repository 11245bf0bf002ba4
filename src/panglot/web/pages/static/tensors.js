// A first request with tensors, of the model's own inputs as its metadata tell them.

const MOST = 4096;

/** Whether a way is a request of the Open Inference Protocol. */
export const takesTensors = (way) => way.kind === "json" && /\/v2\/models\/[^/]+(\/versions\/[^/]+)?\/infer$/.test(way.target ?? "");

/** The body for such a request: zeros in the shape of each input; text is the native example, where there is one. */
export async function firstTensors(path, example) {
  const answer = await fetch(path.replace(/^\//, "").replace(/\/infer$/, ""));
  if (!answer.ok) return null;
  const { inputs } = await answer.json();
  return { inputs: (inputs ?? []).map((input) => tensor(input, example)) };
}

function tensor({ name, datatype, shape }, example) {
  const sizes = (shape ?? []).map((size) => (Number(size) > 0 ? Number(size) : 1));
  const length = sizes.reduce((product, size) => product * size, 1);
  const filling = datatype === "BYTES" ? JSON.stringify(example ?? {}) : datatype === "BOOL" ? false : 0;
  return { name, shape: sizes, datatype, data: Array(Math.min(length, MOST)).fill(filling) };
}
