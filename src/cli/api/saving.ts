/** Saves a download under a temporary name, and renames it when it is verified. */

import { join } from "node:path";
import { createDurably, exists } from "../../base/durable.ts";
import { Fault } from "../../base/faults.ts";
import type { OpenFile } from "../../base/files.ts";
import { type Checksum, startVerification } from "../../model/checksum.ts";
import type { Download } from "../../service/port.ts";
import type { Context } from "../command.ts";
import { type Column, startProgress } from "../printing.ts";

/** Facts about a download that are known before it arrives. */
export interface Expectation {
  readonly bytes?: number;
  /** Each must match. */
  readonly checksums: readonly Checksum[];
}

export interface Saved {
  readonly path: string;
  readonly bytes: number;
  /** The algorithms of its checksums, as the service spells them; empty without a checksum. */
  readonly verifiedBy: readonly string[];
  /** An earlier call saved the same content. */
  readonly already?: boolean;
}

/** `inspect` reads the whole file before it gets its name, and may throw. */
export async function saveDownload(
  context: Context,
  download: Download,
  target: string,
  expected: Expectation = { checksums: [] },
  inspect: (temporary: OpenFile) => Promise<void> = async () => {},
): Promise<Saved> {
  const progress = startProgress(context, target, expected.bytes ?? download.totalBytes);
  let bytes = 0;
  try {
    if (await exists(target)) throw new Fault("TARGET_EXISTS", { detail: target });
    const verification = startVerification(expected.checksums);
    await createDurably(target, async (file) => {
      for await (const chunk of download.body) {
        verification.update(chunk);
        await file.write(chunk);
        bytes += chunk.byteLength;
        progress.advance(chunk.byteLength);
      }
      if (bytes !== (expected.bytes ?? bytes)) {
        const detail = `${target}: ${bytes} bytes instead of ${expected.bytes}`;
        throw new Fault("SIZE_MISMATCH", { detail });
      }
      verification.finish(target);
      await inspect(file);
    });
  } finally {
    progress.end();
    download.cancel();
  }
  return { path: target, bytes, verifiedBy: algorithmsOf(expected.checksums) };
}

/** The sender's name for the file. Throws `NAME_UNUSABLE` for a harmful one. */
export function ownName(name: string): string {
  const harmful =
    /[/\\\p{Cc}]/u.test(name) || ["", ".", ".."].includes(name) || Buffer.byteLength(name) > 255;
  // A hidden file may configure another program, and a leading dash looks like an option.
  if (harmful || /^[-.]/.test(name)) {
    throw new Fault("NAME_UNUSABLE", { detail: JSON.stringify(name) });
  }
  return join(".", name);
}

export function algorithmsOf(checksums: readonly Checksum[]): string[] {
  return [...new Set(checksums.map((checksum) => checksum.algorithm))];
}

export const SAVED_COLUMNS: readonly Column<Saved>[] = [
  { title: "SAVED", value: (file) => file.path },
  { title: "BYTES", right: true, value: (file) => String(file.bytes) },
  {
    title: "VERIFIED BY",
    value: (file) => file.verifiedBy.join(", ") || "nothing: there is no checksum",
  },
  { title: "", value: (file) => (file.already ? "already here" : "") },
];
