/** Parts of entries of lists that are read one by one: what is odd in them costs nothing else. */
import * as v from "valibot";
import type { Addressees, RemovedFile } from "../model/transfer.ts";

/** Of so many, addresses are kept with each transfer. */
const MAX_ADDRESSEES = 100;
/** The longest address that mail allows. */
const MAX_ADDRESS_CHARACTERS = 254;
/** The service's words about a removal, for people. */
const MAX_CAUSE_CHARACTERS = 200;

const Address = v.pipe(v.string(), v.nonEmpty(), v.maxLength(MAX_ADDRESS_CHARACTERS));

/** `null` means none; a value that is no list says nothing. */
export function addresseesOf(lists: { readonly to?: unknown; readonly cc?: unknown }): Addressees {
  const kept: { to?: string[]; cc?: string[]; more?: number } = {};
  let [room, more] = [MAX_ADDRESSEES, 0];
  for (const kind of ["to", "cc"] as const) {
    const all: unknown = lists[kind] === null ? [] : lists[kind];
    if (!Array.isArray(all)) continue;
    const mails = all.slice(0, room).map((it: { readonly mail?: unknown } | null) => it?.mail);
    const list = mails.filter((mail) => v.is(Address, mail));
    kept[kind] = list;
    room -= list.length;
    more += all.length - list.length;
  }
  return more > 0 ? { ...kept, more } : kept;
}

const Text = v.fallback(v.optional(v.string(), ""), "");
const FileStatus = v.object({ id: Text, removed: v.optional(v.unknown()), removalCause: Text, state: Text });

/** The files that the service has removed, of those whose state it shows. */
export function removedIn(files: unknown): RemovedFile[] {
  const all: readonly unknown[] = Array.isArray(files) ? files : [];
  return all.flatMap((file) => {
    const { success, output } = v.safeParse(FileStatus, file);
    if (!success || (output.removed !== true && output.state.toUpperCase() !== "REMOVED")) return [];
    return { id: output.id, cause: output.removalCause.trim().slice(0, MAX_CAUSE_CHARACTERS).toWellFormed() };
  });
}
