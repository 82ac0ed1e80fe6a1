/** Finds deliveries in an inbox whose layout is `{trackingId}`. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { RESERVED_NAMES } from "../../src/model/manifest.ts";

/** The content of every transfer. */
export interface Content {
  /** In each transfer. */
  readonly files: number;
  /** Of each file. */
  readonly bytes: number;
}

/** Names of the folders that hold all files with the right sizes. */
export function findDelivered({ files, bytes }: Content, inbox: string): string[] {
  return listFolder(inbox).filter((name) => {
    const found = listFolder(join(inbox, name)).filter((file) => !RESERVED_NAMES.includes(file));
    return found.length === files && found.every((file) => statSync(join(inbox, name, file)).size === bytes);
  });
}

/** Empty for a folder that does not exist yet. */
export function listFolder(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
