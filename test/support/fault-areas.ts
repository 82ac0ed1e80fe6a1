/** Where the faults of each area are counted: for docs/faults.md. */
import type { Area } from "../../src/base/fault-codes.ts";
import type { NoticeKind } from "../../src/model/notify.ts";

interface Counting {
  /** The kinds of notifications. */
  readonly notices: readonly NoticeKind[];
  readonly metric?: string;
  /** Whether doctor looks for such faults. */
  readonly isChecked?: boolean;
}

export const AREAS: Readonly<Record<Area, Counting>> = {
  command: { notices: [] },
  service: { notices: ["service"], metric: "inlet_mailbox_up", isChecked: true },
  mailbox: {
    notices: ["service", "refused", "overdue", "verification"],
    metric: "inlet_mailbox_up",
    isChecked: true,
  },
  transfer: { notices: ["password", "quarantined", "refused", "gone"], metric: "inlet_attention" },
  disk: { notices: ["disk"], metric: "inlet_trouble", isChecked: true },
  queue: { notices: ["queue"], metric: "inlet_trouble", isChecked: true },
  handoff: { notices: ["handoff"], metric: "inlet_attention" },
  notifications: { notices: [], metric: "inlet_trouble", isChecked: true },
  late: { notices: ["stalled"], metric: "inlet_overdue_seconds" },
};
