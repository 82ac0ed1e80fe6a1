/** The building blocks of the schemas: objects that know their keys, and messages that help to mend a file. */
import * as v from "valibot";

/** An object of exactly these keys; an unknown one is refused by the nearest known one. */
export function shape<const Entries extends v.ObjectEntries>(entries: Entries) {
  const known = Object.keys(entries);
  return v.strictObject(entries, (issue) => {
    if (issue.expected === "never") return describeUnknownKey(issue.received, known);
    return issue.expected === "Object" ? "must be an object" : "is required";
  });
}

/** Text that is not empty and has no broken characters. */
export const text = v.pipe(
  v.string(),
  v.nonEmpty("must not be empty"),
  v.check((value) => value.isWellFormed(), "holds half a character"),
);

/** A whole number from zero. */
export const count = v.pipe(v.number(), v.safeInteger("must be a whole number"), v.minValue(0));

/** Seconds to come or, if negative, gone; no more than dates can hold. */
export const seconds = v.pipe(v.number(), v.minValue(-1e10), v.maxValue(1e10));

export const secondsFromNow = v.pipe(seconds, v.minValue(0));

export const atLeastOne = v.pipe(v.number(), v.safeInteger("must be a whole number"), v.minValue(1));

/** One line for each issue: where, then what. */
export function describeIssues(issues: readonly v.BaseIssue<unknown>[]): string {
  return issues
    .map((issue) => {
      const path = v.getDotPath(issue);
      return path === null ? issue.message : `${path}: ${issue.message}`;
    })
    .join("\n");
}

function describeUnknownKey(received: string, known: readonly string[]): string {
  const key = received.replace(/^"|"$/g, "");
  const [nearest] = known
    .map((name) => ({ name, distance: distanceOf(key.toLowerCase(), name.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  const isNear = nearest !== undefined && nearest.distance <= Math.max(2, nearest.name.length / 2);
  return isNear ? `unknown key, did you mean ${nearest.name}?` : `unknown key, known are ${known.join(", ")}`;
}

/** How many letters have to be added, dropped or changed to make one text of the other. */
function distanceOf(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...a].entries()) {
    const current = [row + 1];
    for (const [column, other] of [...b].entries()) {
      const changed = (previous[column] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(changed, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    previous = current;
  }
  return previous.at(-1) ?? 0;
}
