/** Reads JSON that may be damaged: a crash, another version or another program may have written it. */
import * as v from "valibot";

/** `undefined` for a text that is not JSON, and for a missing one. */
export function parseJson(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value that the text holds; `undefined` if it does not have the shape. */
export function parseAs<const Schema extends v.GenericSchema>(
  shape: Schema,
  text: string | undefined,
): v.InferOutput<Schema> | undefined {
  const result = v.safeParse(shape, parseJson(text));
  return result.success ? result.output : undefined;
}
