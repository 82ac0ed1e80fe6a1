/** The folder of a transfer in the inbox, from a layout such as `{mailbox}/{sender}/{trackingId}`. */
import { Fault } from "../base/faults.ts";
import { PLACEHOLDERS, type Placeholder } from "../model/mailbox.ts";
import { safeSegment } from "./names.ts";

/** The values of a layout's placeholders. */
export interface LayoutValues {
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly transferId: string;
  readonly subject: string;
  /** When the transfer was discovered. The day is that of UTC. */
  readonly discovered: Date;
}

/**
 * A relative path with as many segments as the layout has, whatever the values are. Throws `CONFIG_INVALID` if the
 * layout has an unknown placeholder or an empty segment.
 */
export function formatLayout(layout: string, values: LayoutValues): string {
  return layout
    .split("/")
    .map((segment) => {
      if (["", ".", ".."].includes(segment.trim())) {
        throw invalid(layout, "every part between slashes needs a name");
      }
      return safeSegment(fillIn(layout, segment, values));
    })
    .join("/");
}

/** A name for a file that is delivered by itself, from a pattern such as `{trackingId}_{name}`. Not safe yet. */
export function formatName(pattern: string, values: LayoutValues, name: string): string {
  // Split first, so that no value can hold the placeholder.
  const pieces = pattern.split("{name}").map((piece) => fillIn(pattern, piece, values));
  return pieces.join(name);
}

const READ: Readonly<Record<Placeholder, (values: LayoutValues) => string>> = {
  mailbox: ({ mailbox }) => mailbox,
  sender: ({ sender }) => sender,
  senderDomain: ({ sender }) => (/@([^@]*)$/.exec(sender)?.[1] ?? "").toLowerCase(),
  trackingId: ({ trackingId }) => trackingId,
  transferId: ({ transferId }) => transferId,
  subject: ({ subject }) => subject,
  year: ({ discovered }) => padded(discovered.getUTCFullYear(), 4),
  month: ({ discovered }) => padded(discovered.getUTCMonth() + 1, 2),
  day: ({ discovered }) => padded(discovered.getUTCDate(), 2),
};

/** In one pass, so that a value that looks like a placeholder is not filled in. */
function fillIn(layout: string, segment: string, values: LayoutValues): string {
  return segment.replace(/\{([^{}]*)\}|[{}]/g, (found, name: string | undefined) => {
    if (name === undefined) throw invalid(layout, `an unmatched ${found}`);
    const placeholder = PLACEHOLDERS.find((known) => known === name);
    if (placeholder === undefined) {
      const known = PLACEHOLDERS.map((it) => `{${it}}`);
      throw invalid(layout, `${found} is none of ${known.join(" ")}`);
    }
    const value = READ[placeholder](values);
    return value.trim() === "" ? "_" : value;
  });
}

function padded(number: number, digits: number): string {
  return String(number).padStart(digits, "0");
}

function invalid(layout: string, why: string): Fault {
  return new Fault("CONFIG_INVALID", { detail: `layout ${JSON.stringify(layout)}: ${why}` });
}
