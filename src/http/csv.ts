/**
 * CSV as RFC 4180 says, for spreadsheets that take a text which begins like a formula for one: such a text gets a `'` in
 * front. Numbers are written as they are.
 */

/** A text from outside as a cell. Numbers of our own need none of this. */
export const textCell = (text: string): string => quoted(FORMULA.test(text) ? `'${text}` : text)

// also in full width, and behind what a spreadsheet leaves out in front
const FORMULA = /^[\p{White_Space}\p{Cc}\p{Cf}]*[=+\-@＝＋－＠]|^[\t\r\n]/u
const quoted = (text: string): string => (/[",\r\n;]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** Rows of cells that are fit for a line already. */
export const csvText = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.join(',')}\r\n`).join('')
