/**
 * What a complete stage holds. A stage in quarantine keeps it in a file of its own, so that an operator can have it
 * delivered without the service.
 */

import { constants } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import type { Fault } from "../base/faults.ts";
import type { Verified } from "../model/record.ts";

/** Why a transfer is in quarantine, and what is kept of it. */
export const REASON = "reason.json";
/** More than the list of the largest transfer, and less than does harm. */
const MOST_BYTES = 512 * 1024 * 1024;

const Content = v.object({
  id: v.string(),
  name: v.string(),
  originalName: v.string(),
  bytes: v.number(),
  checksums: v.array(v.object({ value: v.string(), algorithm: v.string() })),
  sha256: v.string(),
  /** Every checksum that its sender gave matches, and there is one. */
  isProven: v.boolean(),
});

const Shape = v.object({
  files: v.array(Content),
  /** The SHA-256 of the confidential message, where there is one. */
  message: v.optional(v.string()),
  /** The service does not give the confidential message, and there may be one. */
  isMessageRefused: v.optional(v.boolean()),
  subject: v.optional(v.string()),
});

type Plain<Value> = {
  readonly [Key in keyof Value]: Value[Key] extends (infer One)[] ? readonly Plain<One>[] : Value[Key];
};

export type ContentFile = Plain<v.InferOutput<typeof Content>>;
export type Contents = Plain<v.InferOutput<typeof Shape>>;

/** `none` for a transfer without files: no checksum proved anything. */
export function verifiedOf({ files }: Contents): Verified {
  const proven = files.filter(({ isProven }) => isProven).length;
  if (proven === 0) return "none";
  return proven === files.length ? "all" : "some";
}

export function formatReason(
  facts: {
    readonly at: string;
    readonly mailbox: string;
    readonly trackingId: string;
    readonly sender: string;
  },
  { code, message, advice }: Fault,
  contents: Contents | undefined,
): string {
  return `${JSON.stringify({ ...facts, code, message, advice, contents }, null, 2)}\n`;
}

/** What a folder in quarantine holds, if it is complete. */
export async function readKept(folder: string): Promise<Contents | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(join(folder, REASON), flags).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    if ((await file.stat()).size > MOST_BYTES) return undefined;
    const { contents } = JSON.parse(await readFile(file, "utf8")) as { contents?: unknown };
    const parsed = v.safeParse(Shape, contents);
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
}
