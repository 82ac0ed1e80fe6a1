/** The keys that say how delivered folders are left for whoever takes them. */
import { DURATION, LONG_DURATION, MODE, type SchemaNode, SECRET, SWITCH, TEXT } from "./schema-nodes.ts";

const FILE_NAME = {
  type: "string",
  title: "none or a plain file name",
  pattern: "^(?!\\.{1,2}$)[^\\u0000-\\u001f/\\\\]+$",
  maxLength: 200,
  default: "none",
} as const satisfies SchemaNode;

const KEEP_FOR = { ...LONG_DURATION, default: "forever" } as const satisfies SchemaNode;

const WEBHOOK = {
  type: "object",
  title: "a group of keys",
  properties: {
    url: {
      ...TEXT,
      title: "an address such as https://hooks.example.com/inlet",
      description:
        "Where to send it. It must be https, unless it is on this machine or `allowHttp` is true, and hold no user or password. It is never shown, because its query may hold a secret.",
      writeOnly: true,
    },
    secret: { ...SECRET, description: "What calls are signed with, by HMAC-SHA256." },
    timeout: {
      ...DURATION,
      default: "30s",
      description: "How long an answer may take, at most 24h.",
    },
    allowHttp: {
      ...SWITCH,
      default: false,
      description: "Whether plain http may be used to other machines. The call then travels unencrypted.",
    },
  },
  required: ["url", "secret"],
  additionalProperties: false,
  description:
    "Told of each delivery by a signed POST, which is sent again with growing pauses until it is accepted, for three days. See docs/handoff.md.",
} as const satisfies SchemaNode;

const KEEP = {
  type: "object",
  title: "a group of keys",
  properties: {
    collected: {
      ...KEEP_FOR,
      description:
        "How long a folder stays after its acknowledgement, such as `7d`, or `forever`. Counts for those that are acknowledged from then on.",
    },
    uncollected: {
      ...KEEP_FOR,
      description:
        "How long a folder stays that nobody collects, such as `90d`, or `forever`. **What was not collected is deleted then.**",
    },
  },
  additionalProperties: false,
  description: "When to remove folders from the inbox by ourselves.",
} as const satisfies SchemaNode;

export const HANDOFF = {
  type: "object",
  title: "a group of keys",
  properties: {
    fileMode: { ...MODE, default: "0640", description: "Permissions of delivered files." },
    folderMode: {
      ...MODE,
      default: "0750",
      description:
        "Permissions of delivered folders and of those above them, up to the inbox, that Inlet makes, whatever the umask.",
    },
    marker: {
      ...FILE_NAME,
      description:
        "The name of an empty file that is written last inside each delivered folder, for consumers that wait for one, or `none`. Not needed to see whole folders: a folder appears in one piece.",
    },
    command: {
      type: "array",
      title: "a list of a program and its arguments",
      items: { type: "string", title: "text" },
      minItems: 1,
      description:
        "A program that is run after each delivery, with its arguments. No shell is involved. Variables such as `INLET_FOLDER` say what was delivered; see docs/handoff.md. Where it fails, it is run again with growing pauses, for three days.",
    },
    commandTimeout: {
      ...DURATION,
      default: "5m",
      description: "How long the command may take before it is ended, at most 24h.",
    },
    webhook: WEBHOOK,
    acknowledgement: {
      ...FILE_NAME,
      description:
        "The name of a file by which a consumer says, inside the folder, that it has collected it, or `none`. Moving or removing the folder says the same. Counts for transfers that are begun from then on.",
    },
    expectWithin: {
      ...LONG_DURATION,
      title: "a duration such as 30m, 12h or 7d",
      pattern: LONG_DURATION.pattern.replace("^forever$|", ""),
      description: "A folder that nobody has collected for so long is reported. Where absent, none is.",
    },
    keep: KEEP,
  },
  additionalProperties: false,
  description: "How delivered folders are left for whoever takes them.",
} as const satisfies SchemaNode;
