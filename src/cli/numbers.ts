/** Numbers on the command line: decimal digits within a range, and nothing else that JavaScript reads as a number. */
import { InvalidArgumentError } from "commander";

/** Makes a parser for an option's value. */
export function wholeNumber(from: number, to: number): (text: string) => number {
  return (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= from && number <= to) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`);
  };
}

/** One byte: smaller numbers are not written as decimals. */
const LEAST_MEGABYTES = 0.000_001;
const MOST_MEGABYTES = 1_000_000;

export function megabytes(text: string): number {
  const number = /^\d{1,15}(?:\.\d{1,15})?$/.test(text) ? Number(text) : Number.NaN;
  if (number >= LEAST_MEGABYTES && number <= MOST_MEGABYTES) return number;
  throw new InvalidArgumentError(
    `It must be a number of megabytes above 0 and up to ${MOST_MEGABYTES}, such as 5 or 0.5.`,
  );
}
