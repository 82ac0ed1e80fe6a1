/** Work that root does as a folder's owner, texts for variables, and names of users and groups. */
import { lookAt, readFile } from "./files.ts";

/**
 * Runs `work`, as the owner of the folder if this process is root: the daemon can then read the new files, and the owner's
 * links cannot lead root elsewhere.
 */
export async function asOwnerOf<Value>(folder: string, work: () => Promise<Value>): Promise<Value> {
  const owner = await lookAt(folder);
  const group = process.getegid?.();
  if (process.geteuid?.() !== 0 || group === undefined || owner === undefined || owner.uid === 0)
    return work();
  process.setegid?.(owner.gid);
  process.seteuid?.(owner.uid);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(group);
  }
}

/** Linux limits one variable to 128 KiB. */
export const MAX_VARIABLE_LENGTH = 4_096;

/** A text from outside as the value of a variable. Control characters are replaced: scripts would take them for ends of lines. */
export function variableText(text: string): string {
  return text
    .slice(0, MAX_VARIABLE_LENGTH)
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029]/gu, "\ufffd");
}

/** The name of a user (`/etc/passwd`) or group (`/etc/group`), or its number where the file has no name for it. */
export async function nameIn(file: "/etc/passwd" | "/etc/group", id: number | undefined): Promise<string> {
  const fields = (await entriesIn(file)).find((entry) => entry[2] === String(id));
  return fields?.[0] ?? String(id ?? "unknown");
}

/** The fields of each line. */
export async function entriesIn(file: "/etc/passwd" | "/etc/group"): Promise<string[][]> {
  // Without the file, there are no names.
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").map((line) => line.split(":"));
}
