/** Every fault: its code, its verdict, and its message and advice to the operator. */
import { LOCAL_FAULTS } from "./local-faults.ts";
import { SERVICE_FAULTS } from "./service-faults.ts";
import { TRANSFER_FAULTS } from "./transfer-faults.ts";

export const FAULT_CODES = { ...SERVICE_FAULTS, ...TRANSFER_FAULTS, ...LOCAL_FAULTS } as const;

export type FaultCode = keyof typeof FAULT_CODES;
