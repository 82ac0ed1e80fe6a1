/** The `handoff` group: permissions, acknowledgement and retention of delivered folders, and how deliveries are announced. */
import { type Handoff, type HandoffCommand, type HandoffKeep, PLACEHOLDERS } from "../model/mailbox.ts";
import { RESERVED_NAMES } from "../model/manifest.ts";
import { resolveProgram } from "./credentials.ts";
import { type Draft, formatPath, type Given, type KeyPath, showValue } from "./draft.ts";
import { type Layer, layersWithin, type PickKey, pickFrom } from "./layers.ts";
import { describeWrongPlaceholders } from "./placeholders.ts";
import { group, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import {
  DURATION,
  LONG_DURATION,
  LONG_DURATION_PATTERN,
  MODE,
  parseMode,
  readDuration,
  readLongDuration,
} from "./units.ts";
import { readWebhook, WEBHOOK } from "./webhook.ts";

const FILE_NAME = {
  type: "string",
  title: "none or a plain file name",
  pattern: "^(?!\\.{1,2}$)[^\\u0000-\\u001f/\\\\]+$",
  maxLength: 200,
  default: "none",
} as const satisfies SchemaNode;

/** Group names from directory services may hold spaces and backslashes. */
const GROUP = {
  type: ["string", "integer"],
  title: "none, or the name or number of a group",
  pattern: "^[^-:\\u0000-\\u001f][^:\\u0000-\\u001f]*$",
  maxLength: 256,
  minimum: 0,
  maximum: 4_294_967_294,
} as const satisfies SchemaNode;

const DONE = {
  type: ["boolean", "string"],
  title: "true, false or the end of a name such as .done",
  pattern: "^[._-][A-Za-z0-9._-]{0,8}[A-Za-z0-9_-]$",
  default: false,
} as const satisfies SchemaNode;

/** The end of names of done-markers, if the configuration only says `true`. */
const DONE_END = ".done";

const KEEP_FOR = { ...LONG_DURATION, default: "forever" } as const satisfies SchemaNode;

const KEEP = group(
  {
    pickedUp: {
      ...KEEP_FOR,
      description:
        "How long a folder stays in the inbox after its acknowledgement, such as `7d`, or `forever`. A change applies to later acknowledgements.",
    },
    notPickedUp: {
      ...KEEP_FOR,
      description:
        "How long a folder stays in the inbox if no consumer picks it up, such as `90d`, or `forever`. **After that, it is deleted.**",
    },
  },
  "When Inlet deletes folders from the inbox.",
);

export const HANDOFF = group(
  {
    fileMode: { ...MODE, default: "0640", description: "Permissions of delivered files." },
    folderMode: {
      ...MODE,
      default: "0750",
      description:
        "Permissions of delivered folders, and of the parent folders that Inlet creates for them in the inbox. The umask does not apply.",
    },
    group: {
      ...GROUP,
      default: "none",
      description:
        "The name or number of a group for delivered files and folders, and for the parent folders that Inlet creates for them in the inbox. With `none`, Inlet sets no group. Inlet must be a member of the group, or run as root. The inbox itself keeps its group.",
    },
    marker: {
      ...FILE_NAME,
      description:
        "The name of an empty file that Inlet adds to each delivered folder, for consumers that wait for such a file, or `none`. With or without it, a folder appears only when it is complete.",
    },
    deliver: {
      type: "string",
      enum: ["folder", "files"],
      default: "folder",
      description:
        "How consumers get a transfer. `folder`: as one folder, which appears with all its files at once. `files`: as single files in a folder that transfers share, which `layout` names. docs/consuming.md says what you give up with single files.",
    },
    names: {
      ...TEXT,
      title: "a file name with placeholders",
      maxLength: 200,
      default: "{trackingId}_{name}",
      description:
        "The names of single files. Placeholders: `{name}`, and those of `layout`. It must contain `{name}`, and `{trackingId}` or `{transferId}`. If a name is taken, the file gets a number before its extension: `report-2.pdf`.",
    },
    manifest: {
      type: "string",
      enum: ["inside", "beside", "none"],
      description:
        "Where `transfer.json` and `SHA256SUMS` are. `inside`: in the delivered folder. `beside`: next to the delivered folder, as `NAME.transfer.json` and `NAME.SHA256SUMS`. With single files, `beside` puts both next to these files, named by the pattern in `names`, and `transfer.json` appears last. `none`: not in the inbox. Default: `inside`; with single files, `none`.",
    },
    done: {
      ...DONE,
      description:
        "Whether Inlet creates a done-marker: an empty file beside each delivered folder, or beside each single file, with the same name and this suffix. `true` means `.done`. The done-marker appears after the folder, or after all single files of the transfer.",
    },
    unpack: {
      type: "string",
      enum: ["none", "beside", "instead"],
      default: "none",
      description:
        "Whether received ZIP files are unpacked. `none`: they are not. `beside`: the archive and its files are delivered. `instead`: only its files are delivered. `data.zip` with `docs/a.txt` gives `data_docs_a.txt`. An archive that cannot be unpacked safely is delivered as it is, and `transfer.json` says why. `limits.maxFiles` and `limits.maxTransferSize` include unpacked files.",
    },
    command: {
      type: "array",
      title: "a list of a program and its arguments",
      items: { type: "string", title: "text" },
      description:
        "A program that is run after each delivery, with its arguments. No shell is involved. Variables such as `INLET_FOLDER` say what was delivered; see docs/consuming.md. If the program fails, it is run again with growing pauses, for three days. An empty list: no program.",
    },
    commandTimeout: {
      ...DURATION,
      default: "5m",
      description: "The longest time that the command may run before it is killed, at most 24h.",
    },
    webhook: WEBHOOK,
    acknowledgement: {
      ...FILE_NAME,
      description:
        "The name of a file that a consumer creates in a delivered folder to acknowledge it, or `none`. A folder that a consumer moves or removes needs no acknowledgement. A change applies to downloads that start later.",
    },
    expectWithin: {
      ...LONG_DURATION,
      title: "a duration such as 30m, 12h or 7d",
      pattern: LONG_DURATION_PATTERN,
      description:
        "If no consumer has picked up a folder after this time, Inlet reports it. Default: no report.",
    },
    keep: KEEP,
  },
  "How delivered folders are handed over to consumers.",
);

export type RawHandoff = Written<typeof HANDOFF>;

const KEYS = HANDOFF.properties;
const OWNER_READ = 0o400;
const OWNER_ALL = 0o700;

/** The only variables of the daemon that a command receives: others may hold secrets. */
const PASSED_ON = ["PATH", "HOME", "LANG", "TZ"];

/** Takes each key from the first layer that sets it. Problems and warnings go to the draft. */
export async function readHandoff(layers: readonly Layer<RawHandoff>[], draft: Draft): Promise<Handoff> {
  const pick = pickFrom(layers);
  const expectWithin = pick("expectWithin");
  const webhook = pick("webhook");
  const marker = readName("marker", pick, draft);
  const acknowledgement = readAcknowledgement(pick, marker, draft);
  const deliver = pick("deliver")?.value ?? KEYS.deliver.default;
  if (deliver === "files") refuseWithFiles(pick, draft);
  const done = pick("done")?.value ?? KEYS.done.default;
  return {
    fileMode: readFileMode(pick, draft),
    folderMode: readFolderMode(pick, draft),
    group: readGroup(pick),
    marker,
    deliver,
    names: readNames(pick, draft),
    manifest: pick("manifest")?.value ?? defaultManifest(deliver),
    unpack: pick("unpack")?.value ?? KEYS.unpack.default,
    done: done === true ? DONE_END : done === false ? undefined : done,
    command: readCommand(pick, draft),
    webhook: webhook && (await readWebhook(webhook.value, webhook.path, draft)),
    acknowledgement,
    expectWithinMs: expectWithin && readLongDuration(expectWithin.value, expectWithin.path, draft),
    keep: readKeep(pickFrom(layersWithin(layers, "keep")), acknowledgement, draft),
  };
}

/** `deliver`: the value of that key. */
export function defaultManifest(deliver: unknown): "none" | "inside" {
  return deliver === "files" ? "none" : "inside";
}

/** Keys that need a delivered folder. */
function refuseWithFiles(pick: PickKey<RawHandoff>, { problems }: Draft): void {
  const refuse = (key: "marker" | "acknowledgement" | "manifest", instead: string) => {
    const given = pick(key);
    const allowed = key === "manifest" ? ["none", "beside"] : ["none"];
    const isUsed = given !== undefined && !allowed.includes(given.value);
    if (isUsed)
      problems.add(given.path, `${showValue(given.value)} cannot be used with deliver: files, ${instead}`);
  };
  refuse("marker", "because no folder is delivered: set done instead");
  refuse("acknowledgement", "because no folder is delivered: consumers remove the files instead");
  refuse("manifest", "because no folder is delivered: set it to beside or none");
}

function readNames(pick: PickKey<RawHandoff>, { problems }: Draft): string {
  const { value: names, path } = pick("names") ?? { value: KEYS.names.default, path: [] };
  const wrong = describeWrongNames(names);
  if (wrong !== undefined) problems.add(path, `${showValue(names)} ${wrong}`);
  return names;
}

/** Names are plain, use known placeholders, and differ between files and between transfers. */
function describeWrongNames(names: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them.
  if (/[/\\\u0000-\u001f]/.test(names)) return "must not contain slashes or control characters";
  if (names.trim().startsWith(".")) return "must not begin with a dot";
  const wrong = describeWrongPlaceholders(names, ["name", ...PLACEHOLDERS]);
  if (wrong !== undefined) return wrong;
  if (names.split("{name}").length !== 2) return "must contain {name} once";
  if (/\{(trackingId|transferId)\}/.test(names)) return undefined;
  return "must contain {trackingId} or {transferId}: otherwise files of two transfers could have the same name";
}

/** Names of files that hand-offs add to delivered folders, of all mailboxes. Problems go to the draft. */
export function readAddedNames(layers: readonly Layer<RawHandoff>[], draft: Draft): string[] {
  return layers.flatMap((layer) => {
    const pick = pickFrom([layer]);
    return [readName("marker", pick, draft), readName("acknowledgement", pick, draft)].filter(
      (name) => name !== undefined,
    );
  });
}

/** A plain number is refused: YAML reads 640 as a decimal number. */
function readMode(
  key: "fileMode" | "folderMode",
  pick: PickKey<RawHandoff>,
  draft: Draft,
): Given<number> | undefined {
  const { value: given, path } = pick(key) ?? { value: KEYS[key].default, path: [] };
  const mode = typeof given === "string" ? parseMode(given) : undefined;
  if (mode !== undefined) return { value: mode, path };
  draft.problems.add(path, `${showValue(given)} may be octal or decimal: write it as "0640" or 0o640`);
  return undefined;
}

/** Inlet reads files again after it has set their mode. */
function readFileMode(pick: PickKey<RawHandoff>, draft: Draft): number {
  const mode = readMode("fileMode", pick, draft);
  if (mode === undefined) return 0;
  if ((mode.value & OWNER_READ) === 0) {
    const shown = showValue(pick("fileMode")?.value);
    draft.problems.add(mode.path, `${shown} must let the owner read: begin it with 04 or 06`);
  }
  return mode.value;
}

/** Inlet cannot rename a folder that its owner may not write. */
function readFolderMode(pick: PickKey<RawHandoff>, draft: Draft): number {
  const mode = readMode("folderMode", pick, draft);
  if (mode === undefined) return 0;
  if ((mode.value & OWNER_ALL) !== OWNER_ALL) {
    const shown = showValue(pick("folderMode")?.value);
    draft.problems.add(mode.path, `${shown} must let the owner read, write and enter: begin it with 07`);
  }
  return mode.value;
}

function readGroup(pick: PickKey<RawHandoff>): string | undefined {
  const group = String(pick("group")?.value ?? KEYS.group.default);
  return group === KEYS.group.default ? undefined : group;
}

function readName(
  key: "marker" | "acknowledgement",
  pick: PickKey<RawHandoff>,
  draft: Draft,
): string | undefined {
  const { value: name, path } = pick(key) ?? { value: KEYS[key].default, path: [] };
  const taken = RESERVED_NAMES.find((it) => it.toLowerCase() === name.toLowerCase());
  if (taken !== undefined) {
    draft.problems.add(path, `${showValue(name)} cannot be used: Inlet writes ${taken} itself`);
  }
  return name === "none" ? undefined : name;
}

/** Must differ from the marker in more than case: some disks ignore case. */
function readAcknowledgement(
  pick: PickKey<RawHandoff>,
  marker: string | undefined,
  draft: Draft,
): string | undefined {
  const name = readName("acknowledgement", pick, draft);
  if (name !== undefined && name.toLowerCase() === marker?.toLowerCase()) {
    const why = "is the marker, which exists from the start: choose another name";
    draft.problems.add(pick("acknowledgement")?.path ?? [], `${showValue(name)} ${why}`);
  }
  return name;
}

function readCommand(pick: PickKey<RawHandoff>, draft: Draft): HandoffCommand | undefined {
  const timeout = pick("commandTimeout") ?? { value: KEYS.commandTimeout.default, path: [] };
  const timeoutMs = readDuration(timeout.value, timeout.path, draft);
  const command = pick("command");
  if (command === undefined || command.value.length === 0) return undefined;
  return { ...readProgram(command.value, command.path, draft), timeoutMs };
}

/** A program to run, with its arguments and its part of our environment. Problems go to the draft. */
export function readProgram(
  command: readonly (string | undefined)[],
  path: KeyPath,
  draft: Draft,
): Pick<HandoffCommand, "argv" | "env"> {
  if (!command[0]) draft.problems.add([...path, 0], "names no program");
  const bad = command.findIndex((word) => word?.includes("\0"));
  if (bad >= 0) draft.problems.add([...path, bad], "contains a NUL, which no argument can hold");
  const env = PASSED_ON.flatMap((name): [string, string][] => {
    const value = draft.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { argv: resolveProgram(command, path, draft), env: Object.fromEntries(env) };
}

function readKeep(
  pick: PickKey<NonNullable<RawHandoff["keep"]>>,
  acknowledgement: string | undefined,
  draft: Draft,
): HandoffKeep {
  const read = (key: "pickedUp" | "notPickedUp") => {
    const given = pick(key) ?? { value: KEEP.properties[key].default, path: [] };
    return readLongDuration(given.value, given.path, draft);
  };
  const pickedUpMs = read("pickedUp");
  const path = pick("pickedUp")?.path;
  if (pickedUpMs !== undefined && acknowledgement === undefined && path !== undefined) {
    const group = formatPath(path.slice(0, -2));
    const warning = `${formatPath(path)}: not used without ${group}.acknowledgement, because a folder that was picked up is no longer in the inbox.`;
    if (!draft.warnings.includes(warning)) draft.warnings.push(warning);
  }
  return { pickedUpMs, notPickedUpMs: read("notPickedUp") };
}

/** Whether files are delivered one by one, so that transfers share a folder. */
export function deliversFiles(layers: readonly Layer<RawHandoff>[]): boolean {
  return pickFrom(layers)("deliver")?.value === "files";
}
