/** The table of faults: for each code what it is about, its verdict, who has to act, and its message and advice to the operator. */
import type { Actor, Area } from "./fault-kinds.ts";
import { LOCAL_FAULTS } from "./local-faults.ts";
import { SERVICE_FAULTS, TRANSFER_FAULTS } from "./service-faults.ts";

export const FAULT_CODES = { ...SERVICE_FAULTS, ...TRANSFER_FAULTS, ...LOCAL_FAULTS };

export type FaultCode = keyof typeof FAULT_CODES;

/** A code may come from a record or an answer, so it may be any text. */
export function actorOf(code: string | undefined): Actor {
  return meaningOf(code)?.actor ?? "unknown";
}

/** As `actorOf`. */
export function areaOf(code: string | undefined): Area | undefined {
  return meaningOf(code)?.area;
}

function meaningOf(code: string | undefined) {
  return code !== undefined && Object.hasOwn(FAULT_CODES, code) ? FAULT_CODES[code as FaultCode] : undefined;
}
