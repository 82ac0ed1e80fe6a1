/** The building blocks of the schemas: strict objects with helpful messages. */
import * as v from "valibot";
import { describeUnknownKey } from "../src/base/nearest.ts";

/** An object with exactly these keys; the message about an unknown key names the nearest known one. */
export function shape<const Entries extends v.ObjectEntries>(entries: Entries) {
  const known = Object.keys(entries);
  return v.strictObject(entries, (issue) => {
    if (issue.expected === "never") return describeUnknownKey(issue.received.replace(/^"|"$/g, ""), known);
    return issue.expected === "Object" ? "must be an object" : "is required";
  });
}

/** Text that is not empty and has no unpaired surrogates. */
export const text = v.pipe(
  v.string(),
  v.nonEmpty("must not be empty"),
  v.check((value) => value.isWellFormed(), "has half a character"),
);

/** A whole number from zero. */
export const count = v.pipe(v.number(), v.safeInteger("must be a whole number"), v.minValue(0));

/** Seconds from now, negative in the past, within the range of dates. */
export const seconds = v.pipe(v.number(), v.minValue(-1e10), v.maxValue(1e10));

export const secondsFromNow = v.pipe(seconds, v.minValue(0));

export const atLeastOne = v.pipe(v.number(), v.safeInteger("must be a whole number"), v.minValue(1));

/** One line per issue: its path and message. */
export function describeIssues(issues: readonly v.BaseIssue<unknown>[]): string {
  return issues
    .map((issue) => {
      const path = v.getDotPath(issue);
      return path === null ? issue.message : `${path}: ${issue.message}`;
    })
    .join("\n");
}
