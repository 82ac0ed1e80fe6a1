/** A group of keys that may be set in several places, such as for all mailboxes and for one of them. */
import type { Given, KeyPath } from "./draft.ts";

/** The group in one place. */
export interface Layer<Raw> {
  readonly raw: Raw;
  readonly path: KeyPath;
}

/** Returns a key from the first layer that sets it. */
export type PickKey<Raw> = <Key extends keyof Raw & string>(
  key: Key,
) => Given<NonNullable<Raw[Key]>> | undefined;

export function pickFrom<Raw>(layers: readonly Layer<Raw>[]): PickKey<Raw> {
  return (key) => {
    for (const { raw, path } of layers) {
      const value = raw[key];
      if (value !== undefined && value !== null) return { value, path: [...path, key] };
    }
    return undefined;
  };
}

/** The layers of a sub-group such as `keep`: one from each layer that sets it. */
export function layersWithin<Raw, Key extends keyof Raw & string>(
  layers: readonly Layer<Raw>[],
  key: Key,
): Layer<NonNullable<Raw[Key]>>[] {
  return layers.flatMap(({ raw, path }) => {
    const value = raw[key];
    return value === undefined || value === null ? [] : [{ raw: value, path: [...path, key] }];
  });
}
