// Numbers as people read them.

import { phrase } from "./language.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value) {
  return whole.format(value);
}

/** Three digits that count: 0.12, 1.23, 12.3, 123, 1,234. */
export function digits(value) {
  const size = Math.abs(value);
  return size >= 100 ? whole.format(value) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function milliseconds(value) {
  return value >= 10000 ? `${(value / 1000).toFixed(1)} s` : `${digits(value)} ms`;
}

export function bytes(value) {
  if (value < 1000) return `${value} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let place = -1;
  let size = value;
  do { size /= 1000; place += 1; } while (size >= 999.5 && place < units.length - 1);
  return `${size >= 99.5 ? Math.round(size) : size.toFixed(1)} ${units[place]}`;
}

/** Two units at most: `45 s`, `3 min 20 s`, `5 h 2 min`, `12 d 4 h`. */
export function duration(seconds) {
  const total = Math.floor(seconds);
  for (const [unit, size, next, nextSize] of [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]]) {
    if (total >= size) return `${Math.floor(total / size)} ${phrase(`unit_${unit}`)} ${Math.floor((total % size) / nextSize)} ${phrase(`unit_${next}`)}`;
  }
  return `${total} ${phrase("unit_s")}`;
}

/** The time of day of seconds since 1970. */
export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

/** A share of 1 as per cent. */
export const percent = (share) => `${(100 * share).toFixed(share >= 0.9995 || share === 0 ? 0 : 1)} %`;
