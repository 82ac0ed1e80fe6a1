import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SCENARIO_REFERENCE } from "../../../simulator/reference.ts";
import { OPERATIONS } from "../../../simulator/scenario.ts";

const source = readFileSync(join(import.meta.dirname, "../../../simulator/scenario.ts"), "utf8");

test("the reference explains every key, operation and kind of fault of a scenario", () => {
  const rules = /interface PasswordRules \{.*?\n\}/s;
  const keys = [...source.replace(rules, "").matchAll(/readonly (\w+)\??:/g)].map(([, key]) => key ?? "");
  const kinds = [...source.matchAll(/readonly kind: "([a-z-]+)"/g)].map(([, kind]) => `"${kind}"`);
  expect(kinds.length).toBeGreaterThan(15);
  const missing = [...keys, ...kinds, ...OPERATIONS].filter((word) => !SCENARIO_REFERENCE.includes(word));
  expect(missing).toEqual([]);
});

test("the reference fits on a terminal of 92 columns", () => {
  expect(SCENARIO_REFERENCE.split("\n").filter((line) => line.length > 92)).toEqual([]);
});
