/** What a measurement finds in an inbox whose layout is `{trackingId}`. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { RESERVED_NAMES } from "../../src/model/manifest.ts";

/** What every transfer holds. */
export interface Content {
  /** In each transfer. */
  readonly files: number;
  /** Of each file. */
  readonly bytes: number;
}

/** The folders that hold all files, each of the right size. */
export function findDelivered({ files, bytes }: Content, inbox: string): string[] {
  return listFolder(inbox).filter((name) => {
    const found = listFolder(join(inbox, name)).filter((file) => !RESERVED_NAMES.includes(file));
    return found.length === files && found.every((file) => statSync(join(inbox, name, file)).size === bytes);
  });
}

/** Of a folder that is not there yet: nothing. */
export function listFolder(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
