/** A configuration is refused where a validator of JSON schemas refuses it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { accept } from "../../../src/config/explain.ts";
import { SCHEMA } from "../../../src/config/schema.ts";
import type { SchemaNode } from "../../../src/config/schema-nodes.ts";
import { ROOT } from "../../support/root.ts";

// Strict: an invalid schema is refused.
const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true, logger: false });
const validate = ajv.compile(SCHEMA);

/** Of the wrong value, or of the missing or unknown key. An unknown key in a secret is that of the secret. */
function pathOf({ instancePath, keyword, params }: ErrorObject): string {
  const { missingProperty, additionalProperty } = params;
  if (keyword === "required") return `${instancePath}/${missingProperty}`;
  const isHidden = /(assword|clientId|token|proxy|verification|secret|user|value)$/.test(instancePath);
  return keyword === "additionalProperties" && !isHidden
    ? `${instancePath}/${additionalProperty}`
    : instancePath;
}

/** A value that is refused as a whole is not looked into. */
function expectEqual(values: unknown): void {
  validate(values);
  const all = new Set((validate.errors ?? []).map(pathOf));
  const isWithin = (path: string) => [...all].some((other) => other !== path && path.startsWith(`${other}/`));
  const ours = new Set<string>();
  accept(SCHEMA, values, [], (path) => void ours.add(path.map((step) => `/${step}`).join("")));
  const outermost = (paths: Iterable<string>) => [...paths].filter((path) => !isWithin(path)).toSorted();
  expect(outermost(ours)).toEqual(outermost(all));
}

const SIMPLE: readonly unknown[] = [null, "", "x", "1", 0, -1, 1.5, true, "7d", "0640"];

/** Values that mostly fit a part of the schema. */
function valuesOf(node: SchemaNode): fc.Arbitrary<unknown> {
  const wrong = fc.constantFrom(...SIMPLE, [], {}, ["x"], { x: 1 });
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
