/** The validator that the build compiles finds the same errors as the schema itself. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { compileFunction } from "node:vm";
import type { ErrorObject } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { compileValidator } from "../../../build.ts";
import { SCHEMA } from "../../../src/config/schema.ts";
import type { SchemaNode } from "../../../src/config/schema-nodes.ts";
import { findErrors } from "../../../src/config/validator.ts";
import { ROOT } from "../../support/root.ts";

const compiled: { findErrors?: typeof findErrors } = {};
compileFunction(compileValidator(), ["exports", "require"])(compiled, createRequire(import.meta.url));

/** The path in the schema differs, because the compiled one has definitions. */
function formatErrors(errors: readonly ErrorObject[] | undefined): unknown[] {
  return (errors ?? []).map(({ instancePath, keyword, params, message }) =>
    JSON.stringify({ instancePath, keyword, params, message }),
  );
}

function expectEqual(values: unknown): void {
  expect(formatErrors(compiled.findErrors?.(values)).toSorted()).toEqual(
    formatErrors(findErrors(values)).toSorted(),
  );
}

/** Values that mostly fit a part of the schema. */
function valuesOf(node: SchemaNode): fc.Arbitrary<unknown> {
  const wrong = fc.constantFrom<unknown>(
    null,
    "",
    "x",
    "1",
    0,
    -1,
    1.5,
    true,
    [],
    {},
    ["x"],
    { x: 1 },
    "7d",
    "0640",
  );
  const right: fc.Arbitrary<unknown>[] = [];
  if (node.enum !== undefined) right.push(fc.constantFrom(...node.enum));
  if (node.default !== undefined) right.push(fc.constant(node.default));
  if (node.properties !== undefined) {
    const entries = Object.entries(node.properties).map(([key, child]) => [key, valuesOf(child)] as const);
    const some = fc.record(Object.fromEntries(entries), { requiredKeys: [] });
    right.push(
      some,
      fc.tuple(some, wrong).map(([values, value]) => ({ ...values, unknown: value })),
    );
  }
  if (node.items !== undefined) right.push(fc.array(valuesOf(node.items), { maxLength: 3 }));
  return fc.oneof({ weight: 1, arbitrary: wrong }, ...right.map((arbitrary) => ({ weight: 4, arbitrary })));
}

test("for any values", () => {
  fc.assert(fc.property(valuesOf(SCHEMA), expectEqual), { numRuns: 1_000 });
});

test("for the example", () => {
  const example = readFileSync(join(ROOT, "config/inlet.example.yaml"), "utf8");
  expectEqual(parse(example));
  expectEqual(parse(example.replaceAll(/^#(?! )/gm, "")));
});
