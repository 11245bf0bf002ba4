// A request that the server runs as a job: its progress comes as events, its answer in the end.

import { phrase } from "./language.js";
import { send } from "./sending.js";

/**
 * As `send`, with the request as a job. `progressed` is called with `{progress, text}` whenever the script reports it.
 * When `signal` aborts, the job is cancelled.
 */
export async function sendAsJob(request, signal, heard, progressed, most) {
  const began = performance.now();
  const submitted = await send({ ...request, headers: { ...request.headers, prefer: "respond-async" } }, signal, () => {}, most);
  const place = submitted.headers.get("location")?.replace(/^\//, "");
  if (submitted.status >= 400 || !place) {
    heard(submitted);
    return submitted;
  }
  try {
    await ended(place, signal, progressed);
    const answer = await send({ method: "GET", path: `${place}/result`, headers: {}, body: { kind: "none" } }, signal, heard);
    return Object.assign(answer, { took: performance.now() - began, sent: submitted.sent, job: place });
  } catch (error) {
    if (signal.aborted) fetch(place, { method: "DELETE" });
    throw error;
  }
}

/** Read events until the job has ended; a stream that breaks off is read again. */
async function ended(place, signal, progressed) {
  for (let over = false; !over;) {
    let read = 0;
    await send({ method: "GET", path: `${place}/events`, headers: {}, body: { kind: "none" } }, signal, (answer) => {
      if (answer.status >= 400) throw new Error(phrase("job_not_followed", { status: String(answer.status) }));
      for (const { event, data } of answer.parts.slice(read)) {
        if (event === "progress") progressed(data);
        over ||= event === "end";
      }
      read = answer.parts.length;
    }).catch((error) => { if (signal.aborted || !(error instanceof TypeError)) throw error; });
    if (!over) await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
