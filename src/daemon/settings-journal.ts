/** Adds changes of the configuration to the journal: which keys have changed, never their values. */

import { hostname } from "node:os";
import { randomHex } from "../base/random.ts";
import type { Ledger } from "../ledger/port.ts";
import { type Emit, listenTo } from "../model/events.ts";
import { actorOf } from "../model/order.ts";

/** `source`: the file that holds the configuration. Who has changed it is not known. */
export function journalSettings(ledger: Pick<Ledger, "recordAct">, source: string): Emit {
  const facts = () => ({ id: randomHex(8), ...actorOf(source, hostname()) });
  return listenTo({
    "settings-reloaded"({ changed = [] }) {
      if (changed.length > 0) void ledger.recordAct({ ...facts(), act: "reload", keys: changed });
    },
    "settings-refused"({ fault: { code } }) {
      void ledger.recordAct({ ...facts(), act: "reload-refused", reason: code });
    },
  });
}
