// Which of a model's routes a conversation is held with.

const CHAT = /\/v1\/chat\/completions$/;

/** The operation of OpenAI's chat route, if the model has one. */
export const chatOf = (operations) => operations.find((one) => one.method === "POST" && CHAT.test(one.path));
