/** The hand-off of a delivery for people: from its entry in the outbox, or from the record of its end. */
import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import { STEPS } from "../model/handoff.ts";
import type { HandoffView } from "../model/views.ts";
import { parseJson } from "./format.ts";
import type { OUTBOX_KINDS } from "./paths.ts";

const Text = v.optional(v.string());
const Step = v.optional(v.object({ state: v.string(), nextAt: Text, error: Text, output: Text }));
const Shape = v.object({ pickedUpAt: Text, folder: Text, command: Step, webhook: Step });

/** A damaged entry counts as empty: the daemon reports it. An empty entry only waits. */
export function parseEntry(text: string, kind: (typeof OUTBOX_KINDS)[number]): HandoffView {
  const result = v.safeParse(Shape, parseJson(text));
  const { pickedUpAt, folder, ...steps } = result.success ? result.output : {};
  const facts = { pickedUpAt, folder };
  if (kind === "kept") return { progress: "kept", ...facts };
  const open = STEPS.filter((step) => (steps[step]?.state ?? "done") !== "done");
  const failed = open.flatMap((step) => {
    const { error: message, output, nextAt } = steps[step] ?? {};
    return message === undefined ? [] : [{ step, message, output, nextAt }];
  });
  const progress = open.length > 0 ? "open" : "waiting";
  return failed.length === 0 ? { progress, ...facts } : { progress, ...facts, failed };
}

/** The record is not synced. Emptied by a power cut, it still says that the hand-off is finished. */
export function parseHandoff(text: string, path: string): Omit<HandoffView, "progress"> {
  if (text === "") return {};
  const result = v.safeParse(Shape, parseJson(text));
  if (!result.success) throw new Fault("RECORD_UNREADABLE", { detail: path });
  const { pickedUpAt, folder } = result.output;
  return { pickedUpAt, folder };
}
