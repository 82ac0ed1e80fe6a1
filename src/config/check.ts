/** The `check` group: a command that decides about each complete transfer, for all mailboxes or for one. */
import { type Check, FOLDER } from "../model/mailbox.ts";
import type { Draft } from "./draft.ts";
import { COMMAND } from "./handoff.ts";
import { type Layer, readKeys } from "./layers.ts";
import { key, READ, type SchemaKeys, type WrittenKeys } from "./schema-nodes.ts";
import { bytesFrom, DURATION, SIZE } from "./units.ts";

export const CHECK_KEYS = {
  command: key(
    { ...COMMAND, [READ]: readCheckCommand },
    "A program that is run for each complete and verified folder before its delivery, with its arguments. In an argument, `{folder}` stands for the path of the folder. No shell is involved. After exit code 0 Inlet delivers the transfer, after 1 it quarantines the transfer, and after anything else it runs the program again; see docs/consuming.md. An empty list: no check.",
  ),
  timeout: key(
    { ...DURATION, default: "10m" },
    "The longest time that the program may run before it is killed, at most 24h.",
  ),
  memory: {
    ...SIZE,
    title: "none, or a size such as 2GiB or a number of bytes",
    pattern: `^none$|${SIZE.pattern}`,
    default: "none",
    description:
      "The most address space that each process of the check may have, or `none`. A limit needs the program `prlimit`.",
    // Less is not enough for any program.
    [READ]: bytesFrom(16 * 1024 * 1024, "less than 16MiB"),
  },
} as const satisfies SchemaKeys;

export type RawCheck = WrittenKeys<typeof CHECK_KEYS>;

/** Refuses relative paths: the program runs in another folder, so a scanner of `.` would scan the wrong one. */
function readCheckCommand(...[command, path, draft]: Parameters<(typeof COMMAND)[typeof READ]>) {
  const bad = command.findIndex((word, at) => at > 0 && word !== undefined && /^\.\.?(?:\/|$)/.test(word));
  if (bad >= 0) {
    const message = `is a relative path, and the program does not run in the folder of the transfer: write "${FOLDER}"`;
    draft.problems.add([...path, bad], message);
  }
  return COMMAND[READ](command, path, draft);
}

/** Takes each key from the first layer that sets it. Without `command` there is no check. Problems go to the draft. */
export async function readCheck(
  layers: readonly Layer<RawCheck>[],
  draft: Draft,
): Promise<Check | undefined> {
  const { command, timeout: timeoutMs, memory: memoryBytes } = await readKeys(CHECK_KEYS, layers, draft);
  return command && { ...command, timeoutMs, memoryBytes };
}
