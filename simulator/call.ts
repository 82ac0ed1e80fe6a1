/** One request to the simulated service, and the state that answers it. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Clock } from "../src/base/clock.ts";
import type { Accounts } from "./accounts.ts";
import type { Checksums } from "./checksums.ts";
import type { Strike } from "./faults.ts";
import type { PasswordGuard } from "./password-guard.ts";
import type { Reply } from "./reply.ts";
import type { Settings } from "./settings.ts";
import type { Transfers } from "./transfers.ts";

export interface Call {
  readonly message: IncomingMessage;
  readonly headers: IncomingHttpHeaders;
  readonly url: URL;
  /** The decoded values of the path's placeholders. */
  readonly path: Readonly<Record<string, string>>;
  /** The faults that strike the request. Handlers of lists apply those about lists. */
  readonly strikes: readonly Strike[];
}

export interface World {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly accounts: Accounts;
  readonly transfers: Transfers;
  readonly guard: PasswordGuard;
  readonly checksums: Checksums;
  /** Measured lengths of archives, by entity tag. */
  readonly zipSizes: Map<string, number>;
  /** The address of the service. */
  readonly url: () => string;
}

/** Answers a call, or throws a ServiceError. */
export type Handler = (call: Call, world: World) => Reply | Promise<Reply>;
