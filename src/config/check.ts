/** The `check` group: a command that decides about each complete transfer, for all mailboxes or for one. */
import type { Check } from "../model/mailbox.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { readProgram } from "./handoff.ts";
import { type Layer, pickFrom } from "./layers.ts";
import type { SchemaNode, WrittenKeys } from "./schema-nodes.ts";
import { DURATION, parseSize, readDuration, SIZE } from "./units.ts";

export const CHECK_KEYS = {
  command: {
    type: "array",
    title: "a list of a program and its arguments",
    items: { type: "string", title: "text" },
    description:
      "A program that is run in each complete and verified folder before its delivery, with its arguments. No shell is involved. After exit code 0 Inlet delivers the transfer, after 1 it quarantines the transfer, and after anything else it runs the program again; see docs/consuming.md. An empty list: no check.",
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
      "The most address space that each process of the check may have, or `none`. A limit needs the program `prlimit`.",
  },
} as const satisfies Readonly<Record<string, SchemaNode>>;

export type RawCheck = WrittenKeys<typeof CHECK_KEYS>;

/** Less is not enough for any program. */
const MIN_MEMORY_BYTES = 16 * 1024 * 1024;

/** Takes each key from the first layer that sets it. Without `command` there is no check. Problems go to the draft. */
export function readCheck(layers: readonly Layer<RawCheck>[], draft: Draft): Check | undefined {
  const pick = pickFrom(layers);
  const { timeout: defaultTimeout, memory: defaultMemory } = CHECK_KEYS;
  const timeout = pick("timeout") ?? { value: defaultTimeout.default, path: [] };
  const memory = pick("memory") ?? { value: defaultMemory.default, path: [] };
  const timeoutMs = readDuration(timeout.value, timeout.path, draft);
  const memoryBytes = readMemory(memory.value, memory.path, draft);
  const command = pick("command");
  if (command === undefined || command.value.length === 0) return undefined;
  return { ...readProgram(command.value, command.path, draft), timeoutMs, memoryBytes };
}

function readMemory(given: string | number, path: KeyPath, { problems }: Draft): number | undefined {
  if (given === "none") return undefined;
  const bytes = parseSize(String(given));
  if (bytes !== undefined && bytes >= MIN_MEMORY_BYTES) return bytes;
  problems.add(path, `${showValue(given)} is ${bytes === undefined ? "too large" : "less than 16MiB"}`);
  return undefined;
}
