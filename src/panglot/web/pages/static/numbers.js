// Whole numbers beyond 2^53, which JavaScript would round: kept as they are written, from the form to the server and back.

/** Such a number. In JSON and in text it is its digits. */
export class Exact {
  constructor(digits) { this.digits = digits; }

  toString() { return this.digits; }

  toJSON() { return JSON.rawJSON?.(this.digits) ?? Number(this.digits); }
}

const WHOLE = /^-?\d+$/;

/** The number that a text spells. */
export const number = (text) => (WHOLE.test(text) && !Number.isSafeInteger(Number(text)) ? new Exact(text) : Number(text));

/** The value of a JSON text. Raises SyntaxError. */
export const parse = (text) => JSON.parse(text, (_, value, { source } = {}) => (typeof value === "number" && source ? number(source) : value));

/** Whether a value is one that holds others. */
export const isNested = (value) => value !== null && typeof value === "object" && !(value instanceof Exact);
