/** I3 no burnt transfers: several processes, each with another mailbox that received the same transfer. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { Secret } from "../../../src/base/secret.ts";
import { fellowsAmong } from "../../../src/daemon/fellows.ts";
import type { Receipt } from "../../../src/model/receipt.ts";
import { openPasswords } from "../../../src/passwords/open.ts";
import { openReceipts } from "../../../src/receipts/files.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";
import { SIGNAL } from "../../support/service.ts";
import { mailboxSettings, plainSecret } from "../../support/settings.ts";

const NAMES = ["a", "b", "c", "d"];

test("the budget holds though nobody waits for anybody's turn", async () => {
  const { race } = await open("not shared", (name) => `wrong of ${name}`);
  for (let round = 0; round < 20; round++) expect((await race(`t${round}`)).length).toBeLessThanOrEqual(2);
});

test("they take turns, so that the same wrong password is sent once", async () => {
  const { race } = await open("shared", () => "Wr0ng!42");
  for (let round = 0; round < 10; round++) expect(await race(`t${round}`)).toEqual(["Wr0ng!42"]);
});

/** Each mailbox has everything of its own but the disk. */
async function open(turns: "shared" | "not shared", passwordOf: (mailbox: string) => string) {
  const folder = await makeFolder();
  const mailboxes = NAMES.map((name) => {
    const rule = { sender: undefined, trackingId: undefined, password: plainSecret(passwordOf(name)) };
    return mailboxSettings(
      { url: "https://transfer.example.com", clientId: "x" },
      { name, email: `${name}@example.com`, passwords: [rule, rule] },
    );
  });
  const workers = await Promise.all(
    mailboxes.map(async (mailbox) => {
      const receipts = await openReceipts(folder, { alone: false });
      const passwords = await openPasswords({
        state: join(folder, "state"),
        nowMs: Date.now(),
        fellows: fellowsAmong(() => mailboxes, receipts),
        sharedTurns: turns === "shared" ? join(folder, "turns") : undefined,
      });
      return { mailbox, receipts, passwords };
    }),
  );
  /** All of them at once; returns what was sent. */
  const race = async (trackingId: string): Promise<string[]> => {
    const sent: string[] = [];
    const attempts = workers.map(async ({ mailbox, receipts, passwords }) => {
      let receipt: Receipt = makeReceipt({ mailbox: mailbox.name, trackingId });
      await receipts.create(receipt, undefined);
      const save = async (next: Receipt) => {
        await receipts.put(next, receipt);
        receipt = next;
      };
      const send = async (password: Secret): Promise<never> => {
        sent.push(password.reveal());
        throw new Fault("PASSWORD_REFUSED");
      };
      const query = { trackingId, sender: "a@example.org", link: async () => undefined };
      return passwords.prove({ mailbox, query, receipt, save, send }, SIGNAL).catch((error: unknown) => {
        // It gives way to another one.
        if (!(error instanceof Fault && error.code === "ATTEMPT_ELSEWHERE")) throw error;
      });
    });
    await Promise.all(attempts);
    return sent;
  };
  return { race };
}
