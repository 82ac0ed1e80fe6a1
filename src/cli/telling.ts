/** What the daemon tells in its log: one line per change of state, one per outage, however long it lasts. */
import type { DaemonWatch } from "../daemon.ts";
import type { Receipt } from "../model/receipt.ts";
import type { Log } from "../observe/log.ts";

export function tellLog(log: Log): DaemonWatch {
  return {
    ready: () => log.info("ready"),
    clientIdMade: (origin, file) =>
      log.warn({ origin, file }, "a client id was made: have the service's administrator register it"),
    receiptDamaged: (file, reason) => log.error({ file, reason }, "a receipt cannot be read"),
    polled: (mailbox, listed, discovered) => log.debug({ mailbox, listed, discovered }, "polled"),
    pollFailed(mailbox, fault, first) {
      if (first) log.warn({ mailbox, fault }, "the mailbox cannot be polled");
      else log.debug({ mailbox, fault }, "the mailbox still cannot be polled");
    },
    recovered: (mailbox, failedForMs) =>
      log.info(
        { mailbox, failedForSeconds: Math.round(failedForMs / 1000) },
        "the mailbox can be polled again",
      ),
    discovered: (receipt) => log.info(factsOf(receipt), "discovered"),
    rejected: (mailbox, fault) => log.warn({ mailbox, fault }, "an entry of the list cannot be used"),
    expiresSoon: (receipt) =>
      log.warn({ ...factsOf(receipt), expires: receipt.expires }, "expires soon and is not delivered"),
    progressed() {},
    stateChanged(receipt) {
      const { state, reason, message, until, folder } = receipt;
      const facts = { ...factsOf(receipt), reason, until };
      if (state === "waiting") log.warn({ ...facts, message }, "waiting");
      else if (state === "quarantined") log.error({ ...facts, message }, "quarantined");
      else if (state === "gone") log.warn({ ...facts, message }, "gone");
      else if (state === "delivered") log.info({ ...factsOf(receipt), folder }, "delivered");
      else log.debug(factsOf(receipt), state);
    },
  };
}

function factsOf({ mailbox, trackingId, sender }: Receipt) {
  return { mailbox, trackingId, sender };
}
