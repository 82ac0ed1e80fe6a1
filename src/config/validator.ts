/** Validates a configuration by its schema. The build replaces this file by the compiled code, because compiling is slow. */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { SCHEMA } from "./schema.ts";

/** The required top-level keys depend on the command: `checkSchema` looks for them. */
export const VALIDATED_SCHEMA = { ...SCHEMA, required: [] };

/**
 * Ajv adds no defaults and prints nothing. To start faster, it neither validates the schema, which a test does, nor
 * optimizes the compiled code, which runs once.
 */
export const VALIDATION_OPTIONS = {
  allErrors: true,
  useDefaults: false,
  allowUnionTypes: true,
  logger: false,
  meta: false,
  validateSchema: false,
  code: { optimize: false },
} as const;

let compiled: ValidateFunction | undefined;

export function findErrors(values: unknown): readonly ErrorObject[] {
  compiled ??= new Ajv2020(VALIDATION_OPTIONS).compile(VALIDATED_SCHEMA);
  return compiled(values) ? [] : (compiled.errors ?? []);
}
