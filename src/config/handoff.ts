/** The `handoff` group: permissions, acknowledgement and retention of delivered folders, and how deliveries are announced. */
import { type Handoff, type HandoffCommand, PLACEHOLDERS } from "../model/mailbox.ts";
import { RESERVED_NAMES } from "../model/manifest.ts";
import { resolveProgram } from "./credentials.ts";
import { type Draft, formatPath, type KeyPath, showValue } from "./draft.ts";
import { type Layer, layersWithin, pick, readKeys } from "./layers.ts";
import { describeWrongPlaceholders } from "./layout.ts";
import { group, key, READ, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import { environmentFor } from "./secrets.ts";
import { DURATION, LONG_DURATION, LONG_DURATION_PATTERN, MODE, modeWith } from "./units.ts";
import { WEBHOOK } from "./webhook.ts";

const FILE_NAME = {
  type: "string",
  title: "none or a plain file name",
  pattern: "^(?!\\.{1,2}$)[^\\u0000-\\u001f/\\\\]+$",
  maxLength: 200,
  default: "none",
  [READ]: readName,
} as const satisfies SchemaNode;

/** Group names from directory services may hold spaces and backslashes. */
const GROUP = {
  type: ["string", "integer"],
  title: "none, or the name or number of a group",
  pattern: "^[^-:\\u0000-\\u001f][^:\\u0000-\\u001f]*$",
  maxLength: 256,
  minimum: 0,
  maximum: 4_294_967_294,
  [READ]: (given: string | number) => (given === "none" ? undefined : String(given)),
} as const satisfies SchemaNode;

const DONE = {
  type: ["boolean", "string"],
  title: "true, false or the end of a name such as .done",
  pattern: "^[._-][A-Za-z0-9._-]{0,8}[A-Za-z0-9_-]$",
  default: false,
  [READ]: (given: boolean | string) => (typeof given === "string" ? given : given ? ".done" : undefined),
} as const satisfies SchemaNode;

/** A program to run, with its arguments and its part of our environment. */
export const COMMAND = {
  type: "array",
  title: "a list of a program and its arguments",
  items: { type: "string", title: "text" },
  [READ]: readProgram,
} as const satisfies SchemaNode;

const KEEP_FOR = { ...LONG_DURATION, default: "forever" } as const satisfies SchemaNode;

export const HANDOFF = group(
  {
    fileMode: key(
      // Inlet reads files again after it has set their mode.
      {
        ...MODE,
        default: "0640",
        [READ]: modeWith(0o400, "must let the owner read: begin it with 04 or 06"),
      },
      "Permissions of delivered files.",
    ),
    folderMode: {
      ...MODE,
      default: "0750",
      description:
        "Permissions of delivered folders, and of the parent folders that Inlet creates for them in the inbox. The umask does not apply.",
      // Inlet cannot rename a folder that its owner may not write.
      [READ]: modeWith(0o700, "must let the owner read, write and enter: begin it with 07"),
    },
    group: key(
      { ...GROUP, default: "none" },
      "The name or number of a group for delivered files and folders, and for the parent folders that Inlet creates for them in the inbox. With `none`, Inlet sets no group. Inlet must be a member of the group, or run as root. The inbox itself keeps its group.",
    ),
    marker: key(
      FILE_NAME,
      "The name of an empty file that Inlet adds to each delivered folder, for consumers that wait for such a file, or `none`. With or without it, a folder appears only when it is complete.",
    ),
    deliver: key(
      { type: "string", enum: ["folder", "files"], default: "folder" },
      "How consumers get a transfer. `folder`: as one folder, which appears with all its files at once. `files`: as single files in a folder that transfers share, which `layout` names. docs/consuming.md says what you give up with single files.",
    ),
    names: {
      ...TEXT,
      title: "a file name with placeholders",
      maxLength: 200,
      default: "{trackingId}_{name}",
      description:
        "The names of single files. Placeholders: `{name}`, and those of `layout`. It must contain `{name}`, and `{trackingId}` or `{transferId}`. If a name is taken, the file gets a number before its extension: `report-2.pdf`.",
      [READ]: readNames,
    },
    manifest: key(
      { type: "string", enum: ["inside", "beside", "none"] },
      "Where `transfer.json` and `SHA256SUMS` are. `inside`: in the delivered folder. `beside`: next to the delivered folder, as `NAME.transfer.json` and `NAME.SHA256SUMS`. With single files, `beside` puts both next to these files, named by the pattern in `names`, and `transfer.json` appears last. `none`: not in the inbox. Default: `inside`; with single files, `none`.",
    ),
    done: key(
      DONE,
      "Whether Inlet creates a done-marker: an empty file beside each delivered folder, or beside each single file, with the same name and this suffix. `true` means `.done`. The done-marker appears after the folder, or after all single files of the transfer.",
    ),
    unpack: key(
      { type: "string", enum: ["none", "beside", "instead"], default: "none" },
      "Whether received ZIP files are unpacked. `none`: they are not. `beside`: the archive and its files are delivered. `instead`: only its files are delivered. `data.zip` with `docs/a.txt` gives `data_docs_a.txt`. An archive that cannot be unpacked safely is delivered as it is, and `transfer.json` says why. `limits.maxFiles` and `limits.maxTransferSize` include unpacked files.",
    ),
    command: key(
      COMMAND,
      "A program that is run after each delivery, with its arguments. No shell is involved. Variables such as `INLET_FOLDER` say what was delivered; see docs/consuming.md. If the program fails, it is run again with growing pauses, for three days. An empty list: no program.",
    ),
    commandTimeout: key(
      { ...DURATION, default: "5m" },
      "The longest time that the command may run before it is killed, at most 24h.",
    ),
    webhook: WEBHOOK,
    acknowledgement: key(
      FILE_NAME,
      "The name of a file that a consumer creates in a delivered folder to acknowledge it, or `none`. A folder that a consumer moves or removes needs no acknowledgement. A change applies to downloads that start later.",
    ),
    expectWithin: {
      ...LONG_DURATION,
      title: "a duration such as 30m, 12h or 7d",
      pattern: LONG_DURATION_PATTERN,
      description:
        "If no consumer has picked up a folder after this time, Inlet reports it. Default: no report.",
    },
    keep: group(
      {
        pickedUp: key(
          KEEP_FOR,
          "How long a folder stays in the inbox after its acknowledgement, such as `7d`, or `forever`. A change applies to later acknowledgements.",
        ),
        notPickedUp: key(
          KEEP_FOR,
          "How long a folder stays in the inbox if no consumer picks it up, such as `90d`, or `forever`. **After that, it is deleted.**",
        ),
      },
      "When Inlet deletes folders from the inbox.",
    ),
  },
  "How delivered folders are handed over to consumers.",
);

export type RawHandoff = Written<typeof HANDOFF>;

/** Takes each key from the first layer that sets it. Problems and warnings go to the draft. */
export async function readHandoff(layers: readonly Layer<RawHandoff>[], draft: Draft): Promise<Handoff> {
  const read = await readKeys(HANDOFF.properties, layers, draft);
  const { command, commandTimeout, expectWithin, keep, deliver, ...handoff } = read;
  const { manifest = defaultManifest(deliver), marker, acknowledgement } = read;
  if (deliver === "files") refuseWithFiles(layers, draft);
  // They must differ in more than case: some disks ignore case.
  if (acknowledgement !== undefined && acknowledgement.toLowerCase() === marker?.toLowerCase()) {
    const why = "is the marker, which exists from the start: choose another name";
    draft.problems.add(pick(layers, "acknowledgement")?.path ?? [], `${showValue(acknowledgement)} ${why}`);
  }
  if (keep.pickedUp !== undefined && acknowledgement === undefined) warnOfKeep(layers, draft);
  return {
    ...handoff,
    deliver,
    manifest,
    command: command && { ...command, timeoutMs: commandTimeout },
    expectWithinMs: expectWithin,
    keep: { pickedUpMs: keep.pickedUp, notPickedUpMs: keep.notPickedUp },
  };
}

/** `deliver`: the value of that key. */
export function defaultManifest(deliver: unknown): "none" | "inside" {
  return deliver === "files" ? "none" : "inside";
}

/** Keys that need a delivered folder, and what to do instead. */
const FOLDER_KEYS = {
  marker: "set done instead",
  acknowledgement: "consumers remove the files instead",
  manifest: "set it to beside or none",
} as const;

function refuseWithFiles(layers: readonly Layer<RawHandoff>[], { problems }: Draft): void {
  for (const key of ["marker", "acknowledgement", "manifest"] as const) {
    const given = pick(layers, key);
    const isFree = key === "manifest" && given?.value === "beside";
    if (given === undefined || given.value === "none" || isFree) continue;
    const why = `cannot be used with deliver: files, because no folder is delivered: ${FOLDER_KEYS[key]}`;
    problems.add(given.path, `${showValue(given.value)} ${why}`);
  }
}

function readNames(names: string, path: KeyPath, { problems }: Draft): string {
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
  const given = layers.flatMap((layer) => [pick([layer], "marker"), pick([layer], "acknowledgement")]);
  return given.flatMap((name) => (name && readName(name.value, name.path, draft)) ?? []);
}

/** `undefined` for `none`. */
function readName(name: string, path: KeyPath, { problems }: Draft): string | undefined {
  const taken = RESERVED_NAMES.find((it) => it.toLowerCase() === name.toLowerCase());
  if (taken !== undefined) {
    problems.add(path, `${showValue(name)} cannot be used: Inlet writes ${taken} itself`);
  }
  return name === "none" ? undefined : name;
}

/** `undefined` for an empty list. */
function readProgram(
  command: readonly (string | undefined)[],
  path: KeyPath,
  draft: Draft,
): Pick<HandoffCommand, "argv" | "env"> | undefined {
  if (command.length === 0) return undefined;
  if (!command[0]) draft.problems.add([...path, 0], "names no program");
  const bad = command.findIndex((word) => word?.includes("\0"));
  if (bad >= 0) draft.problems.add([...path, bad], "contains a NUL, which no argument can hold");
  return { argv: resolveProgram(command, path, draft), env: environmentFor(draft.env) };
}

/** Without an acknowledgement, a folder that was picked up is no longer there. */
function warnOfKeep(layers: readonly Layer<RawHandoff>[], { warnings }: Draft): void {
  const path = pick(layersWithin(layers, "keep"), "pickedUp")?.path ?? [];
  const group = formatPath(path.slice(0, -2));
  const warning = `${formatPath(path)}: not used without ${group}.acknowledgement, because a folder that was picked up is no longer in the inbox.`;
  if (!warnings.includes(warning)) warnings.push(warning);
}

/** Whether files are delivered one by one, so that transfers share a folder. */
export function deliversFiles(layers: readonly Layer<RawHandoff>[]): boolean {
  return pick(layers, "deliver")?.value === "files";
}
