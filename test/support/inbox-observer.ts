/**
 * A consumer that inspects each folder of an inbox as soon as it appears, and records problems: a missing manifest, a
 * missing file, wrong content.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate, setTimeout } from "node:timers/promises";

export interface InboxObserver {
  readonly problems: string[];
  /** Folders in the order of their appearance. */
  readonly seen: string[];
  close(): Promise<void>;
}

/** `everyMs`: the pause between two looks; by default none. */
export function observeInbox(inbox: string, everyMs?: number): InboxObserver {
  const problems: string[] = [];
  const seen: string[] = [];
  let open = true;
  const look = () => {
    for (const folder of findDeliveries(inbox)) {
      if (seen.includes(folder)) continue;
      seen.push(folder);
      problems.push(...inspect(folder).map((problem) => `${folder}: ${problem}`));
    }
  };
  const watching = (async () => {
    while (open) {
      look();
      await (everyMs === undefined ? setImmediate() : setTimeout(everyMs));
    }
    look();
  })();
  return {
    problems,
    seen,
    async close() {
      open = false;
      await watching;
    },
  };
}

/** A delivery is a folder with files; folders above it hold only folders. */
function findDeliveries(folder: string): string[] {
  if (!existsSync(folder)) return [];
  let entries: ReturnType<typeof readEntries>;
  try {
    entries = readEntries(folder);
  } catch {
    return [];
  }
  if (entries.some((entry) => entry.isFile())) return [folder];
  return entries.flatMap((entry) =>
    entry.name === ".inlet" || !entry.isDirectory() ? [] : findDeliveries(join(folder, entry.name)),
  );
}

function readEntries(folder: string) {
  return readdirSync(folder, { withFileTypes: true });
}

function inspect(folder: string): string[] {
  try {
    const manifest = JSON.parse(readFileSync(join(folder, "transfer.json"), "utf8"));
    const sums = readFileSync(join(folder, "SHA256SUMS"), "utf8").trimEnd().split("\n").filter(Boolean);
    const wrong = sums.filter((line) => {
      const [sum, name] = [line.slice(0, 64), line.slice(66)];
      return (
        createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex") !== sum
      );
    });
    const names = new Set(sums.map((line) => line.slice(66)));
    const missing = (manifest.files as { name: string }[]).filter((file) => !names.has(file.name));
    return [
      ...wrong.map((line) => `wrong bytes: ${line}`),
      ...missing.map((file) => `no sum for ${file.name}`),
    ];
  } catch (error) {
    return existsSync(folder) ? [String(error)] : [];
  }
}
