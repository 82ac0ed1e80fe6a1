/** The `check` group: a command that decides about each complete transfer, for all mailboxes or for one. */
import type { Check } from "../model/mailbox.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { readProgram } from "./handoff.ts";
import type { SchemaNode, WrittenKeys } from "./schema-nodes.ts";
import { DURATION, parseSize, readDuration, SIZE } from "./units.ts";

export const CHECK_KEYS = {
  command: {
    type: "array",
    title: "a list of a program and its arguments",
    items: { type: "string", title: "text" },
    description:
      "A program that is run in each complete and verified folder before its delivery, with its arguments. No shell is involved. Exit code 0 delivers the transfer, 1 quarantines it, and after anything else the program is run again; see docs/consuming.md. An empty list: no check.",
  },
  timeout: {
    ...DURATION,
    default: "10m",
    description: "The longest time that the program may run before it is killed, at most 24h.",
  },
  memory: {
    ...SIZE,
    title: "none, or a size such as 2GiB or a number of bytes",
    pattern: `^none$|${SIZE.pattern}`,
    default: "none",
    description:
      "The most address space that each process of the check may have, or `none`. It needs the program `prlimit`.",
  },
} as const satisfies Readonly<Record<string, SchemaNode>>;

export type RawCheck = WrittenKeys<typeof CHECK_KEYS>;

/** The keys of one layer, or of several that are merged. Without `command` there is no check. */
export interface CheckLayer extends Omit<Check, "argv" | "env"> {
  readonly command: Pick<Check, "argv" | "env"> | undefined;
}

/** Less is not enough for any program. */
const MIN_MEMORY_BYTES = 16 * 1024 * 1024;

/** `base`: the layer below, which provides the keys that are not set here. Problems go to the draft. */
export function readCheck(raw: RawCheck = {}, path: KeyPath, draft: Draft, base?: CheckLayer): CheckLayer {
  const { command, timeout, memory } = raw;
  const keys = CHECK_KEYS;
  return {
    command: command === undefined ? base?.command : readCommand(command, [...path, "command"], draft),
    timeoutMs:
      timeout === undefined && base !== undefined
        ? base.timeoutMs
        : readDuration(timeout ?? keys.timeout.default, [...path, "timeout"], draft),
    memoryBytes:
      memory === undefined && base !== undefined
        ? base.memoryBytes
        : readMemory(memory ?? keys.memory.default, [...path, "memory"], draft),
  };
}

export function checkOf({ command, timeoutMs, memoryBytes }: CheckLayer): Check | undefined {
  return command && { ...command, timeoutMs, memoryBytes };
}

function readCommand(
  command: NonNullable<RawCheck["command"]>,
  path: KeyPath,
  draft: Draft,
): CheckLayer["command"] {
  return command.length === 0 ? undefined : readProgram(command, path, draft);
}

function readMemory(given: string | number, path: KeyPath, { problems }: Draft): number | undefined {
  if (given === "none") return undefined;
  const bytes = parseSize(String(given));
  if (bytes !== undefined && bytes >= MIN_MEMORY_BYTES) return bytes;
  problems.add(path, `${showValue(given)} is ${bytes === undefined ? "too large" : "less than 16MiB"}`);
  return undefined;
}
