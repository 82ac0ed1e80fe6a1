/** The `handoff` group: permissions, acknowledgement and retention of delivered folders, and how deliveries are announced. */
import type { HandoffStep } from "../model/handoff.ts";
import { type Handoff, PLACEHOLDERS } from "../model/mailbox.ts";
import { RESERVED_NAMES } from "../model/manifest.ts";
import { environmentFor, resolveProgram } from "./credentials.ts";
import { formatPath, type Spot, showValue } from "./draft.ts";
import { describeWrongPlaceholders, hasId } from "./layout.ts";
import { group, key, list, READ, type Read, type SchemaNode, TEXT } from "./schema-nodes.ts";
import { DURATION, LONG_DURATION, LONG_DURATION_PATTERN, MODE, modeWith } from "./units.ts";
import { WEBHOOK } from "./webhook.ts";

const FILE_NAME = {
  type: "string",
  title: "none or a plain file name",
  pattern: "^(?!\\.{1,2}$)[^\\u0000-\\u001f/\\\\]+$",
  maxLength: 200,
  default: "none",
  [READ]: readFileName,
} as const satisfies SchemaNode;

/** Names from directory services may hold spaces and backslashes. The largest 32-bit number stands for no group. */
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
  [READ]: (given: boolean | string) => (given === true ? ".done" : given || undefined),
} as const satisfies SchemaNode;

/** A program to run, with its arguments and its part of our environment. */
export const COMMAND = {
  ...list("a list of a program and its arguments", { type: "string", title: "text" }),
  [READ]: readProgram,
} as const satisfies SchemaNode;

const KEEP_FOR = { ...LONG_DURATION, default: "forever" } as const satisfies SchemaNode;

const FORM = group(
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
        "Permissions of delivered folders, and of the parent folders that Inlet creates for them. The umask does not apply.",
      // Inlet cannot rename a folder that its owner may not write.
      [READ]: modeWith(0o700, "must let the owner read, write and enter: begin it with 07"),
    },
    group: key(
      { ...GROUP, default: "none" },
      "The group of delivered files and folders, and of the parent folders that Inlet creates for them. Inlet must be a member of the group, or run as root. The inbox itself keeps its group.",
    ),
    marker: key(
      FILE_NAME,
      "The name of an empty file in each delivered folder, for consumers that wait for one. With or without it, a folder appears only when it is complete.",
    ),
    deliver: key(
      { type: "string", enum: ["folder", "files"], default: "folder" },
      "`folder`: a transfer is one folder, which appears with all its files at once. `files`: it is single files in a folder that transfers share; docs/consuming.md says what you give up.",
    ),
    names: key(
      {
        ...TEXT,
        title: "a file name with placeholders",
        maxLength: 200,
        default: "{trackingId}_{name}",
        [READ]: readNames,
      },
      "The names of single files: with `{name}`, with `{trackingId}` or `{transferId}`, and other placeholders of `layout`. If a name is taken, the file is called `report-2.pdf`.",
    ),
    manifest: key(
      { type: "string", enum: ["inside", "beside", "none"] },
      "Where `transfer.json` and `SHA256SUMS` are. `inside`: in the delivered folder. `beside`: next to it, as `NAME.transfer.json` and `NAME.SHA256SUMS`; for single files, named by `names`. `none`: not in the inbox. Default: `inside`; with single files, `none`.",
    ),
    done: key(
      DONE,
      "An empty file beside each delivered folder or single file, with the same name and this suffix; `true` means `.done`. It appears after the folder, or after all single files of the transfer.",
    ),
    unpack: key(
      { type: "string", enum: ["none", "beside", "instead"], default: "none" },
      "Whether received ZIP files are unpacked. `beside`: the archive and its files are delivered. `instead`: only its files. `data.zip` with `docs/a.txt` gives `data_docs_a.txt`. An archive that cannot be unpacked safely is delivered as it is, and `transfer.json` says why.",
    ),
    command: key(
      COMMAND,
      "A program that is run after each delivery, with its arguments, without a shell. Variables such as `INLET_FOLDER` say what was delivered. If it fails, it is run again with growing pauses, for three days. An empty list: no program.",
    ),
    commandTimeout: key(
      { ...DURATION, default: "5m" },
      "The longest time that the command may run before it is killed, at most 24h.",
    ),
    webhook: WEBHOOK,
    acknowledgement: key(
      FILE_NAME,
      "The name of a file that a consumer creates in a delivered folder to acknowledge it. A folder that is moved or removed needs none. A change applies to downloads that start later.",
    ),
    expectWithin: key(
      { ...LONG_DURATION, title: "a duration such as 30m, 12h or 7d", pattern: LONG_DURATION_PATTERN },
      "If no consumer has picked up a folder after this time, Inlet reports it. Default: no report.",
    ),
    keep: group(
      {
        pickedUp: key(
          KEEP_FOR,
          "How long a folder stays in the inbox after its acknowledgement. A change applies to later acknowledgements.",
        ),
        notPickedUp: key(
          KEEP_FOR,
          "How long a folder stays in the inbox if no consumer picks it up. **After that, it is deleted.**",
        ),
      },
      "When Inlet deletes folders from the inbox.",
    ),
  },
  "How delivered folders are handed over to consumers.",
);

export const HANDOFF = { ...FORM, [READ]: readHandoff } as const satisfies SchemaNode;

/** Keys that need a delivered folder, and what to do instead. */
const FOLDER_KEYS = [
  ["marker", "set done instead"],
  ["acknowledgement", "consumers remove the files instead"],
  ["manifest", "set it to beside or none"],
] as const;

function readHandoff(read: Read<typeof FORM>, at: Spot): Handoff {
  const { command, commandTimeout, expectWithin, keep, deliver, ...handoff } = read;
  const { manifest = defaultManifest(deliver), marker, acknowledgement } = read;
  for (const [name, instead] of deliver === "files" ? FOLDER_KEYS : []) {
    const given = read[name];
    if (given === undefined || given === "none" || given === "beside") continue;
    const why = `cannot be used with deliver: files, because no folder is delivered: ${instead}`;
    at.refuse(`${showValue(given)} ${why}`, name);
  }
  // They must differ in more than case: some disks ignore case.
  if (acknowledgement !== undefined && acknowledgement.toLowerCase() === marker?.toLowerCase()) {
    const why = "is the marker, which exists from the start: choose another name";
    at.refuse(`${showValue(acknowledgement)} ${why}`, "acknowledgement");
  }
  if (keep.pickedUp !== undefined && acknowledgement === undefined) {
    // In the group that sets `keep.pickedUp`, which may be the one for all mailboxes.
    const needed = formatPath([...at.at("keep", "pickedUp").path.slice(0, -2), "acknowledgement"]);
    const why = "because a folder that was picked up is no longer in the inbox";
    at.warn(`not used without ${needed}, ${why}.`, "keep", "pickedUp");
  }
  const ownerOf = (step: HandoffStep) => {
    const { path } = at.at(step);
    if (read[step] === undefined) return undefined;
    return path.includes("routes") ? "route" : path[0] === "mailboxes" ? "mailbox" : "common";
  };
  return {
    ...handoff,
    owners: { command: ownerOf("command"), webhook: ownerOf("webhook") },
    deliver,
    manifest,
    command: command && { ...command, timeoutMs: commandTimeout },
    expectWithinMs: expectWithin,
    keep: { pickedUpMs: keep.pickedUp, notPickedUpMs: keep.notPickedUp },
  };
}

export function defaultManifest(deliver: unknown): "none" | "inside" {
  return deliver === "files" ? "none" : "inside";
}

/** Names are plain, use known placeholders, and differ between files and between transfers. */
function readNames(names: string, at: Spot): string {
  const wrong = describeWrongNames(names);
  if (wrong !== undefined) at.refuse(`${showValue(names)} ${wrong}`);
  return names;
}

function describeWrongNames(names: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them.
  if (/[/\\\u0000-\u001f]/.test(names)) return "must not contain slashes or control characters";
  if (names.trim().startsWith(".")) return "must not begin with a dot";
  const wrong = describeWrongPlaceholders(names, ["name", ...PLACEHOLDERS]);
  if (wrong !== undefined) return wrong;
  if (names.split("{name}").length !== 2) return "must contain {name} once";
  if (hasId(names)) return undefined;
  return "must contain {trackingId} or {transferId}: otherwise files of two transfers could have the same name";
}

function readFileName(name: string, at: Spot): string | undefined {
  const taken = RESERVED_NAMES.find((it) => it.toLowerCase() === name.toLowerCase());
  if (taken !== undefined) at.refuse(`${showValue(name)} cannot be used: Inlet writes ${taken} itself`);
  return name === "none" ? undefined : name;
}

function readProgram(command: readonly (string | undefined)[], at: Spot) {
  if (command.length === 0) return undefined;
  if (!command[0]) at.refuse("names no program", 0);
  const bad = command.findIndex((word) => word?.includes("\0"));
  if (bad >= 0) at.refuse("contains a NUL, which no argument can hold", bad);
  return { argv: resolveProgram(command, at), env: environmentFor(at.draft.env) };
}
