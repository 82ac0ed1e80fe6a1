/** How delivered folders are left for whoever takes them. */
import type { Handoff, HandoffCommand, HandoffKeep } from "../model/mailbox.ts";
import type { Draft } from "./draft.ts";
import { type KeyPath, showValue } from "./problems.ts";
import { SCHEMA } from "./schema.ts";
import { parseDuration, parseLongDuration, parseMode } from "./units.ts";

const KEYS = SCHEMA.properties.handoff.properties;

const OWNER_ALL = 0o700;

/** What Inlet itself writes into a delivered folder. */
const TAKEN_NAMES = ["transfer.json", "SHA256SUMS", "message.eml"];

/** What a command gets of our environment: the rest may hold secrets. */
const PASSED_ON = ["PATH", "HOME", "LANG", "TZ"];

/** All but the webhook, whose secret not everybody may read. Problems go to the draft. */
export function parseHandoff(draft: Draft): Omit<Handoff, "webhook"> {
  const { expectWithin } = draft.raw.handoff ?? {};
  return {
    fileMode: parsePermissions("fileMode", draft) ?? 0,
    folderMode: parseFolderMode(draft),
    marker: parseName("marker", draft),
    command: parseCommand(draft),
    acknowledgement: parseAcknowledgement(draft),
    expectWithinMs:
      expectWithin === undefined ? undefined : parseTime(expectWithin, ["handoff", "expectWithin"], draft),
    keep: parseKeep(draft),
  };
}

/** A plain number is refused: whether it was meant as octal digits cannot be told any more. */
function parsePermissions(key: "fileMode" | "folderMode", draft: Draft): number | undefined {
  const given = draft.raw.handoff?.[key] ?? KEYS[key].default;
  const mode = typeof given === "string" ? parseMode(given) : undefined;
  if (mode !== undefined) return mode;
  draft.problems.add(
    ["handoff", key],
    `${showValue(given)} could be meant as octal or not: write it as "0640" or 0o640`,
  );
  return undefined;
}

/** A folder that its owner may not write cannot be moved to its place. */
function parseFolderMode(draft: Draft): number {
  const mode = parsePermissions("folderMode", draft);
  if (mode !== undefined && (mode & OWNER_ALL) !== OWNER_ALL) {
    const shown = showValue(draft.raw.handoff?.folderMode);
    draft.problems.add(
      ["handoff", "folderMode"],
      `${shown} must let the owner read, write and enter: begin it with 07`,
    );
  }
  return mode ?? 0;
}

function parseName(key: "marker" | "acknowledgement", draft: Draft): string | undefined {
  const name = draft.raw.handoff?.[key] ?? KEYS[key].default;
  const taken = TAKEN_NAMES.find((it) => it.toLowerCase() === name.toLowerCase());
  if (taken !== undefined) {
    draft.problems.add(["handoff", key], `${showValue(name)} cannot be used: Inlet writes ${taken} itself`);
  }
  return name === "none" ? undefined : name;
}

/** On a disk that does not tell capitals from small letters, a marker that is nearly the same would be the same. */
function parseAcknowledgement(draft: Draft): string | undefined {
  const name = parseName("acknowledgement", draft);
  if (name !== undefined && name.toLowerCase() === draft.raw.handoff?.marker?.toLowerCase()) {
    const why = "is the marker, which is there from the beginning: choose another name";
    draft.problems.add(["handoff", "acknowledgement"], `${showValue(name)} ${why}`);
  }
  return name;
}

function parseCommand(draft: Draft): HandoffCommand | undefined {
  const { command, commandTimeout = KEYS.commandTimeout.default } = draft.raw.handoff ?? {};
  const timeoutMs = parseDuration(commandTimeout);
  if (timeoutMs === undefined) {
    draft.problems.add(["handoff", "commandTimeout"], `${showValue(commandTimeout)} is longer than 24h`);
  }
  if (command === undefined) return undefined;
  const [program = "", ...args] = command.map((word) => word ?? "");
  const path = ["handoff", "command"];
  if (program === "") draft.problems.add([...path, 0], "names no program");
  const bad = command.findIndex((word) => word?.includes("\0"));
  if (bad >= 0) draft.problems.add([...path, bad], "holds a NUL, which no program can be given");
  // A bare name is looked up in PATH, as everywhere.
  const found = program.includes("/") ? draft.resolvePath(path, program) : program;
  const env = PASSED_ON.flatMap((name): [string, string][] => {
    const value = draft.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { argv: [found, ...args], env: Object.fromEntries(env), timeoutMs: timeoutMs ?? 0 };
}

function parseKeep(draft: Draft): HandoffKeep {
  const { keep = {}, acknowledgement = "none" } = draft.raw.handoff ?? {};
  const times = (["collected", "uncollected"] as const).map((key) => {
    const given = keep[key] ?? KEYS.keep.properties[key].default;
    return given === "forever" ? undefined : parseTime(given, ["handoff", "keep", key], draft);
  });
  const [collectedMs, uncollectedMs] = times;
  if (collectedMs !== undefined && acknowledgement === "none") {
    draft.warnings.push(
      "handoff.keep.collected: not used, because handoff.acknowledgement is not given: what is collected is gone.",
    );
  }
  return { collectedMs, uncollectedMs };
}

function parseTime(text: string, path: KeyPath, draft: Draft): number | undefined {
  const timeMs = parseLongDuration(text);
  if (timeMs === undefined) draft.problems.add(path, `${showValue(text)} is longer than 3650d`);
  return timeMs;
}
