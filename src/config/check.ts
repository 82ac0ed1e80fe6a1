/** The `check` group: a command that decides about each complete transfer, for all mailboxes or for one. */
import { type Check, FOLDER } from "../model/mailbox.ts";
import type { Spot } from "./draft.ts";
import { COMMAND } from "./handoff.ts";
import { group, key, READ, type Read, type ReadItems, type SchemaNode } from "./schema-nodes.ts";
import { bytesFrom, DURATION, SIZE } from "./units.ts";

const FORM = group(
  {
    command: key(
      { ...COMMAND, [READ]: readCheckCommand },
      "A program that is run for each complete and verified folder before its delivery, with its arguments, without a shell. `{folder}` stands for the path of the folder. Exit code 0 delivers the transfer, 1 quarantines it, and after anything else the program runs again. An empty list: no check.",
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
        "The most address space that each process of the check may have. A limit needs the program `prlimit`.",
      // No program runs with less.
      [READ]: bytesFrom(16 * 1024 * 1024, "is less than 16MiB"),
    },
  },
  "A program that decides about each complete transfer before its delivery, such as a virus scanner.",
);

export const CHECK = { ...FORM, [READ]: readCheck } as const satisfies SchemaNode;

/** Refuses relative paths: the program runs in another folder, so a scanner of `.` would scan the wrong one. */
function readCheckCommand(command: ReadItems<typeof COMMAND.items>, at: Spot) {
  const bad = command.findIndex((word = "", place) => place > 0 && /^\.\.?(?:\/|$)/.test(word));
  const why = `is a relative path, and the program does not run in the folder of the transfer: write "${FOLDER}"`;
  if (bad >= 0) at.refuse(why, bad);
  return COMMAND[READ](command, at);
}

function readCheck({ command, timeout, memory }: Read<typeof FORM>): Check | undefined {
  return command && { ...command, timeoutMs: timeout, memoryBytes: memory };
}
