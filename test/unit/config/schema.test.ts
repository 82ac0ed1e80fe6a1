import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { SCHEMA } from "../../../src/config/schema.ts";

test("the schema is valid, which the program does not check", () => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, logger: false });
  expect(ajv.validateSchema(SCHEMA), JSON.stringify(ajv.errors)).toBe(true);
  expect(() => ajv.compile(SCHEMA)).not.toThrow();
});
