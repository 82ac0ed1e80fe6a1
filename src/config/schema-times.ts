/** The keys that go by the clock: in which time zone, how fast, when not, and what is expected by when. */
import { DURATION, type SchemaNode, TEXT } from "./schema-nodes.ts";
import { RATE_PATTERN } from "./units.ts";

export const TIMEZONE = {
  ...TEXT,
  title: "the name of a time zone such as Europe/Berlin",
  maxLength: 100,
  description:
    "Whose clocks count for `limits.bandwidth`, `quiet` and `expect`, by its IANA name. Where absent: the system's.",
} as const satisfies SchemaNode;

const WINDOW = {
  ...TEXT,
  title: "a weekly window such as mon-fri 08:00-18:00",
  maxLength: 200,
} as const satisfies SchemaNode;

const RATE = {
  type: "string",
  title: "none or a rate such as 10MiB/s",
  pattern: RATE_PATTERN,
} as const satisfies SchemaNode;

export const BANDWIDTH = {
  type: ["string", "array"],
  title: "none, a rate such as 10MiB/s, or a list of rates and when they count",
  pattern: RATE_PATTERN,
  items: {
    type: "object",
    title: "a rate and when it counts",
    properties: {
      at: { ...WINDOW, description: "When it counts. Where absent: always." },
      rate: { ...RATE, description: "What all downloads together may reach, at least 1KiB/s, or `none`." },
    },
    required: ["rate"],
    additionalProperties: false,
  },
  minItems: 1,
  default: "none",
  description:
    "How fast all downloads of the process may be together, at least 1KiB/s: one rate, or a list of which the first entry that fits the time counts.",
} as const satisfies SchemaNode;

export const QUIET = {
  type: "array",
  title: "a list of weekly windows such as mon-fri 08:00-18:00",
  items: WINDOW,
  minItems: 1,
  description:
    "When no download is begun. What runs goes on, and the mailbox is still looked at. A transfer that expires before the quiet hours end, or within six hours after, is collected all the same, and so is one for which a person gives an order or a password.",
} as const satisfies SchemaNode;

export const EXPECT = {
  type: "array",
  title: "a list of expectations",
  items: {
    type: "object",
    title: "an expectation",
    properties: {
      sender: {
        ...TEXT,
        maxLength: 254,
        description:
          "Whose transfer is expected: an address in which `*` stands for any characters and `?` for one.",
      },
      by: {
        type: "string",
        title: "a time of day such as 06:00",
        pattern: "^[0-9]{1,2}:[0-9]{2}$",
        description: "The time of day by which it must have been seen.",
      },
      days: {
        ...TEXT,
        title: "days such as mon-fri",
        maxLength: 100,
        default: "daily",
        description: "The days on which it must.",
      },
      within: {
        ...DURATION,
        description:
          "How long before that time it may come, at most 24h. Where absent: since the time before, so that one that is late counts for the next time too.",
      },
    },
    required: ["sender", "by"],
    additionalProperties: false,
  },
  description: "Transfers that are to come regularly. It is reported when one of them does not come in time.",
} as const satisfies SchemaNode;
